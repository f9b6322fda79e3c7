/** --result: what came of a write, as one object for each customer. */
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";

const server = startCustomerServer();
const directory = temporaryDirectory();
afterAll(async () => {
  await server.stop();
  directory[Symbol.dispose]();
});

const NOBODY = "00000000-0000-4000-8000-000000000000";

async function results(args: string[], stdin = "") {
  const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN };
  const { stdout, exitCode } = await runClient([...args, "--result"], { env, stdin });
  const lines = stdout.trimEnd().split("\n");
  return { exitCode, lines: lines.map((line) => JSON.parse(line)) };
}

test("of an update: attempts, conflicts, tags, request id and the customer", async () => {
  const { id } = server.add({ name: "A" });
  const tag = server.read(id)?.tag;
  const { exitCode, lines } = await results(["update", id, "--name", "B"]);
  expect({ exitCode, lines }).toMatchObject({
    exitCode: 0,
    lines: [{ id, result: "updated", code: null, attempts: 1, conflicts: 0, unclearReplies: 0 }],
  });
  expect(lines[0]).toMatchObject({ tagBefore: tag, tagAfter: server.read(id)?.tag, overwritten: [] });
  expect(lines[0].customer.name).toBe("B");
});

test("of a refused reading: the request id of that reply", async () => {
  const refusing = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(null, { status: 403, headers: { "x-request-id": "refused-1" } }),
  });
  const env = { CUSTOMERS_URL: `http://127.0.0.1:${refusing.port}`, CUSTOMERS_TOKEN: TOKEN };
  const { stdout } = await runClient(["update", NOBODY, "--name", "B", "--result"], { env });
  await refusing.stop(true);
  expect(JSON.parse(stdout)).toMatchObject({ result: "not-written", requestId: "refused-1" });
});

test("of several: one line each, the failed ones too, and exit 9", async () => {
  const { id } = server.add({ name: "A" });
  const { exitCode, lines } = await results(["delete", id, NOBODY, "--yes"]);
  expect(exitCode).toBe(9);
  expect(lines).toMatchObject([
    { id, result: "deleted", attempts: 1, customer: null },
    { id: NOBODY, result: "not-written", attempts: 0, tagBefore: null },
  ]);
  expect(lines[1].message).toContain(NOBODY);
});

test("of an expectation that is not met: the code of the error, exit 5", async () => {
  const { id } = server.add({ name: "A", status: "closed" });
  const { exitCode, lines } = await results(["update", id, "--name", "B", "--expect", "status=active"]);
  expect(exitCode).toBe(5);
  expect(lines).toMatchObject([{ id, result: "not-written", code: "expectation-failed" }]);
});

test("of a creation, and of the same one repeated under its key", async () => {
  const args = ["create", "--name", "A", "--email", "a@example.com", "--idempotency-key", "one"];
  const first = await results(args);
  const second = await results(args);
  expect(first.lines).toMatchObject([{ result: "created", attempts: 1, tagBefore: null }]);
  expect(second.lines).toMatchObject([{ result: "replayed", id: first.lines[0].id }]);
});

test("of an import: a line for each row, and the counts last", async () => {
  const { id } = server.add({ name: "A", email: "a@example.com" });
  const file = join(directory.path, "rows.csv");
  const rows = [`${id},New,new@example.com`, ",Made,made@example.com", `${NOBODY},None,none@example.com`];
  writeFileSync(file, `id,name,email\n${rows.join("\n")}\n`);
  const { exitCode, lines } = await results(["import", file, "-o", "json", "--concurrency", "1"]);
  expect(exitCode).toBe(9);
  expect(lines).toMatchObject([
    { row: 1, line: 2, id, result: "updated", attempts: 1, conflicts: 0 },
    { row: 2, line: 3, result: "created" },
    { row: 3, line: 4, id: NOBODY, result: "not-written" },
    { rows: 3, created: 1, updated: 1, failed: 1 },
  ]);
});

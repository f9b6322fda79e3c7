/** Who changed a customer, as the service tells it and as other deployments do not. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CustomersError, type HistoryEntry, openCustomers } from "customers/client";
import { runClient, runOnTerminal } from "./support/client.ts";
import { UNLIKE_OURS } from "./support/dialect.ts";
import { startDeployment, stopDeployments } from "./support/other-deployment.ts";
import { type Service, startService } from "./support/service.ts";

const LATER = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10);
/** The auditor may not read email; writes without If-Match pass. */
const POLICY = `
[roles.auditor]
read = ["id", "name", "status"]
operations = ["get", "history"]
[roles.archivist]
read = []
operations = ["history"]
[enforcement]
mode = "observe"
until = ${LATER}
`;
const NOBODY = "01890000-0000-7000-8000-000000000000";

let service: Service;
beforeAll(async () => {
  service = await startService(["editor", "auditor", "archivist"], {}, POLICY);
});
afterAll(async () => {
  await service.stop();
  await stopDeployments();
});

const envOf = (role: string) => ({
  CUSTOMERS_URL: service.url,
  CUSTOMERS_TOKEN: service.tokens[role] ?? "",
});
const history = (id: string, args: string[] = [], role = "auditor") =>
  runClient(["history", id, ...args], { env: envOf(role) });
const entriesOf = ({ stdout }: { stdout: string }): HistoryEntry[] =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

/** Created, renamed, given a status without If-Match, given an address, and removed, each by the editor. */
async function written() {
  const editor = openCustomers({ url: service.url, token: service.tokens["editor"] ?? "" });
  const { id = "", tag: created = "" } = await editor.create({ name: "Ada", email: "ada@example.com" });
  const { after: renamed = "" } = await editor.update(id, { name: "Eve" });
  const blind = await fetch(`${service.url}/customers/${id}`, {
    method: "PATCH",
    headers: {
      authorization: `Bearer ${service.tokens["editor"]}`,
      "content-type": "application/merge-patch+json",
    },
    body: '{"status":"closed"}',
  });
  expect(blind.status).toBe(204);
  const closed = blind.headers.get("etag") ?? "";
  const { after: moved = "" } = await editor.update(id, { email: "eve@example.com" });
  await editor.delete(id);
  return { id, created, renamed, closed, moved };
}

test("prints the service's entries, the newest first, also of a customer that was deleted", async () => {
  const { id, created, renamed, closed, moved } = await written();
  const { exitCode, stdout, stderr } = await history(id);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  const rows = (JSON.parse(stdout) as HistoryEntry[]).map((entry) => [
    ...[entry.client, entry.operation, entry.changed.join(), entry.previousEtag, entry.etag],
    entry.withoutIfMatch,
  ]);
  expect(rows).toEqual([
    ["editor", "delete", "", moved, null, false],
    ["editor", "replace", "", closed, moved, false], // of the address, which the auditor may not read
    ["editor", "patch", "status", renamed, closed, true],
    ["editor", "replace", "name", created, renamed, false],
    ["editor", "create", "name,status", null, created, false],
  ]);
});

test("on a terminal it is a table with the versions before and after, whole in whatever width", async () => {
  const { id, created, renamed, closed } = await written();
  const { exitCode, screen } = await runOnTerminal(["history", id], {
    env: { ...envOf("auditor"), NO_COLOR: "1" },
    cols: 40,
  });
  expect(exitCode).toBe(0);
  const lines = screen.replaceAll("\r", "");
  const time = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/.source;
  expect(lines).toMatch(/^time +client +operation +changed +version$/m);
  expect(lines).toMatch(
    new RegExp(`^${time}  editor  patch without If-Match  status +${renamed} -> ${closed}$`, "m"),
  );
  expect(lines).toMatch(new RegExp(`^${time}  editor  create +name, status  none -> ${created}$`, "m"));
  expect(lines).toMatch(new RegExp(`^${time}  editor  delete +"[^"]+" -> none$`, "m"));
});

test("shows the values that the service keeps, of the fields that the caller may read", async () => {
  const keeping = await startService(["editor", "auditor"], {}, `${POLICY}[audit]\nvalues = true\n`);
  const editor = openCustomers({ url: keeping.url, token: keeping.tokens["editor"] ?? "" });
  const { id = "" } = await editor.create({ name: "Ada", email: "ada@example.com" });
  await editor.update(id, { name: "Eve", email: "eve@example.com" });
  const env = { CUSTOMERS_URL: keeping.url, CUSTOMERS_TOKEN: keeping.tokens["auditor"] ?? "" };
  const { stdout } = await runClient(["history", id, "--output", "ndjson"], { env });
  const { screen } = await runOnTerminal(["history", id], { env: { ...env, NO_COLOR: "1" }, cols: 40 });
  await keeping.stop();
  expect(entriesOf({ stdout })[0]?.values).toEqual({ name: { before: "Ada", after: "Eve" } });
  expect(screen).toContain('name "Ada" -> "Eve"');
  expect(screen).toContain('name "Ada", status "active"');
});

describe("follows the pages", () => {
  test.each([
    ["to the end", ["--all", "--limit", "2"], ["delete", "replace", "patch", "replace", "create"]],
    ["up to --limit", ["--limit", "3"], ["delete", "replace", "patch"]],
  ])("%s", async (_, args, operations) => {
    const { id } = await written();
    const run = await history(id, [...args, "--output", "ndjson"]);
    expect(run).toMatchObject({ exitCode: 0, stderr: "" });
    expect(entriesOf(run).map(({ operation }) => operation)).toEqual(operations);
  });

  test("and warns where its own limit cut it off", async () => {
    const editor = openCustomers({ url: service.url, token: service.tokens["editor"] ?? "" });
    const { id = "" } = await editor.create({ name: "0", email: "ada@example.com" });
    for (let n = 1; n <= 50; n += 1) await editor.update(id, { name: String(n) });
    const run = await history(id, ["--output", "csv"]);
    expect(run.stderr).toContain("only the first 50 changes are shown; --all shows every one");
    const [heading, ...rows] = run.stdout.trimEnd().split("\n");
    expect(heading).toBe("time,client,operation,changed,requestId,etag,previousEtag,withoutIfMatch,values");
    expect(rows).toHaveLength(50);
  });
});

test("the library reads the same, page by page", async () => {
  const { id, created, renamed } = await written();
  const auditor = openCustomers({ url: service.url, token: service.tokens["auditor"] ?? "" });
  const entries: HistoryEntry[] = [];
  for await (const entry of auditor.history(id, { pageSize: 2 })) entries.push(entry);
  expect(entries).toHaveLength(5);
  expect(entries[3]).toMatchObject({ changed: ["name"], previousEtag: created, etag: renamed });
  const failureOf = async (token: string, of: string) => {
    const reading = openCustomers({ url: service.url, token: service.tokens[token] ?? "" }).history(of);
    const error = await reading.next().catch((thrown: unknown) => thrown);
    return error instanceof CustomersError ? error.failure.kind : error;
  };
  expect([await failureOf("editor", id), await failureOf("auditor", NOBODY)]).toEqual([
    "forbidden",
    "not-found",
  ]);
});

test("without the operation it is refused, and says what to ask for", async () => {
  const { exitCode, stdout, stderr } = await history(NOBODY, [], "editor");
  expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: "" });
  expect(stderr).toContain(`the history of customer ${NOBODY} could not be read`);
  expect(stderr).toContain('a token whose role has the operation "history"');
});

test.each(["auditor", "archivist"])(
  "a customer that never was is not found, for a role of %s",
  async (role) => {
    const { exitCode, stdout, stderr } = await history(NOBODY, [], role);
    expect({ exitCode, stdout }).toEqual({ exitCode: 4, stdout: "" });
    expect(stderr).toContain("There is no customer with this id");
  },
);

describe("a deployment without a history", () => {
  test.each([404, 405, 501])("that answers %d is named as one", async (status) => {
    const { customer, run } = await startDeployment(async (exchange) => {
      if (!exchange.path.includes("/history")) return exchange.answer(await exchange.forward());
      exchange.answer({ status, headers: {}, body: new Uint8Array() });
    });
    const { exitCode, stdout, stderr } = await run("history", customer.id);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain(`the server does not know this operation (${status})`);
    expect(stderr).toContain("This deployment has no history of customers");
  });

  test("and without the customer says that there is no customer", async () => {
    const { run } = await startDeployment(undefined, UNLIKE_OURS);
    expect((await run("history", NOBODY)).exitCode).toBe(4);
  });

  test.each<[string, string]>([
    ["an array of something else", '{"items":[{"id":"1"}],"next":null}'],
    ["an object", '{"hello":"world"}'],
  ])("whose answer is %s shows no changes", async (_, body) => {
    const { customer, run } = await startDeployment(async (exchange) => {
      if (!exchange.path.includes("/history")) return exchange.answer(await exchange.forward());
      exchange.answer({
        status: 200,
        headers: { "content-type": "application/json" },
        body: Buffer.from(body),
      });
    });
    const { exitCode, stdout, stderr } = await run("history", customer.id);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain("the reply holds no array of changes (200)");
  });
});

test("what a client is called can't steer the terminal", async () => {
  const entry = {
    ...{ time: "2026-11-28T10:14:03.120Z", client: "a\u001b[2Jb", operation: "patch", changed: ["x\n"] },
    ...{ requestId: "", etag: '"2"', previousEtag: '"1"', withoutIfMatch: false },
  };
  const { customer, run } = await startDeployment(async (exchange) =>
    exchange.answer({
      status: 200,
      headers: { "content-type": "application/json" },
      body: Buffer.from(JSON.stringify({ items: [entry], next: null })),
    }),
  );
  const { stdout } = await run("history", customer.id, "--output", "table");
  expect(stdout).not.toContain("\u001b");
  expect(stdout.trimEnd().split("\n")).toHaveLength(2);
});

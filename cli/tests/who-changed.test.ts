/** Who changed a customer meanwhile: named at a conflict by the project's own service, and by no other. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CustomersError, type NamedChange, openCustomers } from "customers/client";
import { whoChangedTexts } from "../outcome/who-changed.ts";
import { runClient, runOnTerminal } from "./support/client.ts";
import { TOKEN } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";
import { type Exchange, type Fault, type Reply, startFaultyProxy } from "./support/faulty-proxy.ts";
import { startDeployment, stopDeployments } from "./support/other-deployment.ts";
import { removeEditors, scriptedEditor } from "./support/scripted-editor.ts";
import { type Service, startService } from "./support/service.ts";

const POLICY = `
[roles.owner]
read = ["id", "name", "email", "status"]
operations = ["get", "create", "replace", "patch", "delete", "history"]
[roles.desk]
read = ["id", "name", "status"]
operations = ["get", "patch", "history"]
`;
const AT = String.raw`\d\d:\d\dZ \(20\d\d-\d\d-\d\d\)`;

let service: Service;
const stops: (() => Promise<void>)[] = [];
beforeAll(async () => {
  service = await startService(["editor", "owner", "desk"], {}, POLICY);
});
afterAll(async () => {
  removeEditors();
  for (const stop of stops) await stop();
  await stopDeployments();
  await service.stop();
});

/**
 * A customer, and a base URL behind which the editor changes it before each of the first writes arrives.
 *
 * @param then what the proxy does besides
 */
async function contested(values: Record<string, string>, times = 1, then?: Fault) {
  const editor = openCustomers({ url: service.url, token: service.tokens["editor"] ?? "" });
  const { id = "" } = await editor.create({ name: "Ada", email: "ada@example.com" });
  let turn = 0;
  const change = () => {
    turn += 1;
    return editor.update(id, times === 1 ? values : { ...values, email: `ada${turn}@example.com` });
  };
  const proxy = await startFaultyProxy(service.url, faults.interfere(change, times, then));
  stops.push(proxy.stop);
  const run = (role: string, args: readonly string[], env = {}) =>
    runClient([...args], {
      env: {
        CUSTOMERS_URL: proxy.url,
        CUSTOMERS_TOKEN: service.tokens[role] ?? "",
        CUSTOMERS_NOTES: "1",
        ...env,
      },
    });
  return { id, url: proxy.url, run };
}

describe("the owner, who may see the history, reads who changed the customer", () => {
  test("in the summary of a write that went through on the second attempt", async () => {
    const { id, run } = await contested({ email: "new@example.com" });
    const { exitCode, stderr } = await run("owner", [
      "update",
      id,
      "--name",
      "Eve",
      "--on-conflict",
      "merge",
    ]);
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(
      new RegExp(`updated: 2 attempts, 1 conflict; .*; changed by editor at ${AT}: email\n$`),
    );
  });

  test("of several attempts, the newest first", async () => {
    const { id, run } = await contested({}, 2);
    const { stderr } = await run("owner", ["update", id, "--name", "Eve", "--on-conflict", "merge"]);
    const line = `changed by editor at ${AT}: email`;
    expect(stderr).toMatch(new RegExp(`3 attempts, 2 conflicts; .*; ${line}; ${line}\n$`));
  });

  test("once, where a cache answers the reading after the refusal, so that a second write is refused", async () => {
    let cached: Reply | undefined;
    let reads = 0;
    const { id, run } = await contested({ email: "new@example.com" }, 1, async (exchange) => {
      const reply = await exchange.forward();
      if (!exchange.isWrite) reads += 1;
      if (reads === 1) cached ??= reply;
      exchange.answer(!exchange.isWrite && reads === 2 && cached !== undefined ? cached : reply);
    });
    const { stderr } = await run("owner", ["update", id, "--name", "Eve", "--on-conflict", "merge"]);
    expect(stderr).toMatch(
      new RegExp(`3 attempts, 2 conflicts; (?:(?!changed by).)*; changed by editor at ${AT}: email\n$`),
    );
  });

  test("and not of a write of this very command that arrived late", async () => {
    let late: Exchange | undefined;
    const { id, run } = await contested({}, 0, async (exchange) => {
      if (exchange.isWrite && late === undefined) {
        late = exchange;
        return exchange.answer({ status: 504, headers: {}, body: new Uint8Array() });
      }
      if (exchange.isWrite) await late?.forward();
      exchange.answer(await exchange.forward());
    });
    const { stderr } = await run("owner", ["update", id, "--name", "Eve", "--on-conflict", "merge"]);
    expect(stderr).toContain("1 conflict");
    expect(stderr).not.toContain("changed by");
  });

  test.each([
    ["--on-conflict merge", ["--on-conflict", "merge"]],
    ["--on-conflict fail", ["--on-conflict", "fail"]],
  ])("with update %s, where it stops", async (_, options) => {
    const { id, run } = await contested({ name: "Theirs" });
    const { exitCode, stderr } = await run("owner", ["update", id, "--name", "Eve", ...options]);
    expect(exitCode).toBe(5);
    expect(stderr).toMatch(new RegExp(`^  changed by editor at ${AT}: name$`, "m"));
  });

  test("with --if-match, and with delete", async () => {
    const pinned = await contested({ name: "Theirs" });
    const tag = await pinned.run("owner", ["get", pinned.id, "--with-etag"]);
    const { etag } = JSON.parse(tag.stdout);
    const update = ["update", pinned.id, "--status", "closed", "--if-match", etag];
    expect((await pinned.run("owner", update)).stderr).toMatch(/^ {2}changed by editor at /m);
    const { id, run } = await contested({ name: "Theirs" });
    const removal = await run("owner", ["delete", id, "--yes", "--on-conflict", "merge"]);
    expect(removal.stderr).toMatch(/^ {2}changed by editor at /m);
  });

  test("as JSON on standard error, and in --result", async () => {
    const one = await contested({ name: "Theirs" });
    const stop = ["--on-conflict", "merge", "-o", "json"];
    const failed = await one.run("owner", ["update", one.id, "--name", "Eve", ...stop]);
    const entry = { client: "editor", operation: "replace", changed: ["name"], withoutIfMatch: false };
    expect(JSON.parse(failed.stderr)).toMatchObject({ exitCode: 5, changes: [entry], moreChanges: false });
    const other = await contested({ name: "Theirs" });
    const result = await other.run("owner", ["update", other.id, "--name", "Eve", ...stop, "--result"]);
    expect(JSON.parse(result.stdout)).toMatchObject({ result: "not-written", changes: [entry] });
  });

  test("in the editor that opens again", async () => {
    const { id, run } = await contested({ name: "Theirs" });
    const script = scriptedEditor([{ replace: ["Ada", "Mine"] }]);
    await run("owner", ["edit", id], { EDITOR: script.editor, TMPDIR: script.directory });
    expect(script.shown(1)).toMatch(new RegExp(`^// +changed by editor at ${AT}: name$`, "m"));
  });

  test("in the library's failure, and with what was written", async () => {
    const token = service.tokens["owner"] ?? "";
    const failing = await contested({ name: "Theirs" });
    const error = await openCustomers({ url: failing.url, token })
      .update(failing.id, { name: "Eve" })
      .catch((error) => error);
    if (!(error instanceof CustomersError) || error.failure.kind !== "conflict") throw error;
    expect(error.failure.changes).toMatchObject([{ client: "editor", changed: ["name"] }]);
    const merging = await contested({ email: "new@example.com" });
    const written = await openCustomers({ url: merging.url, token }).update(merging.id, { name: "Eve" });
    expect(written.changes).toMatchObject([{ client: "editor", changed: ["email"] }]);
  });
});

test("a field that the caller may not read is not named, but who changed it is", async () => {
  const { id, run } = await contested({ email: "hidden@example.com" });
  const { exitCode, stderr } = await run("desk", ["update", id, "--status", "closed"]);
  expect(exitCode).toBe(0);
  expect(stderr).toMatch(new RegExp(`; changed by editor at ${AT}\n$`));
});

test("without the operation history nobody is named, and the write goes as before", async () => {
  const { id, run } = await contested({ email: "new@example.com" });
  const { exitCode, stderr } = await run("editor", ["update", id, "--name", "Eve"]);
  expect([exitCode, stderr.includes("changed by")]).toEqual([0, false]);
  expect(stderr).toContain("2 attempts, 1 conflict");
});

test("a deployment that does not know the preference names nobody", async () => {
  const made = startDeployment(
    faults.interfere(async () => {
      const { server, customer } = await made;
      server.change(customer.id, { name: "Theirs" });
    }),
  );
  const { update } = await made;
  const { exitCode, stderr } = await update("--name", "Mine", "--on-conflict", "merge", "-o", "json");
  expect(exitCode).toBe(5);
  expect(JSON.parse(stderr)).not.toHaveProperty("changes");
});

test.each([
  ["no list", { changes: "all" }],
  ["a list of others", { changes: [1, null, {}, { client: "x" }, []] }],
  ["no JSON", "<html>"],
])("a 412 with %s in place of changes names nobody", async (_, body) => {
  const { update } = await startDeployment(async (exchange) => {
    if (!exchange.isWrite) return exchange.answer(await exchange.forward());
    const text = typeof body === "string" ? body : JSON.stringify(body);
    exchange.answer({ status: 412, headers: {}, body: new TextEncoder().encode(text) });
  });
  const { exitCode, stderr } = await update("--name", "Mine", "--on-conflict", "fail", "-o", "json");
  expect([exitCode, JSON.parse(stderr).changes]).toEqual([5, undefined]);
});

const STEERING = "\u001b[31m\u009b31m\u0085\u202eevil\u2066\r\n";

test.each([
  ["json", "standard error as JSON", ["-o", "json"]],
  ["json", "--result", ["-o", "json", "--result"]],
  ["text", "standard error as text", []],
])("a lying server steers no terminal by its changes and details: %s, %s", async (format, _, more) => {
  const said = { ...ENTRY, client: STEERING, operation: STEERING, changed: [STEERING], etag: STEERING };
  const problem = { code: STEERING, title: STEERING, detail: STEERING, diagnosis: STEERING, changes: [said] };
  const { customer, proxy } = await startDeployment(async (exchange) => {
    if (!exchange.isWrite) return exchange.answer(await exchange.forward());
    const headers = { "content-type": "application/problem+json" };
    exchange.answer({ status: 412, headers, body: Buffer.from(JSON.stringify(problem)) });
  });
  const args = [
    "update",
    customer.id,
    "--name",
    "Mine",
    "--on-conflict",
    "fail",
    "--url",
    proxy?.url ?? "",
    ...more,
  ];
  const { exitCode, screen } = await runOnTerminal(args, { env: { CUSTOMERS_TOKEN: TOKEN } });
  expect([exitCode, screen]).toEqual([5, expect.stringContaining("evil")]);
  for (const control of ["\u001b", "\u009b", "\u0085", "\u202e", "\u2066"])
    expect(screen).not.toContain(control);
  if (format === "json") expect(screen).toContain("\\u009b31m");
});

const ENTRY: NamedChange = {
  ...{ time: "2026-11-29T10:14:03.120Z", client: "billing-sync", operation: "patch", changed: ["email"] },
  ...{ requestId: "", etag: null, previousEtag: null, withoutIfMatch: false },
};

test.each<[string, Partial<NamedChange>]>([
  ["changed by billing-sync at 10:14Z (2026-11-29): email", {}],
  ["changed by billing-sync at 10:14Z (2026-11-29): name, email", { changed: ["name", "email"] }],
  ["changed by billing-sync at 10:14Z (2026-11-29)", { changed: [] }],
  ["changed by billing-sync at noon: email", { time: "noon" }],
  ["changed by a b at 10:14Z (2026-11-29): email", { client: "a\r\n b" }],
])("%s", (text, more) => {
  expect(whoChangedTexts({ changes: [{ ...ENTRY, ...more }], moreChanges: false }, 3)).toEqual([text]);
});

test("of many changes the newest are shown, and that there are more", () => {
  const changes = ["a", "b", "c", "d"].map((client) => ({ ...ENTRY, client }));
  const texts = whoChangedTexts({ changes, moreChanges: false }, 3);
  expect(texts.map((text) => text.slice(0, 19))).toEqual([
    ...["changed by a at 10:", "changed by b at 10:", "changed by c at 10:"],
    "and changed before ",
  ]);
  expect(whoChangedTexts({ changes: changes.slice(3), moreChanges: true }, 3)).toHaveLength(2);
});

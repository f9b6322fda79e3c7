import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { type Run, runClient, runOnTerminal } from "./support/client.ts";
import { type CustomerServer, startCustomerServer } from "./support/customer-server.ts";
import { OURS, TOKEN, UNLIKE_OURS } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";
import * as faults from "./support/faults.ts";
import { type Fault, startFaultyProxy } from "./support/faulty-proxy.ts";
import { removeEditors, scriptedEditor } from "./support/scripted-editor.ts";

const command = [await compiledClient()];
const stops: (() => unknown)[] = [];
afterAll(async () => {
  removeEditors();
  for (const stop of stops.reverse()) await stop();
});

function serve(dialect = OURS): CustomerServer {
  const server = startCustomerServer(dialect);
  stops.push(server.stop);
  return server;
}

function edit(
  server: CustomerServer,
  id: string,
  script: ReturnType<typeof scriptedEditor>,
  url = server.url,
  more: string[] = [],
) {
  const env = { CUSTOMERS_URL: url, CUSTOMERS_TOKEN: TOKEN, EDITOR: script.editor, TMPDIR: script.directory };
  return runClient(["edit", id, ...more], { env });
}

async function interfering(
  server: CustomerServer,
  id: string,
  values: Parameters<CustomerServer["change"]>[1],
) {
  const proxy = await startFaultyProxy(
    server.url,
    faults.interfere(() => server.change(id, values)),
  );
  stops.push(proxy.stop);
  return proxy.url;
}

/** The kept text, whose path is printed. */
function keptText({ stderr }: Run): string {
  const path = /Your text is kept in (\S+)/.exec(stderr)?.[1];
  if (path === undefined) throw new Error(`no path in: ${stderr}`);
  return readFileSync(path, "utf8");
}

test("the text is the customer as JSON under comments, and without a change nothing is sent", async () => {
  const server = serve(UNLIKE_OURS);
  const { id } = server.add({});
  const script = scriptedEditor([]);
  const env = { CUSTOMERS_URL: server.url, KEY: server.dialect.credentials.value, EDITOR: script.editor };
  const run = await runClient(["edit", id, "--header-env", "X-Api-Key: $KEY"], { env });
  expect([run.exitCode, run.stdout, server.writes.length]).toEqual([0, "", 0]);
  expect(run.stderr).toContain("nothing was sent");
  const text = script.shown(0) ?? "";
  expect(text.split("\n").slice(0, 3)).toEqual([
    expect.stringMatching(/^\/\/ /),
    expect.stringMatching(/^\/\/ /),
    "{",
  ]);
  expect(text).toContain('\n  "Balance": 9007199254740993,\n  "Rate": 1.10,\n  "10": "ten",\n');
});

test("a change is sent, and nothing else", async () => {
  const server = serve();
  const { id } = server.add({ name: "Ada" });
  const run = await edit(server, id, scriptedEditor([{ replace: ['"Ada"', '"Ada L"'] }]));
  expect([run.exitCode, server.writes.length, server.read(id)?.name]).toEqual([0, 1, "Ada L"]);
  expect(run.stderr).toContain(`customer ${id} updated`);
  expect(run.stderr).not.toContain("kept");
});

test("a status is changed by PATCH of it alone", async () => {
  const server = serve();
  const { id } = server.add({});
  // Our own default set leaves status out; the editor shows every field that can be read.
  await edit(server, id, scriptedEditor([{ replace: ['"active"', '"closed"'] }]));
  expect(server.writes).toMatchObject([{ method: "PATCH", body: { status: "closed" } }]);
});

test("a member that is deleted is left as it is", async () => {
  const server = serve();
  const { id } = server.add({});
  const run = await edit(server, id, scriptedEditor([{ write: '// only this\n{ "name": "New" }' }]));
  expect([run.exitCode, server.read(id)]).toEqual([
    0,
    expect.objectContaining({ name: "New", email: "ada@example.com" }),
  ]);
});

test("a conflict on another field merges, and the editor opens once", async () => {
  const server = serve();
  const { id } = server.add({ name: "Ada" });
  const script = scriptedEditor([{ replace: ['"Ada"', '"Ada L"'] }]);
  const run = await edit(server, id, script, await interfering(server, id, { email: "theirs@example.com" }));
  expect(run.exitCode).toBe(0);
  expect(server.read(id)).toMatchObject({ name: "Ada L", email: "theirs@example.com" });
  expect(script.shown(1)).toBeUndefined();
});

test("a conflict on the same field opens the editor again with both values, and what is decided is sent", async () => {
  const server = serve();
  const { id } = server.add({ name: "Base" });
  const script = scriptedEditor([
    { replace: ['"Base"', '"Mine"'] },
    { replace: ['"name": "Mine"', '"name": "Both"'] },
  ]);
  const url = await interfering(server, id, { name: "Theirs", email: "theirs@example.com" });
  const run = await edit(server, id, script, url);
  expect(run.exitCode).toBe(0);
  const again = script.shown(1) ?? "";
  for (const part of [
    '//     base:   "Base"',
    '//     theirs: "Theirs"',
    '//     mine:   "Mine"',
    '"name": "Mine"',
    '"email": "theirs@example.com"',
  ]) {
    expect(again).toContain(part);
  }
  expect(server.read(id)).toMatchObject({ name: "Both", email: "theirs@example.com" });
});

test("a conflict that is left undecided sends nothing: exit 5, and the text is kept", async () => {
  const server = serve();
  const { id } = server.add({ name: "Base" });
  const script = scriptedEditor([{ replace: ['"Base"', '"Mine"'] }]);
  const run = await edit(server, id, script, await interfering(server, id, { name: "Theirs" }));
  expect([run.exitCode, server.read(id)?.name, server.writes.length]).toEqual([5, "Theirs", 0]);
  expect(keptText(run)).toContain('"name": "Mine"');
  expect(run.stderr).not.toContain("--on-conflict reapply"); // which edit does not take
});

test("invalid text opens the editor again with the reason; corrected, it is sent", async () => {
  const server = serve();
  const { id } = server.add({ name: "Ada" });
  const script = scriptedEditor([{ replace: ['"Ada",', '"Grace"'] }, { replace: ['"Grace"', '"Grace",'] }]);
  expect((await edit(server, id, script)).exitCode).toBe(0);
  expect(script.shown(1)).toStartWith("// this is not JSON:");
  expect(server.read(id)?.name).toBe("Grace");
});

test.each([
  ["is not JSON", "not even close", "not JSON"],
  ["is no object", "[]", "not a JSON object"],
  ["has another id", '{"id": "other", "name": "X"}', "the id can't be changed"],
])("text that %s and stays so sends nothing: exit 2, and the text is kept", async (_, write, message) => {
  const server = serve();
  const { id } = server.add({});
  const run = await edit(server, id, scriptedEditor([{ write }]));
  expect([run.exitCode, server.writes.length]).toEqual([2, 0]);
  expect(run.stderr).toContain(message);
  expect(keptText(run)).toEndWith(write);
});

test("values that the server refuses open the editor again with its reason", async () => {
  const server = serve();
  const { id } = server.add({ name: "Ada" });
  const script = scriptedEditor([
    { replace: ["ada@example.com", "nonsense"] },
    { replace: ["nonsense", "new@example.com"] },
  ]);
  expect((await edit(server, id, script)).exitCode).toBe(0);
  expect(script.shown(1)).toMatch(/^\/\/ customer .* was not updated: .*422/);
  expect(server.read(id)?.email).toBe("new@example.com");
  const left = await edit(server, id, scriptedEditor([{ replace: ["new@example.com", "nonsense"] }]));
  expect([left.exitCode, keptText(left).includes("nonsense")]).toEqual([6, true]);
});

test("an editor that fails sends nothing: exit 1, and what it wrote is kept", async () => {
  const server = serve();
  const { id } = server.add({ name: "Ada" });
  const run = await edit(server, id, scriptedEditor([{ replace: ['"Ada"', '"Half"'], exit: 3 }]));
  expect([run.exitCode, server.writes.length]).toEqual([1, 0]);
  expect(run.stderr).toContain("exit code 3");
  expect(keptText(run)).toContain('"Half"');
  const removed = await edit(server, id, { ...scriptedEditor([]), editor: "rm" });
  expect([removed.exitCode, keptText(removed).includes('"Ada"')]).toEqual([1, true]);
  const missing = await edit(server, id, { ...scriptedEditor([]), editor: "/nonexistent/editor" });
  expect([missing.exitCode, missing.stderr.includes("exit code 127")]).toEqual([1, true]);
});

test("an editor that is left with a failure and without a change leaves no copy of the customer behind", async () => {
  const server = serve();
  const { id } = server.add({ name: "Ada" });
  const { directory } = scriptedEditor([]);
  const before = readdirSync(directory);
  const { exitCode, stderr } = await edit(server, id, { ...scriptedEditor([]), directory, editor: "false" });
  expect([exitCode, stderr.includes("kept in"), readdirSync(directory)]).toEqual([1, false, before]);
});

test("a server that is gone when the text is done: exit 7, and the text is kept", async () => {
  const server = serve();
  const { id } = server.add({ name: "Ada" });
  const stopping: Fault = async (exchange) => {
    exchange.answer(await exchange.forward());
    await front.stop(); // after the one reading: while the editor is open
  };
  const front = await startFaultyProxy(server.url, stopping, "127.0.0.2");
  stops.push(front.stop);
  const run = await edit(server, id, scriptedEditor([{ replace: ['"Ada"', '"Lost?"'] }]), front.url, [
    "--timeout",
    "2",
  ]);
  expect([run.exitCode, server.writes.length]).toEqual([7, 0]);
  expect(keptText(run)).toContain('"Lost?"');
});

test("a write whose outcome stays unknown: exit 8, and the text is kept", async () => {
  const server = serve();
  const { id } = server.add({ name: "Ada" });
  let written = false;
  const proxy = await startFaultyProxy(server.url, async (exchange) => {
    if (exchange.isWrite) {
      written = true;
      await exchange.forward();
    }
    if (written) return exchange.cut();
    exchange.answer(await exchange.forward());
  });
  stops.push(proxy.stop);
  const run = await edit(server, id, scriptedEditor([{ replace: ['"Ada"', '"Perhaps"'] }]), proxy.url, [
    "--timeout",
    "2",
  ]);
  expect([run.exitCode, server.read(id)?.name]).toEqual([8, "Perhaps"]);
  expect(keptText(run)).toContain('"Perhaps"');
});

test("--dry-run shows the request, sends nothing, and keeps the text", async () => {
  const server = serve();
  const { id } = server.add({ name: "Ada" });
  const run = await edit(server, id, scriptedEditor([{ replace: ['"Ada"', '"New"'] }]), server.url, [
    "--dry-run",
  ]);
  expect([run.exitCode, server.writes.length]).toEqual([0, 0]);
  expect(run.stdout).toContain('"New"');
  expect(run.stderr).toContain("the text is kept in ");
});

test("--if-match pins the version that is edited", async () => {
  const server = serve();
  const { id, tag } = server.add({ name: "Ada" });
  const url = await interfering(server, id, { email: "theirs@example.com" });
  const script = scriptedEditor([{ replace: ['"Ada"', '"New"'] }]);
  const run = await edit(server, id, script, url, ["--if-match", tag]);
  expect([run.exitCode, server.writes.length, keptText(run).includes('"New"')]).toEqual([5, 0, true]);
  expect(run.stderr).toContain("not updated: 1 attempt, 1 conflict");
});

test.each([
  ["--if-match", '"stale"'],
  ["--expect", "status=closed"],
])("%s that does not hold is reported before the editor opens", async (option, value) => {
  const server = serve();
  const { id } = server.add({ name: "Ada", status: "active" });
  const script = scriptedEditor([]);
  const run = await edit(server, id, script, server.url, [option, value]);
  expect([run.exitCode, script.shown(0)]).toEqual([5, undefined]);
});

test("without a terminal and without an editor it is a usage error", async () => {
  const server = serve();
  const { id } = server.add({});
  const run = await runClient(["edit", id], { env: { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN } });
  expect([run.exitCode, run.stderr.includes("EDITOR")]).toEqual([2, true]);
});

test("where no file can be made for the text, the editor is not started", async () => {
  const server = serve();
  const { id } = server.add({});
  const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN, EDITOR: "false", TMPDIR: "/dev/null" };
  const run = await runClient(["edit", id], { env, command });
  expect([run.exitCode, run.stderr.includes("no directory can be made in /dev/null")]).toEqual([1, true]);
});

test("VISUAL goes before EDITOR, may have arguments, and its output stays out of stdout", async () => {
  const server = serve();
  const { id } = server.add({ name: "Ada" });
  const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN, EDITOR: "false" };
  const run = await runClient(["edit", id], {
    env: { ...env, VISUAL: "echo drawing; sed -i s/Ada/Bea/" },
    command,
  });
  expect([run.exitCode, run.stdout, server.read(id)?.name]).toEqual([0, "", "Bea"]);
  expect(run.stderr).toContain("drawing");
});

test("an editor that leaves a directory in the place of the text is reported, and is no fault of the client", async () => {
  const server = serve();
  const { id } = server.add({});
  const env = {
    CUSTOMERS_URL: server.url,
    CUSTOMERS_TOKEN: TOKEN,
    EDITOR: `f() { rm "$1" && mkdir "$1"; }; f`,
    TMPDIR: scriptedEditor([]).directory,
  };
  const { exitCode, stderr } = await runClient(["edit", id], { env });
  expect([exitCode, server.writes.length]).toEqual([1, 0]);
  expect(stderr).toMatch(/can't be read \(EISDIR\); nothing was sent/);
  expect(stderr).not.toContain("fault of this program");
});

test("on a terminal, an editor that returns at once without a change brings the advice to use --wait", async () => {
  const server = serve();
  const { id } = server.add({});
  const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN, VISUAL: "true" };
  const { exitCode, screen } = await runOnTerminal(["edit", id], { command, env });
  expect(exitCode).toBe(2);
  expect(screen).toContain("code --wait");
  expect(screen).toContain("Your text is kept in");
  expect(server.writes).toEqual([]);
});

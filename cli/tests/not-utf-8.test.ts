/** Text that is not UTF-8 is refused wherever it comes from: what is stored would be U+FFFD in place of a letter. */
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";
import { startDeployment, stopDeployments } from "./support/other-deployment.ts";

const directory = temporaryDirectory();
afterAll(async () => {
  await stopDeployments();
  directory[Symbol.dispose]();
});

/** "Müller" in Latin-1. */
const LATIN_1 = Uint8Array.from(Buffer.from("Müller", "latin1"));

test.each([
  ["update $ID --name $'M\\xfcller'", "the value of --name"],
  ["update $ID --name=$'M\\xfcller'", "the value of --name"],
  ["update $ID --set $'name=M\\xfcller'", "the value of --set"],
  ["update $ID --name Eve --expect $'name=M\\xfcller'", "the value of --expect"],
  ["create --email m@example.com --name $'M\\xfcller'", "the value of --name"],
  ["get $'M\\xfcller'", "argument 2"],
])("of the command line: %s", async (line, what) => {
  const { server, customer } = await startDeployment();
  const child = Bun.spawn(["bash", "-c", `"$CLIENT" ${line}`], {
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: "/dev/null",
      CLIENT: await compiledClient(),
      ID: customer.id,
      CUSTOMERS_URL: server.url,
      CUSTOMERS_TOKEN: TOKEN,
    },
    stderr: "pipe",
  });
  const [stderr, exitCode] = await Promise.all([child.stderr.text(), child.exited]);
  expect({ exitCode, requests: server.requests }).toEqual({ exitCode: 2, requests: [] });
  expect(stderr).toContain(`${what} is not UTF-8`);
});

test("the replacement character itself is set as JSON", async () => {
  const { update, state } = await startDeployment();
  expect(await update("--set-json", 'name="\\ufffd"')).toMatchObject({ exitCode: 0 });
  expect(state()?.name).toBe("\uFFFD");
});

test.each([
  ["a body from standard input", ["api", "POST", "/customers", "--input", "-"], "standard input"],
  ["a body from a file", ["api", "POST", "/customers", "--input", "FILE"], "not-utf-8.json"],
  ["ids", ["get", "-"], "standard input"],
])("of %s", async (_, args, what) => {
  const { server } = await startDeployment();
  const file = join(directory.path, "not-utf-8.json");
  writeFileSync(file, LATIN_1);
  const { exitCode, stderr } = await runClient(
    args.map((word) => (word === "FILE" ? file : word)),
    { env: { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN }, stdin: LATIN_1 },
  );
  expect({ exitCode, requests: server.requests }).toEqual({ exitCode: 2, requests: [] });
  expect(stderr).toContain(`${what} is not UTF-8`);
});

test("of an editor: the text is kept", async () => {
  const { server, customer } = await startDeployment();
  const EDITOR = "sed -i 's/Ada/M\\xfcller/'";
  const { exitCode, stderr } = await runClient(["edit", customer.id], {
    env: { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN, EDITOR, TMPDIR: directory.path },
  });
  expect({ exitCode, writes: server.writes }).toEqual({ exitCode: 2, writes: [] });
  expect(stderr).toContain("is not UTF-8; nothing was sent");
  const path = /Your text is kept in (\S+)/.exec(stderr)?.[1] ?? "";
  expect(await Bun.file(path).exists()).toBe(true);
});

test("of the profile file, which is not changed", async () => {
  const home = temporaryDirectory();
  const run = (...args: string[]) => runClient(args, { home: home.path });
  await run("profile", "set", "a", "--url", "http://localhost:1");
  const path = join(home.path, ".config/customers/config.toml");
  const bytes = Buffer.concat([
    Buffer.from("# "),
    LATIN_1,
    Buffer.from("\n[profiles.a]\nurl = 'http://b'\n"),
  ]);
  writeFileSync(path, bytes, { mode: 0o600 });
  const { exitCode, stderr } = await run("profile", "set", "b", "--url", "http://localhost:1");
  expect(exitCode).toBe(2);
  expect(stderr).toContain("config.toml is not UTF-8");
  expect(Buffer.from(await Bun.file(path).bytes())).toEqual(bytes);
  home[Symbol.dispose]();
});

test("a file of certificates may have comments in any encoding", async () => {
  const { makeCertificates } = await import("./support/certificates.ts");
  const file = join(directory.path, "ca.pem");
  writeFileSync(file, Buffer.concat([LATIN_1, Buffer.from(`\n${makeCertificates().ca}`)]));
  const { run } = await startDeployment();
  expect(await run("list", "--cacert", file)).toMatchObject({ exitCode: 0 });
});

import { expect, test } from "bun:test";
import { HELP_TOPICS } from "../help/topics.ts";
import { EXIT_CODES } from "../outcome/exit-code.ts";
import { RUNTIME, runClient, temporaryDirectory } from "./support/client.ts";
import { compiledClient } from "./support/executable.ts";

const command = [await compiledClient()];

test.each(Object.keys(HELP_TOPICS))(
  "the topic %s fits one screen, and is in the list of commands",
  async (topic) => {
    const run = await runClient(["help", topic]);
    const lines = run.stdout.split("\n");
    expect([run.exitCode, run.stderr]).toEqual([0, ""]);
    expect(lines.length).toBeLessThanOrEqual(24);
    expect(lines.every((line) => line.length <= 80)).toBe(true);
  },
);

test("the topic exit-codes has every row of the table", async () => {
  const { stdout, stderr, exitCode } = await runClient(["help", "exit-codes"]);
  expect([exitCode, stderr]).toEqual([0, ""]);
  const words = stdout.replaceAll(/\s+/g, " ");
  for (const { code, meaning } of Object.values(EXIT_CODES)) expect(words).toContain(` ${code} ${meaning}`);
});

test("help without a topic is the program's, with the names of the topics", async () => {
  const words = (await runClient(["help"])).stdout.replaceAll(/\s+/g, " ");
  for (const topic of Object.keys(HELP_TOPICS)) expect(words).toContain(topic);
});

test("help on a command is that command's, two words deep", async () => {
  expect((await runClient(["help", "update"])).stdout).toStartWith(
    "Usage: customers update [options] <id...>",
  );
  expect((await runClient(["help", "profile", "use"])).stdout).toStartWith("Usage: customers profile use");
});

test("an unknown topic is a usage error with the nearest one", async () => {
  const run = await runClient(["help", "conflict"]);
  expect([run.exitCode, run.stdout]).toEqual([2, ""]);
  expect(run.stderr).toContain('Did you mean "conflicts"?');
});

test("help and completion need no sound settings", async () => {
  const env = { CUSTOMERS_PROFILE: "none", CUSTOMERS_URL: "::" };
  expect((await runClient(["help", "conflicts"], { env })).exitCode).toBe(0);
  expect((await runClient(["completion", "bash"], { env })).exitCode).toBe(0);
});

/**
 * What bash would offer for the words: the script's own function, with bash's own variables set as at Tab.
 */
async function bashOffers(words: string[]): Promise<string[]> {
  using directory = temporaryDirectory();
  const program = `${directory.path}/customers`;
  await Bun.write(program, `#!/bin/sh\nexec ${command.map((word) => `'${word}'`).join(" ")} "$@"\n`);
  const script = `
    chmod +x '${program}'; PATH="${directory.path}:$PATH"
    source <(customers completion bash)
    COMP_WORDS=(customers "$@"); COMP_CWORD=$#
    _customers customers 2>/dev/null
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const child = Bun.spawn(["bash", "-c", script, "bash", ...words], {
    env: { ...RUNTIME, PATH: process.env["PATH"] ?? "", HOME: directory.path },
    stdout: "pipe",
    stderr: "inherit",
  });
  const offered = (await child.stdout.text()).trimEnd();
  return offered === "" ? [] : offered.split("\n");
}

test.each([
  [["upd"], ["update"]],
  [["hist"], ["history"]],
  [["history", "X", "--l"], ["--limit"]],
  [["get", "X", "--fie"], ["--fields"]],
  [
    ["--output", ""],
    ["table", "json", "ndjson", "csv", "value"],
  ],
  [
    ["profile", "s"],
    ["set", "show"],
  ],
  [
    ["help", "con"],
    ["conflicts", "config"],
  ],
  [
    ["completion", ""],
    ["bash", "zsh", "fish"],
  ],
  [["import", ""], []],
])("bash completes %p", async (words, expected) => {
  expect(await bashOffers(words)).toEqual(expected);
});

test("what was typed is never evaluated at Tab", async () => {
  using directory = temporaryDirectory();
  const trap = `${directory.path}/trap`;
  await bashOffers(["get", `$(touch ${trap})`, "`touch trap`", ";touch trap", "--fie"]);
  expect(await Bun.file(trap).exists()).toBe(false);
});

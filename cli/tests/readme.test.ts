/** The reference is kept true: its examples run, and everything that the program has stands in it. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { OUTPUT_FORMATS } from "../config/flags.ts";
import { PROFILE_SETTING_NAMES } from "../config/profile-settings.ts";
import { EXIT_CODES } from "../outcome/exit-code.ts";
import { addCommands } from "../program.ts";
import { temporaryDirectory } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";

const readme = await Bun.file(new URL("../README.md", import.meta.url)).text();
const server = startCustomerServer();
afterAll(() => server.stop());

function commands(): Command[] {
  const program = new Command("customers");
  addCommands(program, () => async () => {});
  const below = (command: Command): Command[] => [
    command,
    // Hidden ones serve the completion scripts.
    ...command.createHelp().visibleCommands(command).flatMap(below),
  ];
  return below(program);
}

describe("the reference has", () => {
  test.each(
    commands()
      .filter((command) => command.parent !== null)
      .map(
        (command) =>
          [
            command.parent?.parent ? `${command.parent.name()} ${command.name()}` : command.name(),
            command,
          ] as const,
      ),
  )("the command %s", (_, command) => {
    const group = command.parent?.parent ? `${command.parent.name()} .*` : "";
    expect(new RegExp(`^### ${group}\\b${command.name()}\\b`, "m").test(readme)).toBe(true);
  });

  test.each(
    [
      ...new Set(
        commands().flatMap(({ options }) =>
          options.filter(({ hidden }) => !hidden).flatMap(({ long, short }) => [long, short]),
        ),
      ),
    ].flatMap((flag) => flag ?? []),
  )("the option %s", (flag) => {
    expect(new RegExp(`\`${flag}(?![\\w-])`).test(readme)).toBe(true);
  });

  test.each(Object.values(EXIT_CODES).map(({ code, meaning }) => [code, meaning] as const))(
    "exit code %d",
    (code, meaning) => {
      expect(readme.includes(`| ${code} | ${meaning} |`)).toBe(true);
    },
  );

  test.each([...PROFILE_SETTING_NAMES])("the profile setting %s", (setting) => {
    expect(new RegExp(`^\\|.*\\|[^|]*\`${setting}\`[^|]*\\|`, "m").test(readme)).toBe(true);
  });

  test.each([...OUTPUT_FORMATS])("the format %s", (format) => {
    expect(readme.includes(`| \`${format}\` |`)).toBe(true);
  });

  test.each([
    "CUSTOMERS_URL",
    "CUSTOMERS_TOKEN",
    "CUSTOMERS_PROFILE",
    "NO_COLOR",
    "FORCE_COLOR",
    "XDG_CONFIG_HOME",
  ])("the variable %s", (name) => {
    expect(readme.includes(name)).toBe(true);
  });
});

test("the examples run, in the order of the page", async () => {
  using directory = temporaryDirectory();
  const bin = join(directory.path, "bin");
  mkdirSync(bin);
  writeFileSync(join(directory.path, "token-file"), `${TOKEN}\n`, { mode: 0o600 });
  const blocks = [...readme.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
  expect(blocks.length).toBeGreaterThan(15);
  const examples = blocks.flatMap((block) => block.trimEnd().split("\n"));
  for (const example of examples) expect(example).toMatch(/customers|printf|sed/);
  const script = [
    "set -euo pipefail",
    `customers() { '${await compiledClient()}' "$@"; }`,
    // jq is not everywhere; the page uses it for one thing.
    `jq() { '${process.execPath}' -e 'console.log(JSON.parse(await Bun.stdin.text()).etag)'; }`,
    ...examples.flatMap((example) => [
      `echo ${JSON.stringify("")} >&2; echo '+' ${quoted(example)} >&2`,
      example,
    ]),
  ];
  const child = Bun.spawn(["bash", "-c", script.join("\n")], {
    cwd: directory.path,
    env: { PATH: process.env["PATH"] ?? "", HOME: directory.path, URL: server.url },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  expect({ exitCode, end: exitCode === 0 ? "" : stderr.slice(-2000) }).toEqual({ exitCode: 0, end: "" });
  expect(stdout + stderr).not.toContain(TOKEN);
  // What the page promises in passing.
  expect(server.writes.filter(({ idempotencyKey }) => idempotencyKey === "import-2026-0001")).toHaveLength(1);
  expect(server.all().map(({ name }) => name)).toEqual(["Grace Hopper", "Mary Godwin", "Jane Austen"]);
}, 120_000);

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

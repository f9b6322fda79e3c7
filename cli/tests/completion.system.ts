/**
 * Completion in the real shells, interactive, on a pseudo-terminal. Needs the Debian packages zsh and fish.
 */
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { CLIENT_COMMAND, temporaryDirectory } from "./support/client.ts";

/** The real program for what completion asks; any other command line is only shown. */
const STAND_IN = `#!/bin/sh
case "$1" in
  completion | __complete) exec ${CLIENT_COMMAND.map((word) => `'${word}'`).join(" ")} "$@" ;;
  *) printf 'RAN:'; printf ' [%s]' "$@"; echo ;;
esac
`;

const SHELLS = {
  bash: { command: ["bash", "--norc", "--noprofile", "-i"], setUp: 'eval "$(customers completion bash)"' },
  zsh: {
    command: ["zsh", "-f", "-i"],
    setUp: "autoload -U compinit; compinit -u; source <(customers completion zsh)",
  },
  // Without compopt, as the bash of macOS is.
  "bash 3.2": {
    command: ["bash", "--norc", "--noprofile", "-i"],
    setUp: 'enable -n compopt; eval "$(customers completion bash)"',
  },
  "zsh by $fpath": {
    command: ["zsh", "-f", "-i"],
    setUp:
      "mkdir functions; customers completion zsh > functions/_customers; fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u",
  },
  fish: { command: ["fish", "--no-config", "-i"], setUp: "customers completion fish | source" },
};

/** Types the keys at a prompt of the shell, and gives what it ran. */
async function run({ command, setUp }: (typeof SHELLS)["bash"], keys: string): Promise<string> {
  using directory = temporaryDirectory();
  writeFileSync(`${directory.path}/customers`, STAND_IN);
  chmodSync(`${directory.path}/customers`, 0o700);
  writeFileSync(`${directory.path}/rows.csv`, "");
  mkdirSync(`${directory.path}/.config/customers`, { recursive: true });
  writeFileSync(`${directory.path}/.config/customers/config.toml`, '[profiles."my team"]\n', { mode: 0o600 });
  let screen = "";
  let look = () => {};
  const shown = (pattern: RegExp) =>
    new Promise<string>((resolve) => {
      look = () => {
        const match = pattern.exec(screen)?.[0];
        if (match !== undefined) resolve(match);
      };
      look();
    });
  await using terminal = new Bun.Terminal({
    cols: 200,
    rows: 50,
    data: (_, data) => {
      screen += Buffer.from(data).toString();
      look();
    },
  });
  // fish wants a controlling terminal, which setsid makes of the one at hand.
  const shell = Bun.spawn(["setsid", "--ctty", ...command], {
    cwd: directory.path,
    env: {
      PATH: `${directory.path}:${process.env["PATH"]}`,
      HOME: directory.path,
      TERM: "xterm",
      LANG: "C.UTF-8",
    },
    terminal,
  });
  try {
    terminal.write(`${setUp}; echo rea''dy\r`);
    await shown(/^ready/m);
    terminal.write(`${keys}\r`);
    return (await shown(/RAN:[^\r\n]*[\r\n]/)).replace("RAN: ", "").trimEnd();
  } finally {
    shell.kill("SIGKILL");
    await shell.exited;
  }
}

for (const [name, shell] of Object.entries(SHELLS)) {
  test.each([
    ["a command and its option", "customers upd\tX --if-m\tY", "[update] [X] [--if-match] [Y]"],
    ["a choice", "customers --output nd\tlist", "[--output] [ndjson] [list]"],
    ["a command below a command", "customers prof\tli\t", "[profile] [list]"],
    ["a profile with a blank in its name", "customers --profile my\tlist", "[--profile] [my team] [list]"],
    ["a path", "customers import row\t", "[import] [rows.csv]"],
  ])(`${name} completes %s`, async (_, keys, expected) => {
    expect(await run(shell, keys)).toBe(expected);
  });
}

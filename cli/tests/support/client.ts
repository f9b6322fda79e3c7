/** Runs the client as its users do: as a child process with an environment of its own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { runProgram } from "../../program.ts";

export type Run = { exitCode: number; stdout: string; stderr: string };
export type RunOptions = {
  env?: Record<string, string>;
  stdin?: string | Uint8Array;
  cwd?: string;
  /** The command in place of CLIENT_COMMAND. */
  command?: string[];
};

/** Bun would make a missing home directory, to keep transpiled code in it; below this none can be made. */
const NO_HOME = "/dev/null";
const MAIN = new URL("../../main.ts", import.meta.url).pathname;
/**
 * Refuses every connection, always: the port of a server that was stopped may be another test's a moment later.
 * Port 1 would do, but `fetch` never connects to it.
 */
export const NOBODY_THERE = "http://127.0.0.1:2";
/** The client by its source, as `bun run customers` starts it. */
export const SOURCE_COMMAND = [process.execPath, MAIN];
const { TEST_CLIENT } = process.env;
/** The whole test run compiles the client once: it then starts in a third of the processor time. */
export const CLIENT_COMMAND = TEST_CLIENT === undefined ? SOURCE_COMMAND : [TEST_CLIENT];

/** What .ci/check.ts sets for the JavaScript runtime, the same for each program that a test starts. */
export const RUNTIME: Readonly<Record<string, string | undefined>> = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => name.startsWith("BUN_JSC_")),
);

/** A directory that is removed when the test's `using` scope ends. */
export function temporaryDirectory(): { path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), "customers-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/**
 * Starts the client. Of the caller's environment only PATH and the like come along, never a CUSTOMERS_ or
 * proxy variable; HOME and XDG_CONFIG_HOME are `home` (default: none).
 */
export function spawnClient(args: string[], options: RunOptions & { home?: string } = {}) {
  return Bun.spawn([...(options.command ?? CLIENT_COMMAND), ...args], {
    env: { ...RUNTIME, ...environment(options) },
    stdin: options.stdin === undefined ? "ignore" : new Blob([options.stdin as string]),
    stdout: "pipe",
    stderr: "pipe",
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
}

function environment({ home = NO_HOME, env }: RunOptions & { home?: string }): Record<string, string> {
  const { PATH = "", TMPDIR = tmpdir() } = process.env;
  return {
    PATH,
    TMPDIR,
    HOME: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    TZ: "UTC",
    // What a person at a terminal sees; tests of jobs without one set it to "".
    CUSTOMERS_NOTES: "always",
    ...env,
  };
}

/**
 * Runs the client to its end: as a process where a `command` or a `cwd` is given, else in this process, with
 * streams and an environment of its own, which takes a tenth of the time.
 */
export async function runClient(args: string[], options: RunOptions & { home?: string } = {}): Promise<Run> {
  if (options.command === undefined && options.cwd === undefined) return await runHere(args, options);
  const child = spawnClient(args, options);
  const [stdout, stderr, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  return { exitCode, stdout, stderr };
}

async function runHere(args: string[], options: RunOptions & { home?: string }): Promise<Run> {
  const { stdin } = options;
  const collect = (chunks: Buffer[]) =>
    new Writable({
      write(chunk, _, done) {
        chunks.push(chunk);
        done();
      },
    });
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
  const cleanups = new Set<() => void>();
  const exitCode = await runProgram(args, {
    stdin: Readable.from(stdin === undefined ? [] : [Buffer.from(stdin)], { objectMode: false }),
    stdout: collect(stdout),
    stderr: collect(stderr),
    env: environment(options),
    interrupt() {},
    onInterrupt() {},
    suspendInterrupts: () => () => {},
    onExit(cleanup) {
      cleanups.add(cleanup);
      return () => void cleanups.delete(cleanup);
    },
  });
  for (const cleanup of cleanups) cleanup();
  return {
    exitCode,
    stdout: Buffer.concat(stdout).toString(),
    stderr: Buffer.concat(stderr).toString(),
  };
}

const END = "(end of the run)";

/**
 * Runs the client on a pseudo-terminal of 80 columns, unless told otherwise; both streams arrive mixed, as a
 * person sees them.
 */
export async function runOnTerminal(
  args: string[],
  options: {
    env?: Record<string, string>;
    home?: string;
    keys?: string;
    keysAfter?: string;
    cols?: number;
    command?: string[];
  } = {},
): Promise<{ exitCode: number; screen: string }> {
  const home = options.home ?? NO_HOME;
  const { PATH = "", TMPDIR = tmpdir() } = process.env;
  const decoder = new TextDecoder();
  let screen = "";
  let { keys } = options;
  const ended = Promise.withResolvers<void>();
  // Typed too early, a secret would be echoed by the terminal itself.
  const type = () => {
    if (keys === undefined || !screen.includes(options.keysAfter ?? "")) return;
    terminal.write(keys);
    keys = undefined;
  };
  await using terminal = new Bun.Terminal({
    cols: options.cols ?? 80,
    rows: 24,
    data: (_, data) => {
      screen += decoder.decode(data, { stream: true });
      type();
      if (screen.includes(END)) ended.resolve();
    },
  });
  // What is on the way when a process ends may come later than the news of its end: the shell's word is the
  // last.
  const script = `trap : INT; "$@"; code=$?; printf '${END}'; exit $code`;
  const child = Bun.spawn(["sh", "-c", script, "sh", ...(options.command ?? CLIENT_COMMAND), ...args], {
    env: {
      ...RUNTIME,
      PATH,
      TMPDIR,
      HOME: home,
      XDG_CONFIG_HOME: join(home, ".config"),
      TERM: "xterm",
      ...options.env,
    },
    terminal,
  });
  type();
  const exitCode = await child.exited;
  await ended.promise;
  return { exitCode, screen: screen.replace(END, "") };
}

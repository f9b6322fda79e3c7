/** The operator's side of the streams: what may be asked, drawn and coloured. */
import type { Environment } from "../config/sources/setting-source.ts";
import { checkedUtf8 } from "../files/utf-8.ts";
import { UsageError } from "../outcome/failure.ts";
import { untilInterrupted } from "../outcome/until-interrupted.ts";
import type { Host } from "../signals.ts";
import type { Output } from "./standard-output.ts";

/** The operator's side, for what asks or draws. */
export type Terminal = {
  /** True where a person can be asked: stdin and stderr are terminals. */
  interactive: boolean;
  /** True where stdout is a terminal. */
  stdoutIsTerminal: boolean;
  /** True where stderr may be animated (a terminal, TERM not "dumb"). */
  stderrIsTerminal: boolean;
  /** Colour on stderr and in tables: a terminal, or FORCE_COLOR; never with NO_COLOR. */
  color: boolean;
  /** Columns of stdout; undefined where it is no terminal. */
  columns: number | undefined;
  /** Columns of stderr, for what is drawn there; 80 where it is no terminal. */
  stderrColumns: number;
  /** Asks on stderr and reads one line; undefined at end of input. Only where `interactive`. */
  ask(question: string, options?: { secret?: boolean }): Promise<string | undefined>;
  /**
   * All of stdin, as text without its last line end. Throws a UsageError where it is not UTF-8 or over 1 MiB.
   * @param instead what to do where it is over 1 MiB.
   */
  readStdin(instead: string): Promise<string>;
};

export type Input = NodeJS.ReadableStream & { isTTY?: boolean };
export type Streams = { stdin: Input; stdout: Output; stderr: Output };

/** It is held in memory: one value (a token), or the body of one request. */
const STDIN_BYTES_MAX = 1024 * 1024;

/** Of a terminal that does not know its width: a serial line, or a pseudo-terminal of a script, reports 0. */
export const COLUMNS_DEFAULT = 80;

function columnsOf(stream: Output): number | undefined {
  return stream.isTTY ? stream.columns || COLUMNS_DEFAULT : undefined;
}

export function openTerminal(
  host: Streams & Pick<Host, "interrupt">,
  env: Environment,
  interrupted: AbortSignal,
): Terminal {
  const { stdout, stderr } = host;
  const dumb = env["TERM"] === "dumb";
  const forced = env["FORCE_COLOR"];
  const wanted = forced !== undefined ? forced !== "0" && forced !== "" : stdout.isTTY === true && !dumb;
  return {
    get interactive() {
      return stderr.isTTY === true && host.stdin.isTTY === true;
    },
    stdoutIsTerminal: stdout.isTTY === true,
    stderrIsTerminal: stderr.isTTY === true && !dumb,
    color: wanted && !env["NO_COLOR"],
    columns: columnsOf(stdout),
    stderrColumns: columnsOf(stderr) ?? COLUMNS_DEFAULT,
    ask: (question, options) => ask(host, question, options?.secret ?? false, interrupted),
    readStdin: (instead) => untilInterrupted(readAll(host.stdin, instead), interrupted),
  };
}

async function readAll(stdin: Input, instead: string): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    length += chunk.length;
    if (length > STDIN_BYTES_MAX)
      throw new UsageError("standard input is larger than 1 MiB; nothing was sent", instead);
  }
  return checkedUtf8(Buffer.concat(chunks), "standard input").replace(/\r?\n$/, "");
}

/** A secret answer is not echoed: readline writes into nothing, and the terminal is in raw mode. */
async function ask(
  { stdin, stderr, interrupt }: Pick<Streams, "stdin" | "stderr"> & Pick<Host, "interrupt">,
  question: string,
  secret: boolean,
  interrupted: AbortSignal,
): Promise<string | undefined> {
  const { createInterface } = await import("node:readline");
  return await new Promise((resolve) => {
    // With `terminal`, readline echoes to `output`; without an output it echoes nothing. Asked afterwards, so
    // that what is typed at the question finds the terminal's own echo switched off already.
    const lines = createInterface({ input: stdin, terminal: secret });
    stderr.write(question);
    let answer: string | undefined;
    lines.on("line", (line) => {
      answer = line;
      lines.close();
    });
    // In raw mode Ctrl-C is a key, which readline reports, and no signal.
    lines.on("SIGINT", () => {
      interrupt();
      lines.close();
    });
    interrupted.addEventListener("abort", () => lines.close(), { once: true });
    lines.on("close", () => {
      if (secret) stderr.write("\n");
      resolve(answer);
    });
  });
}

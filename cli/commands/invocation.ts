/** What a command gets: settings, the server, the streams, the clock. Made once by program.ts. */

import type { Deadline } from "../client/deadline.ts";
import type { Ports } from "../client/read-customer.ts";
import type { Settings } from "../config/settings.ts";
import type { CustomersApi } from "../http/customers-api.ts";
import type { Failure } from "../outcome/failure.ts";
import type { DataStream } from "../output/data-stream.ts";
import type { Messages } from "../output/messages.ts";

export type Invocation = {
  settings: Settings;
  api: CustomersApi;
  /** stdout: data, and nothing else. */
  out: DataStream;
  /** stderr: everything else; it masks every secret. */
  messages: Messages;
  terminal: Terminal;
  /** The environment, for what a child process such as $EDITOR needs. Settings are already read. */
  env: Readonly<Record<string, string | undefined>>;
  /** A new deadline of `--timeout`; bulk commands take one for each row. */
  deadline(): Deadline;
  /** The server, with such a deadline. */
  ports(): Ports;
  /** Aborted by Ctrl-C, SIGTERM and SIGHUP. */
  interrupted: AbortSignal;
  host: Host;
};

/** The process, as far as a command may touch it. */
export type Host = {
  /** Standard input as bytes. */
  stdin: NodeJS.ReadableStream;
  /** Stops the command as Ctrl-C does. */
  interrupt(): void;
  /** Leaves Ctrl-C to a child, such as an editor, until the returned function is called. */
  suspendInterrupts(): () => void;
  /** Runs `cleanup` when the process ends, by a signal too; the returned function takes that back. */
  onExit(cleanup: () => void): () => void;
};

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
  /** All of stdin, as text without its last line end. */
  readStdin(): Promise<string>;
};

/** How a command ends: undefined is done (exit 0); anything else is printed and gives the exit code. */
export type Ending = Failure | undefined;

/** What a command gets: settings, the server, the streams, the clock. Made once by program.ts. */

import type { Ports } from "./client/read-customer.ts";
import type { Deadline } from "./client/wire/deadline.ts";
import type { Flags } from "./config/flags.ts";
import type { Settings } from "./config/settings.ts";
import type { CustomersApi } from "./http/customers-api.ts";
import type { Failure } from "./outcome/failure.ts";
import type { DataStream } from "./output/data-stream.ts";
import type { Messages } from "./output/messages.ts";
import type { Terminal } from "./output/terminal.ts";
import type { Host } from "./signals.ts";
import type { Recorder } from "./undo/recorder.ts";

export type Invocation = {
  settings: Settings;
  /** The options of every command, as given; settings are made of them. */
  flags: Flags;
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
  /** Keeps what writes replace, where the setting `undo` asks for it; opened at the first call. */
  recorder(): Promise<Recorder>;
  /** Aborted by Ctrl-C, SIGTERM and SIGHUP. */
  interrupted: AbortSignal;
  host: Host;
};

/** How a command ends: undefined is done (exit 0); anything else is printed and gives the exit code. */
export type Ending = Failure | undefined;

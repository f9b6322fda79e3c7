/**
 * The tree of commands, and what surrounds each: settings, interruption, the message and code of the ending.
 */
import {
  Command,
  CommanderError,
  type CommandUnknownOpts,
  InvalidArgumentError,
  Option,
} from "@commander-js/extra-typings";
import { startDeadline } from "./client/wire/deadline.ts";
import { COMMANDS } from "./commands/all.ts";
import type { Run } from "./commands/common/command.ts";
import { type Flags, OUTPUT_FORMATS } from "./config/flags.ts";
import { emptyProfileFile, profilePath, readProfileFile } from "./config/profile/profile-file.ts";
import { readSettings } from "./config/settings.ts";
import { type Environment, fromEnvironment } from "./config/sources/setting-source.ts";
import { parseDurationMs } from "./config/values/duration.ts";
import { examplesOf } from "./help/examples.ts";
import { formatProgramHelp } from "./help/program-help.ts";
import { openCustomersApi } from "./http/customers-api.ts";
import type { Ending, Invocation } from "./invocation.ts";
import { EXIT_CODES } from "./outcome/exit-code.ts";
import { type Failure, failure, UsageError } from "./outcome/failure.ts";
import { tokenEndWarning } from "./outcome/token-end.ts";
import { Interruption, untilInterrupted } from "./outcome/until-interrupted.ts";
import { openDataStream } from "./output/data-stream.ts";
import { openMessages } from "./output/messages.ts";
import { COLUMNS_DEFAULT, openTerminal, type Streams } from "./output/terminal.ts";
import type { Signals } from "./signals.ts";
import type { Recorder } from "./undo/recorder.ts";
import { VERSION_LINE } from "./version.ts";

/** Runs one command line to its end. @param argv without the program's own name. @returns the exit code. */
export async function runProgram(
  argv: readonly string[],
  host: Streams & Signals & { env: Environment },
): Promise<number> {
  const program = customersProgram();
  const interruption = new AbortController();
  host.onInterrupt(() => interruption.abort());
  const out = openDataStream(host.stdout, interruption.signal);
  /** Where the command line could not be parsed to its end. */
  let unparsedOutput: string | undefined;
  const messages = openMessages(host.stderr, () => {
    const { quiet = false, verbose = false, output = unparsedOutput } = program.opts();
    const notes = fromEnvironment(host.env, "CUSTOMERS_NOTES") !== undefined;
    return { quiet, verbose, notes, json: output === "json" || output === "ndjson" };
  });
  const terminal = openTerminal(host, host.env, interruption.signal);
  const help: string[] = [];
  let ending: Ending;

  const run: Run =
    (body, needs) =>
    async (...given) => {
      const flags: Flags = program.opts();
      const path = profilePath(host.env);
      const { readStdin } = terminal;
      const reading =
        needs === "no-profile"
          ? readSettings({
              flags: withoutProfile(flags),
              env: { ...host.env, CUSTOMERS_PROFILE: undefined, CUSTOMERS_TOKEN: undefined },
              file: emptyProfileFile(path),
              needsProfile: true,
              readStdin,
            })
          : readProfileFile(path).then((file) => readSettings({ flags, env: host.env, file, readStdin }));
      const settings = await untilInterrupted(reading, interruption.signal);
      messages.hide(settings.secrets);
      for (const warning of settings.warnings) messages.caution(warning);
      const api = openCustomersApi(settings, messages);
      let recorder: Promise<Recorder> | undefined;
      const openOnce = async () => {
        const { openRecorder } = await import("./undo/recorder.ts");
        return await openRecorder(settings.undoMs, { env: host.env, url: api.url, messages });
      };
      const invocation: Invocation = {
        settings,
        flags,
        api,
        out,
        messages,
        terminal,
        env: host.env,
        deadline: () => startDeadline(settings.timeoutMs, interruption.signal),
        ports: () => ({ transport: api, deadline: invocation.deadline() }),
        recorder: () => {
          recorder ??= openOnce();
          return recorder;
        },
        interrupted: interruption.signal,
        host,
      };
      try {
        ending = await body(invocation, ...given);
        const tokenEnd = api.takeTokenEnd();
        if (tokenEnd !== undefined) messages.aside(tokenEndWarning(tokenEnd, settings));
      } finally {
        await api.close();
        // Where it can't be opened, the command says so.
        (await recorder?.catch(() => undefined))?.close();
      }
    };

  program.configureOutput({
    writeOut: (text) => help.push(text),
    writeErr: (text) => messages.warn(text.trimEnd()),
    outputError: () => {}, // the error is thrown as well, and printed below
    // By themselves these would open process.stdout and process.stderr.
    getOutHelpWidth: () => terminal.columns ?? COLUMNS_DEFAULT,
    getErrHelpWidth: () => terminal.stderrColumns,
    getOutHasColors: () => false,
    getErrHasColors: () => false,
  });
  program.exitOverride();
  try {
    demandUtf8(argv);
    await addCommands(program, run, argv[0]);
    if (argv.length === 0) {
      messages.warn(program.helpInformation().trimEnd());
      await messages.flush();
      return EXIT_CODES.usage.code;
    }
    await program.parseAsync([...argv], { from: "user" });
  } catch (error) {
    unparsedOutput = outputIn(argv);
    ending = endingOf(error, commandLine(program, argv));
  }
  for (const text of help) await out.write(text);
  ending ??= lostOutput(out.failure(), messages.unprinted());
  if (ending !== undefined && interruption.signal.aborted) ending = { ...ending, exit: "interrupted" };
  const code = EXIT_CODES[ending?.exit ?? "done"].code;
  if (ending !== undefined) messages.fail(ending, code);
  await messages.flush();
  return code;
}

/**
 * Adds every command to the program, each with its examples. Making them all takes a tenth of a `get`, so with a command's name as
 * `first` only that one is added, and with a flag for the version none.
 * @param first the first word of the command line
 */
export async function addCommands(program: CommandUnknownOpts, run: Run, first?: string): Promise<void> {
  if (first === "--version" || first === "-V") return;
  const all = Object.values(COMMANDS).flatMap((commands) => Object.keys(commands));
  const only = first !== undefined && first !== "help" && all.includes(first) ? first : undefined;
  for (const [heading, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(heading);
    for (const [name, load] of Object.entries(commands)) {
      if (only !== undefined && name !== only) continue;
      const register = await load();
      register(program, run);
    }
  }
  for (const command of program.commands) {
    const examples = examplesOf(command.name());
    if (examples !== undefined) command.addHelpText("after", examples);
  }
}

function endingOf(error: unknown, command: string): Ending {
  if (error instanceof UsageError) return { ...failure("usage", error.message, error.hint) };
  if (error instanceof Interruption) return failure("interrupted", "interrupted; nothing was sent");
  if (!(error instanceof CommanderError)) return fault(error);
  if (error.exitCode === 0) return undefined; // help or version was printed
  const message =
    error.code === "commander.help" ? "a subcommand is missing" : error.message.replace(/^error: /, "");
  return failure("usage", message, `See: ${command} --help`);
}

/**
 * The system has replaced bytes that are not UTF-8 before anyone could see them, and they would be stored so. The value is
 * not quoted, since it may be a secret.
 */
function demandUtf8(argv: readonly string[]): void {
  const at = argv.findIndex((word) => word.includes("\uFFFD"));
  if (at < 0) return;
  const [option] = (argv[at]?.startsWith("--") ? argv[at] : argv[at - 1])?.split("=") ?? [];
  const what = option?.startsWith("-") ? `the value of ${option}` : `argument ${at + 1}`;
  throw new UsageError(
    `${what} is not UTF-8, or holds the replacement character U+FFFD; nothing was sent`,
    `Give it as UTF-8; the character itself is given as JSON: --set-json 'name="\\ufffd"'`,
  );
}

/** The last --output of the command line, in any of the forms that commander takes. */
function outputIn(argv: readonly string[]): string | undefined {
  const values = argv.map((word, at) => {
    const [, value] = /^(?:--output(?==|$)|-[qvVhiy]*o)=?(.*)$/.exec(word) ?? [];
    return value === "" ? argv[at + 1] : value;
  });
  return values.findLast((value) => value !== undefined);
}

/** The command that was meant, as far as it was understood: `customers profile set`. */
function commandLine(program: CommandUnknownOpts, argv: readonly string[]): string {
  let command = program;
  const names = [program.name()];
  for (const word of argv) {
    const child = command.commands.find((candidate) => candidate.name() === word);
    if (child === undefined) continue;
    command = child;
    names.push(word);
  }
  return names.join(" ");
}

/** Only a bug throws. It is printed once, through the stream that masks secrets. */
function fault(error: unknown): Failure {
  const trace = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return {
    ...failure("failure", "a fault of this program, not of yours", "Please report it with its stack trace."),
    code: "internal-error",
    details: trace.split("\n"),
  };
}

/** @param done what the command did all the same. */
function lostOutput(reason: string | undefined, done: readonly string[]): Failure | undefined {
  if (reason === undefined) return undefined;
  return { ...failure("failure", `the output could not be written: ${reason}`), details: done };
}

/** The program with the options of every command, and no command yet. */
export function customersProgram() {
  return new Command("customers")
    .description("Read and change customers, safely under concurrent writers.")
    .version(VERSION_LINE, "-V, --version", "print the version")
    .helpOption("-h, --help", "print help for the command")
    .helpCommand(false) // commands/help.ts knows topics too
    .option("--url <url>", "base URL of the deployment (CUSTOMERS_URL)")
    .option("--profile <name>", "profile of the configuration file (CUSTOMERS_PROFILE)")
    .option("--token-file <path>", "read the bearer token from a file")
    .addOption(new Option("--token-stdin", "read the bearer token from stdin").conflicts("tokenFile"))
    .addOption(new Option("--token <token>").hideHelp().argParser(refuseToken))
    .option("--header <header>", "add a header 'Name: value' to every request (repeatable)", collect)
    .option(
      "--header-env <header>",
      "the same with $VARIABLE in the value, for secrets (repeatable)",
      collect,
    )
    .option("--proxy <url>", "HTTP proxy for every request")
    .option("--cacert <path>", "trust these certificates (PEM) instead of the system's")
    .option("--cert <path>", "client certificate (PEM), for servers that ask for one")
    .option("--key <path>", "private key of --cert (PEM); without it, in the same file")
    .option("--insecure", "do not check the server's certificate")
    .option(
      "--timeout <time>",
      "limit in time of the work with the server: 30, 500ms, 2m (default: 30)",
      duration,
    )
    .addOption(
      new Option(
        "-o, --output <format>",
        "how stdout is written (default: table on a terminal, else json)",
      ).choices(OUTPUT_FORMATS),
    )
    .option("-q, --quiet", "no summary and no notes on stderr")
    .option("-v, --verbose", "print the exchange on stderr, secrets masked")
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true, formatHelp: formatProgramHelp });
}

function withoutProfile({ profile: _, tokenFile: __, tokenStdin: ___, ...flags }: Flags): Flags {
  return flags;
}

function collect(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}

function duration(text: string): number {
  try {
    return parseDurationMs(text);
  } catch (error) {
    if (error instanceof UsageError) throw new InvalidArgumentError(`${error.hint ?? error.message}`);
    throw error;
  }
}

function refuseToken(): never {
  throw new UsageError(
    "a token on the command line can be read by every user of the machine",
    "Give it as CUSTOMERS_TOKEN, --token-file PATH, --token-stdin, or store it once with: customers login",
  );
}

import { isatty } from "node:tty";
import { Command, CommanderError, type OutputConfiguration } from "commander";
import { flagOf, variableOf } from "../config/settings.ts";
import { DamagedValues } from "../domain/audit/kept-values.ts";
import { CommandRefused } from "../domain/command-refused.ts";
import { StoreUnavailable } from "../storage/customers/customer-store.ts";
import { VERSION_LINE } from "../version.ts";
import { addAuditCommands } from "./audit.ts";
import { refuseVisiblePassword } from "./common/named-database.ts";
import { standardOutput } from "./common/print.ts";
import { ignoreEmptyVariables } from "./common/setting-options.ts";
import { endBySignals } from "./common/signals.ts";
import { addCopyCommand } from "./copy.ts";
import { addDatabaseCommands } from "./database.ts";
import { addHealthCommand } from "./health.ts";
import { addPersonCommands } from "./person.ts";
import { addPolicyCommands } from "./policy-check.ts";
import { addPostgresCommands } from "./postgres.ts";
import { addRolloutCommands } from "./rollout.ts";
import { addServeCommand } from "./serve.ts";
import { addTokenCommands } from "./token/token.ts";

/** Where standard output is no terminal, or one that does not say how wide it is. */
const HELP_COLUMNS = 80;

/** By itself commander would open `process.stdout` and `process.stderr`, see print.ts. */
const OUTPUT: OutputConfiguration = {
  writeOut: (text) => standardOutput.write(text),
  writeErr: (text) => console.error(text.trimEnd()),
  getOutHelpWidth: () => (isatty(1) && process.stdout.columns) || HELP_COLUMNS,
  getErrHelpWidth: () => HELP_COLUMNS,
  getOutHasColors: () => false,
  getErrHasColors: () => false,
};

export function createProgram(): Command {
  const program = new Command(Bun.main.endsWith(".ts") ? "server/main.ts" : "customers-server")
    .configureOutput(OUTPUT)
    .description("The customer resource service.")
    .version(VERSION_LINE)
    .showSuggestionAfterError()
    .showHelpAfterError("(--help lists the commands and options)")
    .hook("preAction", (_, command) => {
      if (command.name() !== "serve") endBySignals();
      if (command.getOptionValueSource("databaseUrl") !== "cli") return;
      const url = String(command.opts()["databaseUrl"]);
      refuseVisiblePassword(flagOf("databaseUrl"), url, variableOf("databaseUrl"));
    })
    .exitOverride();
  addServeCommand(program);
  addHealthCommand(program);
  addTokenCommands(program);
  addDatabaseCommands(program);
  addCopyCommand(program);
  addPostgresCommands(program);
  addPolicyCommands(program);
  addRolloutCommands(program);
  addAuditCommands(program);
  addPersonCommands(program);
  return program;
}

/**
 * Runs the command of these arguments.
 *
 * @returns the exit code: 0 done, 1 refused or failed, 2 a usage error
 */
export async function runCommand(argv: readonly string[]): Promise<number> {
  ignoreEmptyVariables();
  try {
    await createProgram().parseAsync([...argv]);
    return 0;
  } catch (error) {
    // commander has written its message; its own exit code for a usage error is 1.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    console.error(messageOf(error));
    return 1;
  }
}

function messageOf(error: unknown): string {
  if (error instanceof CommandRefused || error instanceof DamagedValues) return error.message;
  if (error instanceof StoreUnavailable && error.isOutcomeUnknown) {
    return `The database did not confirm the change: ${error.message}. Look at \`token list\` or \`person find\` before you try again.`;
  }
  if (error instanceof StoreUnavailable && error.isDamaged) {
    return `The database is damaged: ${error.message}. Run \`check\`; if it finds damage, \`restore FILE --force\`.`;
  }
  if (error instanceof StoreUnavailable) {
    return `The database cannot answer now: ${error.message}. Nothing was changed. Try again.`;
  }
  throw error;
}

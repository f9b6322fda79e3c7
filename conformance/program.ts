/** The command line as a whole: one command a file of commands/. */
import { Command, CommanderError } from "commander";
import { addCleanupCommand } from "./commands/cleanup.ts";
import { addDoctorCommand } from "./commands/doctor.ts";
import { addInitCommand } from "./commands/init.ts";
import { printText, standardOutput, takeOutputFailure } from "./commands/print.ts";
import { programName } from "./commands/program-name.ts";
import { addReplayCommand } from "./commands/replay.ts";
import { addReportCommand } from "./commands/report.ts";
import { addRulesCommand } from "./commands/rules.ts";
import { addRunCommand } from "./commands/run.ts";
import { EXIT_CODES } from "./report/exit-codes.ts";
import { stackOf } from "./target/message.ts";
import { ProfileFault } from "./target/profile.ts";
import { VERSION_LINE } from "./version.ts";

const USAGE = 2;
/** Where standard output is no terminal, or one that does not say how wide it is. */
const HELP_COLUMNS = 80;
const KIT_FAULT = 5;

/** By themselves these would open `process.stdout` and `process.stderr`. */
const WITHOUT_STREAMS = {
  getOutHelpWidth: () => standardOutput.columns() || HELP_COLUMNS,
  getErrHelpWidth: () => HELP_COLUMNS,
  getOutHasColors: () => false,
  getErrHasColors: () => false,
};

/** @param end takes the exit code of the command that ran */
export function makeProgram(end: (exitCode: number) => void): Command {
  const codes = Object.entries(EXIT_CODES).map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`);
  const program = new Command("conformance")
    .description("Tests a deployment of the customer resource API against its specification.")
    .version(VERSION_LINE)
    .configureOutput({
      writeOut: printText,
      writeErr: (text) => console.error(text.trimEnd()),
      ...WITHOUT_STREAMS,
    })
    .addHelpText("after", `\nExit codes:\n${codes.join("\n")}`);
  addRunCommand(program, end);
  addInitCommand(program, end);
  addRulesCommand(program);
  addReplayCommand(program, end);
  addReportCommand(program, end);
  addCleanupCommand(program, end);
  addDoctorCommand(program, end);
  return program;
}

/** Runs the command that the arguments of this process name. @returns the exit code */
export async function runProgram(): Promise<number> {
  const exitCode = await runCommand();
  const failure = takeOutputFailure();
  if (failure === null) return exitCode;
  console.error(`Standard output can't be written: ${failure.message}`);
  return KIT_FAULT;
}

async function runCommand(): Promise<number> {
  let exitCode = 0;
  const program = makeProgram((code) => {
    exitCode = code;
  });
  program.name(programName(process.argv, process.env, process.cwd()));
  for (const command of [program, ...program.commands]) command.exitOverride();
  try {
    await program.parseAsync(process.argv);
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    if (error instanceof ProfileFault) {
      for (const fault of error.faults) console.error(fault);
      return USAGE;
    }
    console.error(stackOf(error));
    return KIT_FAULT;
  }
}

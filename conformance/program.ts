/** The command line as a whole: one command a file of commands/. */
import { Command } from "commander";
import { addCleanupCommand } from "./commands/cleanup.ts";
import { addDoctorCommand } from "./commands/doctor.ts";
import { addInitCommand } from "./commands/init.ts";
import { addReplayCommand } from "./commands/replay.ts";
import { addReportCommand } from "./commands/report.ts";
import { addRulesCommand } from "./commands/rules.ts";
import { addRunCommand } from "./commands/run.ts";
import { EXIT_CODES } from "./report/exit-codes.ts";
import { VERSION_LINE } from "./version.ts";

/** @param end takes the exit code of the command that ran */
export function makeProgram(end: (exitCode: number) => void): Command {
  const codes = Object.entries(EXIT_CODES).map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`);
  const program = new Command("conformance")
    .description("Tests a deployment of the customer resource API against its specification.")
    .version(VERSION_LINE)
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

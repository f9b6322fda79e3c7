import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { HELP_TOPICS } from "../help/topics.ts";
import { UsageError } from "../outcome/failure.ts";
import { nearestOf } from "../outcome/nearest.ts";
import type { RegisterCommand } from "./common/command.ts";

/** Needs no settings, so that a broken profile does not stand before the help. */
export const registerHelp: RegisterCommand = (program) => {
  program
    .command("help [topic...]")
    .description(`help on a command, or on a topic: ${Object.keys(HELP_TOPICS).join(", ")}`)
    .action((path) => {
      program.configureOutput().writeOut?.(helpOn(program, path));
    });
};

function helpOn(program: CommandUnknownOpts, path: readonly string[]): string {
  const [first = ""] = path;
  const topic = path.length === 1 ? HELP_TOPICS[first] : undefined;
  if (topic !== undefined) return topic();
  let command = program;
  for (const word of path) {
    const visible = command.createHelp().visibleCommands(command);
    const child = visible.find((candidate) => candidate.name() === word);
    if (child === undefined) {
      const near = nearestOf(word, [
        ...visible.map((candidate) => candidate.name()),
        ...Object.keys(HELP_TOPICS),
      ]);
      throw new UsageError(
        `there is no help on "${path.join(" ")}"`,
        near === undefined ? "See: customers help" : `Did you mean "${near}"?`,
      );
    }
    command = child;
  }
  return command.helpInformation();
}

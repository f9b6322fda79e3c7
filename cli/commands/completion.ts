import { Argument } from "@commander-js/extra-typings";
import { COMPLETION_SCRIPTS, SHELLS } from "../help/completion-scripts.ts";
import { HELP_TOPICS } from "../help/topics.ts";
import { untilInterrupted } from "../outcome/until-interrupted.ts";
import type { RegisterCommand } from "./common/command.ts";

/** The registry of the specification (2.2): names to begin with; other deployments may know more. */
const FIELDS = ["id", "name", "email", "status"];

export const registerCompletion: RegisterCommand = (program, run) => {
  program
    .command("completion")
    .description("print a completion script for the shell")
    .addArgument(new Argument("<shell>", "which shell").choices(SHELLS))
    .action((shell) => {
      program.configureOutput().writeOut?.(COMPLETION_SCRIPTS[shell]);
    });

  program.command("__complete [words...]", { hidden: true }).action(
    run(async ({ env, out, interrupted }, words) => {
      const { complete } = await import("../help/completion-candidates.ts");
      const { profilePath, readProfileFile } = await import("../config/profile/profile-file.ts");
      // A profile file that can't be read costs the names of profiles alone.
      const reading = readProfileFile(profilePath(env)).then(
        (file) => [...file.profiles.keys()],
        () => [],
      );
      const profiles = await untilInterrupted(reading, interrupted);
      const completion = complete(program, words, {
        "--fields": () => FIELDS,
        "--profile": () => profiles,
        name: () => profiles,
        topic: () => [
          ...Object.keys(HELP_TOPICS),
          ...program
            .createHelp()
            .visibleCommands(program)
            .map((command) => command.name()),
        ],
      });
      const lines =
        completion.kind === "files"
          ? [":files"]
          : completion.candidates.map(({ value, description }) =>
              description === "" ? value : `${value}\t${description}`,
            );
      await out.write(lines.map((line) => `${line}\n`).join(""));
      return undefined;
    }, "no-profile"),
  );
};

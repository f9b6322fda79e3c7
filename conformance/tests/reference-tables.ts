/** The tables of docs/reference.md that the code itself determines. */
import type { Command } from "commander";
import { EXIT_CODES } from "../report/exit-codes.ts";

/** @param program with all of its commands */
export function referenceTables(program: Command): string {
  const described = program.commands.map((command) => {
    const usage = command
      .usage()
      .replace(/^\[options\] ?/, " ")
      .trimEnd();
    return `| \`${command.name()}${usage}\` | ${command.description()} |`;
  });
  const run = program.commands.find((command) => command.name() === "run");
  const shared = new Set(run?.options.map(({ flags }) => flags));
  const own = program.commands
    .filter((command) => command !== run)
    .flatMap((command) =>
      command.options
        .filter(({ flags }) => !shared.has(flags))
        .map((option) => `| \`${command.name()}\` | \`${option.flags}\` | ${cell(option.description)} |`),
    );
  return [
    "## Commands",
    "",
    "| command | what it does |",
    "|---|---|",
    ...described,
    "",
    "## Flags of `run`",
    "",
    "`replay` takes all of them; `init`, `cleanup` and `doctor` take those that name the deployment.",
    "",
    "| flag | meaning |",
    "|---|---|",
    ...(run?.options ?? []).map(({ flags, description }) => `| \`${flags}\` | ${cell(description)} |`),
    "",
    "## Flags of other commands",
    "",
    "| command | flag | meaning |",
    "|---|---|---|",
    ...own,
    "",
    "## Exit codes",
    "",
    "| code | meaning |",
    "|---|---|",
    ...Object.entries(EXIT_CODES)
      .sort(([a], [b]) => Number(a) - Number(b))
      .map(([code, meaning]) => `| ${code} | ${meaning} |`),
    "",
    "Where several hold: 130, then 5, 1, 4, 6, 3.",
    "",
  ].join("\n");
}

const cell = (text: string): string => text.replaceAll("|", "\\|");

/** The reference page, generated from the program itself: commands, options, settings, variables, exit codes. */
import type { CommandUnknownOpts as Command, Option } from "@commander-js/extra-typings";
import { PROFILE_SETTING_NAMES, PROFILE_SETTINGS } from "../config/profile/profile-settings.ts";
import { EXIT_CODES } from "../outcome/exit-code.ts";
import { examplesOf } from "./examples.ts";

const VARIABLES = {
  CUSTOMERS_URL: "base URL of the deployment",
  CUSTOMERS_TOKEN: "bearer token; it belongs to CUSTOMERS_URL, if that is set",
  CUSTOMERS_PROFILE: "profile in use",
  CUSTOMERS_UNDO: "how long changes are kept for customers undo: 7d, 12h; off",
  CUSTOMERS_NOTES: "set to anything: summaries and notes are printed without a terminal too",
  "http_proxy, https_proxy, all_proxy, no_proxy": "proxies, in upper case too, read as curl reads them",
  "VISUAL, EDITOR": "editor of customers edit",
  XDG_CONFIG_HOME: "directory of customers/config.toml; ~/.config otherwise",
  XDG_STATE_HOME: "directory of customers/undo.sqlite; ~/.local/state otherwise",
  TMPDIR: "directory of texts in an editor and of rows from a pipe",
  "NO_COLOR, FORCE_COLOR, TERM": "colour; TERM=dumb also stops the progress bar",
} as const satisfies Record<string, string>;

/** @param program with every option and command added. @returns Markdown. */
export function referencePage(program: Command): string {
  return [
    "# Reference",
    "",
    "Generated from the program by `bun cli/docs/write-reference.ts`; a test fails when it is out of date.",
    "",
    "## Commands",
    "",
    ...visibleCommands(program).flatMap((command) => section(program, command)),
    "## Options of every command",
    "",
    ...optionTable(program.createHelp().visibleOptions(program)),
    "",
    "## Variables",
    "",
    ...table(
      ["variable", "meaning"],
      Object.entries(VARIABLES).map(([name, meaning]) => [code(name), meaning]),
    ),
    "",
    "## Settings of a profile",
    "",
    ...table(
      ["setting", "kind", "meaning"],
      PROFILE_SETTING_NAMES.map((name) => [
        code(name),
        PROFILE_SETTINGS[name].kind,
        PROFILE_SETTINGS[name].description,
      ]),
    ),
    "",
    "## Exit codes",
    "",
    ...table(
      ["code", "meaning"],
      Object.values(EXIT_CODES).map((exit) => [String(exit.code), exit.meaning]),
    ),
    "",
  ].join("\n");
}

/** Leaves of the tree: `profile` itself does nothing. */
export function visibleCommands(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter(({ parent }) => parent !== null) // commander's own `profile help`
    .flatMap((child) => (child.commands.length > 0 ? visibleCommands(child) : [child]));
}

function section(program: Command, command: Command): string[] {
  const path = pathOf(command);
  // Those of a group stand at its first command.
  const examples =
    command.parent?.commands[0] === command || command.parent === program
      ? examplesOf(path.split(" ")[0] ?? "")
      : undefined;
  const options = command
    .createHelp()
    .visibleOptions(command)
    .filter(({ long }) => long !== "--help");
  const description = command.description();
  return [
    `### ${path}`,
    "",
    `    ${program.name()} ${path} ${command
      .usage()
      .replace("[options] ", options.length > 0 ? "[options] " : "")
      .trim()}`.trimEnd(),
    "",
    `${description.charAt(0).toUpperCase()}${description.slice(1)}.`,
    "",
    ...(options.length > 0 ? [...optionTable(options), ""] : []),
    ...(examples === undefined
      ? []
      : [examples.trim().replace("Examples:\n", "Examples:\n\n").replaceAll("\n  ", "\n    "), ""]),
  ];
}

function optionTable(options: readonly Option[]): string[] {
  return table(
    ["option", "meaning"],
    options.map(({ flags, description, argChoices }) => [
      code(flags),
      argChoices === undefined ? description : `${description} (${argChoices.join(", ")})`,
    ]),
  );
}

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(headings), line(headings.map(() => "---")), ...rows.map(line)];
}

function code(text: string): string {
  return `\`${text}\``;
}

/** `profile set` of the command `set` below `profile`. */
function pathOf(command: Command): string {
  const names: string[] = [];
  for (let at = command; at.parent !== null; at = at.parent) names.unshift(at.name());
  return names.join(" ");
}

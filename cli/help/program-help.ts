/** The program's own help: its options are those of every command, so they stand below the list of commands. */
import { type CommandUnknownOpts as Command, Help } from "@commander-js/extra-typings";

export function formatProgramHelp(command: Command, helper: Help): string {
  const format = (each: Help) => Help.prototype.formatHelp.call(each, command, each);
  if (command.parent !== null) return format(helper);
  const withoutOptions: Help = Object.create(helper, { visibleOptions: { value: () => [] } });
  const width = helper.padWidth(command, helper);
  const options = helper
    .visibleOptions(command)
    .map((option) =>
      helper.formatItem(helper.optionTerm(option), width, helper.optionDescription(option), helper),
    );
  return [format(withoutOptions), ...helper.formatItemList("Global Options:", options, helper)].join("\n");
}

import { type Command, Option } from "commander";
import { readSettings } from "../../config/config.ts";
import {
  flagOf,
  SETTING_NAMES,
  SETTINGS,
  type SettingName,
  type Settings,
  type SettingTexts,
  variableOf,
} from "../../config/settings.ts";
import { CommandRefused } from "../../domain/command-refused.ts";

/** Adds the options of these settings. A flag wins over the environment, which wins over the default. */
export function withSettings(command: Command, names: readonly SettingName[]): Command {
  for (const name of names) {
    const { fallback, meaning, isSwitch } = SETTINGS[name];
    const option = new Option(`${flagOf(name)} ${isSwitch ? "[0|1]" : "<value>"}`, meaning);
    option.env(variableOf(name));
    if (isSwitch) option.preset("1");
    if (fallback !== "") option.default(fallback);
    command.addOption(option);
  }
  return command;
}

/** Shells and service units write "not set" as an empty variable. */
export function ignoreEmptyVariables(): void {
  for (const name of SETTING_NAMES) {
    const variable = variableOf(name);
    if (process.env[variable] === "") delete process.env[variable];
  }
}

/** The options of a command as commander gives them, those of settings among them. */
export type CommandOptions = Readonly<Record<string, unknown>>;

/** @param options as commander parsed them */
export function settingTexts(options: CommandOptions): SettingTexts {
  const texts = SETTING_NAMES.flatMap((name): [SettingName, string][] => {
    const value = options[name];
    // `--no-…` of a switch.
    if (value === false) return [[name, "0"]];
    return typeof value === "string" ? [[name, value]] : [];
  });
  return Object.fromEntries(texts);
}

/** @throws CommandRefused with every fault */
export function settingsOf<Name extends SettingName>(
  options: CommandOptions,
  names: readonly Name[],
): Pick<Settings, Name> {
  const result = readSettings(settingTexts(options), names);
  if (result.ok) return result.value;
  throw settingsRefused(result.faults);
}

export function settingsRefused(faults: readonly string[]): CommandRefused {
  return new CommandRefused(["The settings are refused:", ...faults].join("\n  "));
}

/** `customers profile list|use|set|show`: named sets of settings, in a file that only the operator can read. */
import { resolve } from "node:path";
import { Option } from "@commander-js/extra-typings";
import type { Json, JsonObject } from "../client/json.ts";
import type { ProfileFile } from "../config/profile/profile-file.ts";
import {
  isSettingName,
  PROFILE_SETTING_NAMES,
  type Profile,
  profileRows,
} from "../config/profile/profile-settings.ts";
import { parseUndoMs } from "../config/values/duration.ts";
import { parseHeader, parseHeaderEnv } from "../config/values/header-option.ts";
import type { Invocation } from "../invocation.ts";
import { failure, UsageError } from "../outcome/failure.ts";
import { printFacts, printRows } from "../output/print-facts.ts";
import type { RegisterCommand } from "./common/command.ts";
import { changeProfiles, load, unknownProfile } from "./common/stored-profile.ts";

type SetOptions = {
  protected?: boolean;
  casing?: "lower" | "pascal";
  undo?: string;
  unset?: readonly string[];
};

export const registerProfile: RegisterCommand = (program, run) => {
  const profile = program
    .command("profile")
    .description("named settings: list, use, set, show, remove, rename");
  profile
    .command("list")
    .description("print the profiles")
    .action(
      run(async (invocation) => {
        const file = await load(invocation);
        const rows = [...file.profiles].map(
          ([name, { url, protected: guarded }]): JsonObject =>
            new Map<string, Json>([
              ["name", name],
              ["url", url ?? null],
              ["current", name === file.current],
              ["protected", guarded ?? false],
            ]),
        );
        await printRows(invocation, ["name", "url", "current", "protected"], rows);
        if (rows.length === 0) invocation.messages.note(`there is no profile yet in ${file.path}`);
        return undefined;
      }, "no-profile"),
    );
  profile
    .command("use <name>")
    .description("make a profile the one that is used where none is named")
    .action(
      run(async (invocation, name) => {
        const use = (file: ProfileFile) =>
          file.profiles.has(name) ? { ...file, current: name } : unknownProfile(name, file);
        return await changeProfiles(invocation, use, () => `profile "${name}" is now in use`);
      }, "no-profile"),
    );
  profile
    .command("set <name>")
    .description("store the --url, --header, --proxy … that are given with it in a profile")
    .option("--protected", "writes ask, or need --yes")
    .option("--no-protected", "writes do not ask")
    .addOption(
      new Option("--casing <casing>", "member names where nothing was read before").choices([
        "lower",
        "pascal",
      ]),
    )
    .option("--undo <time>", "keep what updates and deletions replace for customers undo: 7d, 12h; off", undo)
    .option(
      "--unset <setting>",
      "remove a setting (repeatable)",
      (setting: string, earlier: readonly string[] = []): readonly string[] => [...earlier, setting],
    )
    .action(
      run(async (invocation, name, options) => {
        const set = (file: ProfileFile) => {
          const changed = changedProfile(file.profiles.get(name) ?? {}, options, invocation);
          const removed = (options.unset ?? []).filter((setting) => !isSettingName(setting));
          const unknown = removed.find(
            (setting) => !file.problems.get(name)?.some((problem) => problem.includes(`"${setting}"`)),
          );
          if (unknown !== undefined) return unknownSetting(unknown);
          return { ...file, profiles: new Map([...file.profiles, [name, changed]]), removed: options.unset };
        };
        return await changeProfiles(invocation, set, (path) => `profile "${name}" stored in ${path}`);
      }, "no-profile"),
    );
  profile
    .command("remove <name>")
    .description("remove a profile, its token too")
    .action(
      run(async (invocation, name) => {
        const remove = (file: ProfileFile) => {
          if (!file.profiles.has(name)) return unknownProfile(name, file);
          const profiles = new Map([...file.profiles].filter(([other]) => other !== name));
          return { current: file.current === name ? undefined : file.current, profiles };
        };
        return await changeProfiles(invocation, remove, (path) => `profile "${name}" removed from ${path}`);
      }, "no-profile"),
    );
  profile
    .command("rename <name> <new-name>")
    .description("give a profile another name")
    .action(
      run(async (invocation, name, newName) => {
        const rename = (file: ProfileFile) => {
          if (!file.profiles.has(name)) return unknownProfile(name, file);
          if (file.profiles.has(newName)) {
            return failure(
              "usage",
              `there is a profile "${newName}" already`,
              "Choose another name, or remove it.",
            );
          }
          const profiles = [...file.profiles].map(
            ([other, settings]) => [other === name ? newName : other, settings] as const,
          );
          const current = file.current === name ? newName : file.current;
          return { current, profiles: new Map(profiles), renamed: { from: name, to: newName } };
        };
        return await changeProfiles(invocation, rename, () => `profile "${name}" is now "${newName}"`);
      }, "no-profile"),
    );
  profile
    .command("show [name]")
    .description("print a profile, secrets masked")
    .action(
      run(async (invocation, argument) => {
        const file = await load(invocation);
        const name = argument ?? file.current ?? "";
        const found = file.profiles.get(name);
        if (found === undefined) return unknownProfile(name, file);
        const row = new Map<string, Json>([["name", name], ...profileRows(found)]);
        await printFacts(invocation, row);
        return undefined;
      }, "no-profile"),
    );
};

function changedProfile(before: Profile, given: SetOptions, { env, flags }: Invocation): Profile {
  const options = { ...flags, ...given };
  if (options.tokenFile !== undefined || options.tokenStdin) {
    throw new UsageError(
      "profile set stores no token",
      "Store it with: customers login --profile NAME, which checks it first.",
    );
  }
  const after: Profile = { ...before };
  for (const setting of options.unset ?? []) {
    if (isSettingName(setting)) delete after[setting];
    if (setting === "token") delete after.keyring; // wherever it is kept
  }
  if (options.url !== undefined) after.url = options.url;
  if (options.proxy !== undefined) after.proxy = options.proxy;
  for (const name of ["cacert", "cert", "key"] as const) {
    // As an absolute path: the command runs in other directories later.
    if (options[name] !== undefined) after[name] = resolve(options[name]);
  }
  if (options.insecure !== undefined) after.insecure = options.insecure;
  if (options.timeout !== undefined) after.timeout = `${options.timeout}ms`;
  if (options.protected !== undefined) after.protected = options.protected;
  if (options.casing !== undefined) after.casing = options.casing;
  if (options.undo !== undefined) after.undo = options.undo;
  const headers = [
    ...(options.header ?? []).map((text) => parseHeader(text)),
    ...(options.headerEnv ?? []).map((text) => parseHeaderEnv(text, env)),
  ];
  if (headers.length > 0) {
    after.headers = {
      ...before.headers,
      ...Object.fromEntries(headers.map(({ name, value }) => [name, value])),
    };
  }
  return after;
}

/** As it was written, once it is known to be right. */
function undo(text: string): string {
  parseUndoMs(text);
  return text.trim();
}

function unknownSetting(setting: string) {
  return failure("usage", `there is no setting "${setting}"`, `Known: ${PROFILE_SETTING_NAMES.join(", ")}.`);
}

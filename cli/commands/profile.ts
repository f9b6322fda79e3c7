/** `customers profile list|use|set|show`: named sets of settings, in a file that only the operator can read. */
import { resolve } from "node:path";
import { Option } from "commander";
import { formatJson, type Json, type JsonObject } from "../client/json.ts";
import type { Flags } from "../config/flags.ts";
import { parseHeader, parseHeaderEnv } from "../config/header-option.ts";
import { changeProfileFile, type ProfileFile, profilePath, readProfileFile } from "../config/profile-file.ts";
import {
  isSettingName,
  PROFILE_SETTING_NAMES,
  type Profile,
  profileRows,
  profileSecrets,
} from "../config/profile-settings.ts";
import type { Invocation } from "../invocation.ts";
import { failure, UsageError } from "../outcome/failure.ts";
import { nearestOf } from "../outcome/nearest.ts";
import { outputFormat } from "../output/print-customers.ts";
import { formatRecord, formatTable } from "../output/table.ts";
import type { RegisterCommand } from "./command.ts";

type SetOptions = { protected?: boolean; casing?: "lower" | "pascal"; unset?: readonly string[] };

export const registerProfile: RegisterCommand = (program, run) => {
  const profile = program.command("profile").description("named settings: list, use, set, show");
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
        await print(invocation, rows, (style) => (rows.length === 0 ? "" : formatTable(rows, style)));
        if (rows.length === 0) invocation.messages.note(`there is no profile yet in ${file.path}`);
        return undefined;
      }, "no-profile"),
    );
  profile
    .command("use <name>")
    .description("make a profile the one that is used where none is named")
    .action(
      run(async (invocation, [name = ""]) => {
        const { path } = await load(invocation);
        const refused = await changeProfileFile(path, (file) =>
          file.profiles.has(name) ? { ...file, current: name } : unknownProfile(name, file),
        );
        if (refused !== undefined) return refused;
        invocation.messages.note(`profile "${name}" is now in use`);
        return undefined;
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
    .option(
      "--unset <setting>",
      "remove a setting (repeatable)",
      (setting: string, earlier: readonly string[] = []) => [...earlier, setting],
    )
    .action(
      run<SetOptions>(async (invocation, [name = ""], options) => {
        const { path } = await load(invocation);
        const refused = await changeProfileFile(path, (file) => {
          const changed = changedProfile(file.profiles.get(name) ?? {}, options, invocation);
          const removed = (options.unset ?? []).filter((setting) => !isSettingName(setting));
          const unknown = removed.find(
            (setting) => !file.problems.get(name)?.some((problem) => problem.includes(`"${setting}"`)),
          );
          if (unknown !== undefined) return unknownSetting(unknown);
          return { ...file, profiles: new Map([...file.profiles, [name, changed]]), removed: options.unset };
        });
        if (refused === undefined) invocation.messages.note(`profile "${name}" stored in ${path}`);
        return refused;
      }, "no-profile"),
    );
  profile
    .command("show [name]")
    .description("print a profile, secrets masked")
    .action(
      run(async (invocation, [argument]) => {
        const file = await load(invocation);
        const name = argument ?? file.current ?? "";
        const found = file.profiles.get(name);
        if (found === undefined) return unknownProfile(name, file);
        const row = new Map<string, Json>([["name", name], ...profileRows(found)]);
        await print(invocation, [row], (style) => formatRecord(row, style), row);
        return undefined;
      }, "no-profile"),
    );
};

export async function load({ env, messages }: Pick<Invocation, "env" | "messages">): Promise<ProfileFile> {
  const file = await readProfileFile(profilePath(env));
  for (const profile of file.profiles.values()) messages.hide(profileSecrets(profile));
  for (const warning of file.warnings) messages.caution(warning);
  return file;
}

function changedProfile(
  before: Profile,
  options: SetOptions & Flags,
  { settings, env }: Invocation,
): Profile {
  if (options.tokenFile !== undefined || options.tokenStdin) {
    throw new UsageError(
      "profile set stores no token",
      "Store it with: customers login --profile NAME, which checks it first.",
    );
  }
  const after: Profile = { ...before };
  for (const setting of options.unset ?? []) {
    if (isSettingName(setting)) delete after[setting];
  }
  if (options.url !== undefined && settings.url !== undefined) after.url = settings.url;
  if (options.proxy !== undefined) after.proxy = options.proxy;
  for (const name of ["cacert", "cert", "key"] as const) {
    // As an absolute path: the command runs in other directories later.
    if (options[name] !== undefined) after[name] = resolve(options[name]);
  }
  if (options.insecure !== undefined) after.insecure = options.insecure;
  if (options.timeout !== undefined) after.timeout = `${options.timeout}ms`;
  if (options.protected !== undefined) after.protected = options.protected;
  if (options.casing !== undefined) after.casing = options.casing;
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

function unknownSetting(setting: string) {
  return failure("usage", `there is no setting "${setting}"`, `Known: ${PROFILE_SETTING_NAMES.join(", ")}.`);
}

function unknownProfile(name: string, file: ProfileFile) {
  const known = [...file.profiles.keys()];
  const near = nearestOf(name, known);
  return failure(
    "usage",
    name === "" ? "no profile is in use" : `there is no profile "${name}" in ${file.path}`,
    near !== undefined
      ? `Did you mean "${near}"?`
      : known.length === 0
        ? "Make one with: customers profile set NAME --url URL"
        : `Known profiles: ${known.join(", ")}.`,
  );
}

async function print(
  invocation: Invocation,
  rows: readonly JsonObject[],
  table: (style: Invocation["terminal"]) => string,
  value: Json = rows,
): Promise<void> {
  const format = outputFormat(invocation);
  await invocation.out.write(format === "table" ? table(invocation.terminal) : `${formatJson(value)}\n`);
}

/** `$XDG_CONFIG_HOME/customers/config.toml`: named profiles, mode 0600 because tokens may stand in it. */
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { readText } from "../../files/read-text.ts";
import { systemCode } from "../../files/system-code.ts";
import { openDraft, writeAtomically } from "../../files/write-atomically.ts";
import { type Failure, isFailure, UsageError } from "../../outcome/failure.ts";
import { xdgPath } from "../sources/xdg-path.ts";
import { asTable, type Profile, readProfile } from "./profile-settings.ts";

export type ProfileFile = {
  path: string;
  /** The profile that `profile use` chose. */
  current: string | undefined;
  /** The valid settings of each profile. */
  profiles: ReadonlyMap<string, Profile>;
  /** What is wrong in a profile, by its name: an error where that profile is used. */
  problems: ReadonlyMap<string, readonly string[]>;
  /** Printed once on standard error. */
  warnings: readonly string[];
};

export function profilePath(env: Readonly<Record<string, string | undefined>>): string {
  return xdgPath(env, "XDG_CONFIG_HOME", ".config", "config.toml");
}

export function emptyProfileFile(path: string): ProfileFile {
  return { path, current: undefined, profiles: new Map(), problems: new Map(), warnings: [] };
}

const CORRECT = "Correct the file, or move it away.";

/**
 * A missing file is an empty one. So is one in a directory that is closed to this user, with a warning: a service may
 * run with somebody else's HOME and with settings of the environment. A malformed one is a UsageError that names the place.
 */
export async function readProfileFile(path: string): Promise<ProfileFile> {
  let text: string;
  try {
    text = await readText(path);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return emptyProfileFile(path);
    if ((code === "EACCES" || code === "EPERM") && !existsSync(path)) {
      const warning = `warning: the profile file ${path} can't be reached (${code}): no profile is used`;
      return { ...emptyProfileFile(path), warnings: [warning] };
    }
    throw new UsageError(`the profile file ${path} can't be read (${code})`, CORRECT);
  }
  return profileFileOf(path, await parseToml(path, text), statSync(path).mode & 0o777);
}

async function parseToml(path: string, text: string): Promise<Record<string, unknown>> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The message of TomlError quotes the line, which may hold a token: only the place is printed.
    const place = `at line ${error.line}, column ${error.column}`;
    throw new UsageError(`the profile file ${path} is not valid TOML ${place}`, CORRECT);
  }
}

function profileFileOf(path: string, content: Record<string, unknown>, mode: number): ProfileFile {
  const profiles = new Map<string, Profile>();
  const problems = new Map<string, readonly string[]>();
  for (const [name, value] of Object.entries(asTable(content["profiles"]) ?? {})) {
    const table = asTable(value);
    const read =
      table === undefined ? { profile: {}, problems: [`${name} is not a table`] } : readProfile(table);
    profiles.set(name, read.profile);
    if (read.problems.length > 0) problems.set(name, read.problems);
  }
  const { current } = content;
  const warnings = [
    ...((mode & 0o077) === 0
      ? []
      : [
          `warning: ${path} has mode ${mode.toString(8).padStart(4, "0")}${mode & 0o022 ? ", so others can change it," : ""} and may hold a token; correct that with: chmod 600 ${path}`,
        ]),
    ...Object.keys(content)
      .filter((key) => key !== "current" && key !== "profiles")
      .map((key) => `warning: ${path}: unknown key "${key}"`),
    ...[...problems].flatMap(([name, all]) =>
      all.map((problem) => `warning: profile "${name}" in ${path}: ${problem}`),
    ),
  ];
  return { path, current: typeof current === "string" ? current : undefined, profiles, problems, warnings };
}

/** What a change leaves behind. */
export type ProfileContent = Pick<ProfileFile, "current" | "profiles"> & {
  /** Unknown keys that are to be removed from profiles which change. */
  removed?: readonly string[] | undefined;
  /** A profile that keeps everything, unknown keys too, under another name. */
  renamed?: { from: string; to: string };
};

/**
 * Changes the file as it is now, and not as it was when the command began: another command may have written
 * since. One process at a time reads and writes, so that no change is lost.
 * @param change what is to stand there instead, or why nothing is to be changed.
 * @returns the refusal of `change`. A UsageError says why the file can't be written.
 */
export async function changeProfileFile(
  path: string,
  change: (file: ProfileFile) => ProfileContent | Failure,
): Promise<Failure | undefined> {
  const { withExclusiveLock } = await import("../../files/exclusive-lock.ts");
  const done = await writing(path, async () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    return await withExclusiveLock(`${path}.lock`, async () => {
      const file = await readProfileFile(path);
      const changed = change(file);
      if (isFailure(changed)) return changed;
      await writeProfileFile(path, file, changed);
      return undefined;
    });
  });
  if (done !== "locked") return done;
  throw new UsageError(
    `the profile file ${path} is being changed by another process, which does not end`,
    `It has ${path}.lock open: end it, and run this again.`,
  );
}

/** Throws a UsageError where the file can't be written: known before a token is asked for or sent. */
export async function checkProfileFile(path: string): Promise<void> {
  await writing(path, async () => {
    let made = path;
    while (!existsSync(dirname(made))) made = dirname(made);
    openDraft(made, 0o600).discard();
  });
}

/** Writes only what changed, so that comments and unknown keys stay. */
async function writeProfileFile(path: string, before: ProfileFile, after: ProfileContent): Promise<void> {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const { editToml } = await import("./toml-edit.ts");
  const content = await parseToml(path, text);
  const wanted = contentWith(content, before, after);
  const edited = editToml(text, content, wanted);
  const result = await parseToml(path, edited).catch(() => undefined);
  if (!Bun.deepEquals(result && withoutEmptyTable(result), withoutEmptyTable(wanted))) {
    throw new UsageError(
      `the profile file ${path} is written in a form that this command cannot change without damage`,
      "Write each profile as a table of its own, [profiles.NAME] with one setting a line, or change the file in an editor.",
    );
  }
  writeAtomically(path, edited, 0o600);
}

/** After the last profile is removed, no heading says that there are none. */
function withoutEmptyTable({ profiles, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return Object.keys(asTable(profiles) ?? {}).length === 0 ? rest : { ...rest, profiles };
}

/** The whole content as it shall be: a profile that did not change keeps what this version does not know. */
function contentWith(
  content: Record<string, unknown>,
  before: ProfileFile,
  after: ProfileContent,
): Record<string, unknown> {
  const { current: _, profiles: __, ...rest } = content;
  const tables = asTable(content["profiles"]) ?? {};
  const profiles: Record<string, unknown> = {};
  for (const [name, profile] of after.profiles) {
    const earlier = after.renamed?.to === name ? after.renamed.from : name;
    const table = asTable(tables[earlier]) ?? {};
    const known = before.profiles.get(earlier) ?? {};
    const kept = Object.entries(table).filter(([key]) => !(key in known) && !after.removed?.includes(key));
    profiles[name] = { ...Object.fromEntries(kept), ...profile };
  }
  return {
    ...rest,
    ...(after.current === undefined ? {} : { current: after.current }),
    ...(after.profiles.size === 0 && content["profiles"] === undefined ? {} : { profiles }),
  };
}

/** What the system or the lock says against it is reported; it is no bug. */
async function writing<Value>(path: string, work: () => Promise<Value>): Promise<Value> {
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === false) {
      throw new UsageError(
        `the profile file ${path} is not a regular file, and can't be changed`,
        "Change what writes to it, or set XDG_CONFIG_HOME to another directory.",
      );
    }
    return await work();
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      `the profile file ${path} can't be written (${systemCode(error)})`,
      "Make its directory writable, or set XDG_CONFIG_HOME to another one. Without a profile, settings are given as flags or in the environment.",
    );
  }
}

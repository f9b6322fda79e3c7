/** `$XDG_CONFIG_HOME/customers/config.toml`: named profiles, mode 0600 because tokens may stand in it. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { type Failure, UsageError } from "../outcome/failure.ts";

export type Profile = {
  url?: string;
  token?: string;
  headers?: Record<string, string>;
  proxy?: string;
  cacert?: string;
  insecure?: boolean;
  /** As on the command line: `30`, `30s`, `500ms`, `2m`. */
  timeout?: string | number;
  /** Writes ask, or need --yes. */
  protected?: boolean;
  /** Member names in bodies where no representation was read: `name` or `Name`. */
  casing?: "lower" | "pascal";
};

export type ProfileFile = {
  path: string;
  /** The profile that `profile use` chose. */
  current: string | undefined;
  profiles: ReadonlyMap<string, Profile>;
  /** Said once on stderr: the file can be read by others. */
  warning: string | undefined;
};

const KINDS = {
  url: "string",
  token: "string",
  headers: "table of strings",
  proxy: "string",
  cacert: "string",
  insecure: "boolean",
  timeout: "string or number",
  protected: "boolean",
  casing: "string",
} as const satisfies Record<keyof Profile, string>;

export const PROFILE_SETTINGS = Object.keys(KINDS) as (keyof Profile)[];

export function profilePath(env: Readonly<Record<string, string | undefined>>): string {
  // An XDG path that is not absolute must be ignored, says its specification.
  const configured = env["XDG_CONFIG_HOME"];
  const base = configured?.startsWith("/") ? configured : join(env["HOME"] || homedir(), ".config");
  return join(base, "customers", "config.toml");
}

export function emptyProfileFile(path: string): ProfileFile {
  return { path, current: undefined, profiles: new Map(), warning: undefined };
}

const MEND = "Mend the file, or move it away.";

/**
 * A missing file is an empty one; one whose directory is closed to these rights is too, with a warning: a service may run with
 * somebody else's HOME, and settings of the environment. A malformed one is a UsageError that names the place.
 */
export async function readProfileFile(path: string): Promise<ProfileFile> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return emptyProfileFile(path);
    if ((code === "EACCES" || code === "EPERM") && !existsSync(path))
      return {
        ...emptyProfileFile(path),
        warning: `warning: the profile file ${path} can't be reached (${code}): no profile is used`,
      };
    throw new UsageError(`the profile file ${path} can't be read (${message})`, MEND);
  }
  const { parse, TomlError } = await import("smol-toml");
  let content: Record<string, unknown>;
  try {
    content = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The message of TomlError quotes the line, which may hold a token: only the place is told.
    const place = `at line ${error.line}, column ${error.column}`;
    throw new UsageError(`the profile file ${path} is not valid TOML ${place}`, MEND);
  }
  const profiles = new Map<string, Profile>();
  for (const [name, table] of Object.entries(asTable(content["profiles"]) ?? {})) {
    profiles.set(name, checkedProfile(table, `profile "${name}" in ${path}`));
  }
  const current = content["current"];
  const mode = statSync(path).mode & 0o777;
  return {
    path,
    current: typeof current === "string" ? current : undefined,
    profiles,
    warning:
      (mode & 0o077) === 0
        ? undefined
        : `warning: ${path} has mode ${mode.toString(8).padStart(4, "0")} and may hold a token; mend it with: chmod 600 ${path}`,
  };
}

/** What a change leaves behind. */
export type ProfileContent = Pick<ProfileFile, "current" | "profiles">;

/**
 * Changes the file as it is now, and not as it was when the command began: another command may have written
 * since. One process at a time reads and writes, so that no change is lost.
 * @param change what is to stand there instead, or why nothing is to be changed.
 * @returns the refusal of `change`. A UsageError tells why the file can't be written.
 */
export async function changeProfileFile(
  path: string,
  change: (file: ProfileFile) => ProfileContent | Failure,
): Promise<Failure | undefined> {
  const { withExclusiveLock } = await import("../files/exclusive-lock.ts");
  const done = await writing(path, async () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    return await withExclusiveLock(`${path}.lock`, async () => {
      const changed = change(await readProfileFile(path));
      if ("exit" in changed) return changed;
      await writeProfileFile(path, changed);
      return undefined;
    });
  });
  if (done !== "locked") return done;
  throw new UsageError(
    `the profile file ${path} is being changed by another process, which does not end`,
    `It has ${path}.lock open: end it, and run this again.`,
  );
}

/** Written beside and renamed, so that an interruption leaves the old file or the new one. */
async function writeProfileFile(path: string, { current, profiles }: ProfileContent): Promise<void> {
  const { stringify } = await import("smol-toml");
  const text = stringify({
    ...(current === undefined ? {} : { current }),
    profiles: Object.fromEntries(profiles),
  });
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(draft, text, { mode: 0o600 });
    chmodSync(draft, 0o600);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** What the system or the lock says against it is no fault of this program. */
async function writing<Value>(path: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (typeof code !== "string" || !/^(?:E[A-Z0-9]+|SQLITE_.*)$/.test(code)) throw error;
    throw new UsageError(
      `the profile file ${path} can't be written (${code})`,
      "Make its directory writable, or set XDG_CONFIG_HOME to another one. Without a profile, settings are given as flags or in the environment.",
    );
  }
}

function asTable(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

function checkedProfile(value: unknown, where: string): Profile {
  const table = asTable(value);
  if (table === undefined) throw new UsageError(`${where} is not a table`);
  for (const [setting, content] of Object.entries(table)) {
    if (!(setting in KINDS)) {
      throw new UsageError(
        `${where}: unknown setting "${setting}"`,
        `Known: ${PROFILE_SETTINGS.join(", ")}.`,
      );
    }
    const kind = KINDS[setting as keyof Profile];
    const headers = asTable(content);
    const fits =
      kind === "table of strings"
        ? headers !== undefined && Object.values(headers).every((header) => typeof header === "string")
        : kind.split(" or ").includes(typeof content);
    if (!fits) throw new UsageError(`${where}: ${setting} must be a ${kind}`);
  }
  return table as Profile;
}

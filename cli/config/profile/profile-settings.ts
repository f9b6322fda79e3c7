/** The settings that a profile may hold, each declared once: its kind, its check, how it is shown, what is secret. */
import { UsageError } from "../../outcome/failure.ts";
import { originOf, parseBaseUrl } from "../values/base-url.ts";
import { parseDurationMs, parseUndoMs } from "../values/duration.ts";
import { parseHeader, SECRET_NAME } from "../values/header-option.ts";
import { maskedProxyUrl, parseProxyUrl, proxySecrets } from "../values/proxy.ts";
import { checkedToken } from "../values/token-text.ts";

export type Profile = {
  url?: string;
  token?: string;
  keyring?: string;
  headers?: Record<string, string>;
  proxy?: string;
  cacert?: string;
  cert?: string;
  key?: string;
  insecure?: boolean;
  timeout?: string | number;
  protected?: boolean;
  casing?: "lower" | "pascal";
  undo?: string;
};

type Setting<Value> = {
  /** Of what it does, for the reference. */
  description: string;
  /** What the file holds, for messages and the reference. */
  kind: string;
  fits(value: unknown): boolean;
  /** Throws a UsageError that says what is wrong with the value. */
  check?(value: Value): void;
  /** The parts that must never appear in any output. */
  secrets?(value: Value): readonly string[];
  /** How `profile show` prints it: rows of name and value. */
  shown?(value: Value): readonly (readonly [name: string, value: string | boolean])[];
};

const MASK = "***";
const isString = (value: unknown): boolean => typeof value === "string";
const isBoolean = (value: unknown): boolean => typeof value === "boolean";

const file = (description: string, option: string): Setting<string> => ({
  description,
  kind: "absolute path",
  fits: isString,
  check: (path) => {
    // A relative path would name another file in every directory where the command runs.
    if (!path.startsWith("/")) {
      throw new UsageError(
        `"${path}" is a relative path`,
        `Store it again with: customers profile set NAME ${option} PATH, which makes it absolute.`,
      );
    }
  },
});

export const PROFILE_SETTINGS: { [Name in keyof Profile]-?: Setting<NonNullable<Profile[Name]>> } = {
  url: {
    description: "base URL of the deployment",
    kind: "string",
    fits: isString,
    check: (url) => void parseBaseUrl(url, "url"),
  },
  token: {
    description: "bearer token; customers login stores it",
    kind: "string",
    fits: isString,
    check: (token) => void checkedToken(token, "token"),
    secrets: (token) => [token],
    shown: () => [["token", MASK]],
  },
  keyring: {
    description: "entry of the system keyring that holds the token; customers login stores it",
    kind: "string",
    fits: isString,
    shown: () => [["token", `${MASK} (system keyring)`]],
  },
  headers: {
    description: "headers of every request, a table of names and values",
    kind: "table of strings",
    fits: (value) => asTable(value) !== undefined && Object.values(asTable(value) ?? {}).every(isString),
    check: (headers) => {
      for (const [name, value] of Object.entries(headers)) parseHeader(`${name}: ${value}`, "headers");
    },
    // A header that somebody stored may hold a secret whatever its name says.
    secrets: (headers) => Object.values(headers),
    shown: (headers) => Object.keys(headers).map((name) => [`header ${name}`, MASK]),
  },
  proxy: {
    description: "HTTP proxy of every request",
    kind: "string",
    fits: isString,
    check: (proxy) => void (proxy === "" || parseProxyUrl(proxy, "proxy")),
    secrets: proxySecrets,
    shown: (proxy) => [["proxy", maskedProxyUrl(proxy)]],
  },
  cacert: file("certificates (PEM) that are trusted instead of the system's", "--cacert"),
  cert: file("client certificate (PEM)", "--cert"),
  key: file("private key of the client certificate (PEM)", "--key"),
  insecure: { description: "do not check the server's certificate", kind: "boolean", fits: isBoolean },
  timeout: {
    description: "limit in time of the work with the server: 30, 500ms, 2m",
    kind: "string or number",
    fits: (value) => isString(value) || typeof value === "number",
    check: (timeout) => void parseDurationMs(String(timeout)),
  },
  protected: { description: "writes ask, or need --yes", kind: "boolean", fits: isBoolean },
  casing: {
    description: "member names where nothing was read before: lower (name) or pascal (Name)",
    kind: '"lower" or "pascal"',
    fits: (value) => value === "lower" || value === "pascal",
  },
  undo: {
    description: "keep what updates and deletions replace for customers undo, this long: 7d, 12h; off",
    kind: "string",
    fits: isString,
    check: (undo) => void parseUndoMs(undo),
  },
};

type SettingName = keyof Profile;
export const PROFILE_SETTING_NAMES = Object.keys(PROFILE_SETTINGS) as SettingName[];

/** The valid settings of a table of the file, and what is wrong with the others, one sentence each. */
export function readProfile(table: Record<string, unknown>): { profile: Profile; problems: string[] } {
  const profile: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, value] of Object.entries(table)) {
    const problem = isSettingName(name)
      ? problemOf(PROFILE_SETTINGS[name] as Setting<unknown>, name, value)
      : `unknown setting "${name}" (known: ${PROFILE_SETTING_NAMES.join(", ")})`;
    if (problem === undefined) profile[name] = value;
    else problems.push(problem);
  }
  // Each value passed the check of its setting.
  return { profile: profile as Profile, problems };
}

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(PROFILE_SETTINGS, name);
}

function problemOf(setting: Setting<unknown>, name: string, value: unknown): string | undefined {
  if (!setting.fits(value)) return `${name} must be a ${setting.kind}`;
  try {
    setting.check?.(value);
    return undefined;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const said = error.message.startsWith(`${name}: `) ? error.message : `${name}: ${error.message}`;
    return error.hint === undefined ? said : `${said}. ${error.hint}`;
  }
}

/** Everything in a profile that must never appear in any output. */
export function profileSecrets(profile: Profile): string[] {
  return each(profile).flatMap(({ setting, value }) => [...(setting.secrets?.(value) ?? [])]);
}

/** A profile as rows of name and value, secrets masked. */
export function profileRows(profile: Profile): (readonly [string, string | boolean])[] {
  return each(profile).flatMap(({ name, setting, value }) => [
    ...(setting.shown?.(value) ?? [[name, typeof value === "boolean" ? value : String(value)] as const]),
  ]);
}

function each(profile: Profile): { name: SettingName; setting: Setting<unknown>; value: unknown }[] {
  return PROFILE_SETTING_NAMES.flatMap((name) =>
    profile[name] === undefined
      ? []
      : [{ name, setting: PROFILE_SETTINGS[name] as Setting<unknown>, value: profile[name] }],
  );
}

/** True where a profile holds credentials for the server of its URL. */
export function holdsCredentials({ token, keyring, headers = {} }: Profile): boolean {
  return (token ?? keyring) !== undefined || Object.keys(headers).some((name) => SECRET_NAME.test(name));
}

/** True where the profile has no URL, or its URL has this origin: a profile is used for no other. */
export function isFor({ url }: Profile, origin: string | undefined): boolean {
  return url === undefined || origin === undefined || originOf(url) === origin;
}

export function asTable(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date)
    ? (value as Record<string, unknown>)
    : undefined;
}

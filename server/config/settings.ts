import { isIP } from "node:net";
import { networkFault, TrustedProxies } from "../domain/network/trusted-proxies.ts";
import type { Policy } from "../domain/policy/policy.ts";
import { maskPassword } from "../domain/text/mask-password.ts";
import { DEFAULT_DATABASE_URL, databaseUrlFault, MEMORY_URL } from "../storage/database-url/open-storage.ts";
import { DATABASE_MEMORY_MIB, LOCK_WAIT_MS } from "../storage/storage.ts";
import { readPolicyFile } from "./policy-file.ts";

export type Reading<Value> =
  | { readonly ok: true; readonly value: Value }
  /** Each fault completes the sentence `PORT is "x": …`. */
  | { readonly ok: false; readonly faults: readonly string[] };

type Setting<Value> = {
  /** The default; "" where there is none. */
  readonly fallback: string;
  readonly meaning: string;
  readonly isSwitch: boolean;
  readonly read: (text: string) => Reading<Value>;
};

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
const LOG_FORMATS = ["json", "text"] as const;

/** Bun counts the idle time of a connection in one byte. */
const IDLE_TIMEOUT_SECONDS_MAX = 255;
const STOP_SECONDS_MAX = 3_600;
const LOCK_WAIT_SECONDS_MAX = 60;
const AUDIT_RETENTION_DAYS_MAX = 36_500;

/**
 * Every setting of the service. The key gives the names: `idleTimeout` is IDLE_TIMEOUT in the environment and
 * `--idle-timeout` on the command line. Help, validation
 * and the table in docs/settings.md follow from these rows.
 */
export const SETTINGS = {
  host: setting("127.0.0.1", "Address to listen on.", (text) =>
    isHost(text)
      ? is(text)
      : must(
          "be one address or name of this machine, such as 127.0.0.1, ::1, localhost, or 0.0.0.0 for all, without brackets, blanks and a port",
        ),
  ),
  port: setting("8080", "Port to listen on; 0 picks a free one.", readPort),
  reusePort: toggle(
    "0",
    "`1`: several services on this machine listen on one port, and the kernel spreads connections over them.",
    readToggle,
  ),
  adminPort: setting(
    "",
    "Port of a second listener for /metrics, /healthz and /readyz; the first then serves no metrics. Empty: none.",
    (text) => (text === "" ? is(null) : readPort(text)),
  ),
  databaseUrl: setting(
    DEFAULT_DATABASE_URL,
    `\`sqlite:FILE\`; \`${MEMORY_URL}\` for a database that ends with the service; or \`postgres://USER@HOST:PORT/DATABASE\`.`,
    (text) => {
      const fault = databaseUrlFault(text);
      return fault === null ? is(text) : { ok: false, faults: [`it ${fault}`] };
    },
  ),
  databaseCa: setting(
    "",
    "Certificates (PEM) that may vouch for a PostgreSQL server. Empty: those of the runtime.",
    (text) => is(text === "" ? null : text),
  ),
  databaseStandby: word(
    "any",
    ["any", "synchronous"],
    "`synchronous`: a PostgreSQL server whose commits wait for no standby is refused; `any`: it is reported in the log.",
  ),
  samples: toggle(
    "",
    "`1`: the first start creates sample customers; `0`: it creates none. Empty: only in the default database and in memory.",
    (text) => (text === "" ? is(null) : readToggle(text)),
  ),
  databaseMemoryMib: setting(
    `${DATABASE_MEMORY_MIB}`,
    `Memory for pages of the database. ${DATABASE_MEMORY_MIB} MiB hold a million customers; a smaller database takes its size.`,
    (text) => readNumber(text, 8, 65_536),
  ),
  lockWait: setting(
    `${LOCK_WAIT_MS / 1000}`,
    "SQLite: seconds that writes, and the start of a service or command, wait for a lock that another process holds.",
    (text) => readSeconds(text, 0, LOCK_WAIT_SECONDS_MAX),
  ),
  policyFile: setting(
    "",
    "Roles, rights and enforcement (TOML). Empty: the built-in policy.",
    (text): Reading<{ readonly path: string | null; readonly policy: Policy }> => {
      const path = text === "" ? null : text;
      const result = readPolicyFile(path);
      return result.ok ? is({ path, policy: result.policy }) : result;
    },
  ),
  auditRetentionDays: setting(
    "",
    "Days after which rows of the audit trail are deleted, in small parts. Empty: never.",
    (text) => (text === "" ? is(null) : readNumber(text, 1, AUDIT_RETENTION_DAYS_MAX)),
  ),
  metricsAccess: word(
    "token",
    ["token", "public"],
    "`token`: for tokens with the operation metrics; `public`: for anyone, without caller labels.",
  ),
  logLevel: word("info", LOG_LEVELS, `One of ${LOG_LEVELS.join(", ")}.`),
  logFormat: word("json", LOG_FORMATS, "`json`, or `text` for people."),
  tlsCertFile: setting("", "Certificate chain (PEM); with the key: HTTPS.", is),
  tlsKeyFile: setting("", "Private key of the certificate (PEM).", is),
  corsOrigins: setting(
    "",
    "Origins of browser pages that may call, separated by commas; `*` for any. Empty: none.",
    readOrigins,
  ),
  corsHeaders: setting(
    "",
    "Further request headers that such pages may send, separated by commas, such as `traceparent`; `*` for any.",
    readHeaderNames,
  ),
  publicUrl: setting(
    "",
    "Address under which clients reach the service, for Location, Link and problem types. Empty: paths.",
    (text) => {
      if (text === "") return is("");
      if (!isBaseUrl(text)) {
        return must("be an http or https address without a query, such as https://api.example.com/crm");
      }
      if (/%(?![\da-f]{2})/i.test(text)) return must("have two hexadecimal digits behind each %");
      // As ASCII, which headers need.
      return is(new URL(text).href.replace(/\/+$/, ""));
    },
  ),
  trustedProxies: setting(
    "",
    "Proxies whose `Forwarded` or `X-Forwarded-For` names the client: addresses and networks such as `10.0.0.0/8`, separated by commas. Empty: none.",
    readProxies,
  ),
  idleTimeout: setting(
    "75",
    "Seconds after which an idle connection is closed, and within which a body must arrive; Bun rounds them up to a multiple of 4. Keep it above the idle time of the proxy in front.",
    (text) => readNumber(text, 1, IDLE_TIMEOUT_SECONDS_MAX),
  ),
  stopGrace: setting(
    "0.25",
    "Seconds between the signal to stop and the last accepted connection; /readyz is 503 meanwhile.",
    (text) => readSeconds(text, 0, STOP_SECONDS_MAX),
  ),
  stopDrain: setting("10", "Seconds that requests in flight may take to finish after that.", (text) =>
    readSeconds(text, 0, STOP_SECONDS_MAX),
  ),
};

type SettingTable = typeof SETTINGS;
export type SettingName = keyof SettingTable;
export type Settings = {
  readonly [Name in SettingName]: SettingTable[Name] extends Setting<infer Value> ? Value : never;
};
export type SettingTexts = Readonly<Partial<Record<SettingName, string>>>;

export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[];

/** Sample customers are for trying the service out, and not for the database of an operator. */
export function hasSamples({ samples, databaseUrl }: Pick<Settings, "samples" | "databaseUrl">): boolean {
  return samples ?? [DEFAULT_DATABASE_URL, MEMORY_URL].includes(databaseUrl);
}

/** `idleTimeout` as the environment names it: IDLE_TIMEOUT. */
export function variableOf(name: SettingName): string {
  return name.replace(/[A-Z]/g, "_$&").toUpperCase();
}

/** `idleTimeout` as the command line names it: --idle-timeout. */
export function flagOf(name: SettingName): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

export function settingFault(name: SettingName, text: string, fault: string): string {
  return `${variableOf(name)} is ${JSON.stringify(shownText(name, text))}: ${fault}.`;
}

/** How the text of a certificate or a key begins. */
export const PEM_BEGIN = "-----BEGIN ";

function shownText(name: SettingName, text: string): string {
  // The text of a key where its path belongs.
  if (text.includes(PEM_BEGIN)) return `${PEM_BEGIN}…`;
  // PUBLIC_URL is refused for holding a password, among other things.
  return name === "databaseUrl" || name === "publicUrl" ? maskPassword(text) : text;
}

function setting<Value>(
  fallback: string,
  meaning: string,
  read: (text: string) => Reading<Value>,
): Setting<Value> {
  return { fallback, meaning, read, isSwitch: false };
}

function toggle<Value>(...row: Parameters<typeof setting<Value>>): Setting<Value> {
  return { ...setting(...row), isSwitch: true };
}

function readToggle(text: string): Reading<boolean> {
  return text === "0" || text === "1" ? is(text === "1") : must("be 0 or 1");
}

function word<Word extends string>(fallback: Word, words: readonly Word[], meaning: string): Setting<Word> {
  return setting(fallback, meaning, (text) => {
    const found = words.find((candidate) => candidate === text);
    return found === undefined ? must(`be one of ${words.join(", ")}`) : is(found);
  });
}

function is<Value>(value: Value): Reading<Value> {
  return { ok: true, value };
}

function must(be: string): Reading<never> {
  return { ok: false, faults: [`it must ${be}`] };
}

function readPort(text: string): Reading<number> {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  return port <= 65_535 ? is(port) : must("be a number from 0 to 65535; 0 picks a free port");
}

function readNumber(text: string, least: number, most: number): Reading<number> {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  return number >= least && number <= most ? is(number) : must(`be a whole number from ${least} to ${most}`);
}

function readSeconds(text: string, least: number, most: number): Reading<number> {
  const seconds = /^\d{1,6}(?:\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
  return seconds >= least && seconds <= most
    ? is(seconds)
    : must(
        `be a number of seconds from ${least} to ${most}, such as 2 or 0.25, with at most three digits behind the point`,
      );
}

function readOrigins(text: string): Reading<readonly string[]> {
  if (text === "*") return is([text]);
  const origins = readList(text);
  if (!origins.ok || origins.value.every(isOrigin)) return origins;
  return must(
    'list each origin such as https://app.example.com (scheme://host[:port], without a *), or be "*" alone',
  );
}

function readHeaderNames(text: string): Reading<readonly string[]> {
  // Any header (Fetch standard, "CORS-preflight fetch"), since pages send no cookies here.
  if (text === "*") return is([text]);
  const names = readList(text);
  if (!names.ok || names.value.every((name) => name !== "*" && /^[!#$%&'*+.^_`|~\w-]+$/.test(name)))
    return names;
  return must('list each header by its name, such as traceparent, tracestate, or be "*" alone');
}

function readProxies(text: string): Reading<TrustedProxies | null> {
  const networks = readList(text);
  if (!networks.ok) return networks;
  const faults = networks.value.flatMap((network) => {
    const fault = networkFault(network);
    return fault === null
      ? []
      : [`it lists ${JSON.stringify(network)}, which ${fault}; list networks such as 10.0.0.0/8`];
  });
  if (faults.length > 0) return { ok: false, faults };
  return is(networks.value.length === 0 ? null : new TrustedProxies(networks.value));
}

/** Reads the elements of a list separated by commas; blanks around them do not count. */
function readList(text: string): Reading<readonly string[]> {
  if (text === "") return is([]);
  const elements = text.split(",").map((element) => element.trim());
  return elements.includes("")
    ? { ok: false, faults: ["it has an empty element; separate the elements by one comma each"] }
    : is(elements);
}

const HOST_LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?";
/** The last label of a name is not digits alone: what ends in a number is read as an address of IPv4. */
const HOST_NAME = new RegExp(`^(?:${HOST_LABEL}\\.)*(?!\\d+$)${HOST_LABEL}$`);

function isHost(text: string): boolean {
  return isIP(text) !== 0 || HOST_NAME.test(text);
}

function isOrigin(text: string): boolean {
  if (!URL.canParse(text) || text.includes("*")) return false;
  return /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text;
}

function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  // An empty query or fragment leaves no trace in the parsed address.
  return /^https?:$/.test(protocol) && !/[?#\s]/.test(text) && username === "" && password === "";
}

/** Settings: flag over environment over profile, read once. The only reader of the environment. */

import { chosenProxy, type ProxySetting } from "../http/proxy-setting.ts";
import { UsageError } from "../outcome/failure.ts";
import { type Header, parseHeader, parseHeaderEnv, SECRET_NAME } from "./header-option.ts";
import type { Profile, ProfileFile } from "./profile-file.ts";
import { type Environment, fromEnvironment, readCertificates } from "./setting-source.ts";
import { chosenToken } from "./token.ts";

export const OUTPUT_FORMATS = ["table", "json", "ndjson", "csv", "value"] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** The options that every command takes, as commander parsed them. */
export type Flags = {
  url?: string;
  profile?: string;
  tokenFile?: string;
  tokenStdin?: boolean;
  header?: readonly string[];
  headerEnv?: readonly string[];
  proxy?: string;
  cacert?: string;
  insecure?: boolean;
  /** Milliseconds. */
  timeout?: number;
  verbose?: boolean;
  quiet?: boolean;
  output?: OutputFormat;
};

export type Settings = {
  /** The base URL, http or https, no trailing slash, query or credentials; undefined where none is set. */
  url: string | undefined;
  /** The profile in use, where one is. */
  profile: string | undefined;
  protected: boolean;
  /** Sent with every request, Authorization included. */
  headers: readonly Header[];
  /** What must never appear in any output. */
  secrets: readonly string[];
  proxy: ProxySetting;
  /** Certificates (PEM) that replace the system's. */
  cacert: string | undefined;
  insecure: boolean;
  timeoutMs: number;
  verbose: boolean;
  quiet: boolean;
  /** Only where asked for; each command has its own default. */
  output: OutputFormat | undefined;
  casing: "lower" | "pascal";
  /** Said once on stderr before the command runs. */
  warnings: readonly string[];
};

export const TIMEOUT_DEFAULT_MS = 30_000;
export const TIMEOUT_MAX_MS = 24 * 3_600_000;

export type Sources = {
  flags: Flags;
  env: Environment;
  file: ProfileFile;
  /** Only called for --token-stdin. */
  readStdin: () => Promise<string>;
};

/** Throws a UsageError that says which setting is wrong and what to give instead. */
export async function readSettings({ flags, env, file, readStdin }: Sources): Promise<Settings> {
  const warnings: string[] = file.warning === undefined ? [] : [file.warning];
  const name = flags.profile ?? fromEnvironment(env, "CUSTOMERS_PROFILE") ?? file.current;
  const profile = chosenProfile(name, file);
  const url = checkedUrl(flags.url ?? fromEnvironment(env, "CUSTOMERS_URL") ?? profile.url);
  const token = await chosenToken({ flags, env, profile, readStdin });
  const flagHeaders = [
    ...(flags.header ?? []).map((text) => parseHeader(text)),
    ...(flags.headerEnv ?? []).map((text) => parseHeaderEnv(text, env)),
  ];
  for (const header of (flags.header ?? []).map((text) => parseHeader(text)).filter(({ secret }) => secret)) {
    warnings.push(
      `warning: the value of --header '${header.name}: …' can be read in the process list; give it as --header-env '${header.name}: $VARIABLE'`,
    );
  }
  const headers = mergedHeaders(profile, token?.value, flagHeaders);
  const kept = [
    ...(token?.from === "profile" ? ["token"] : []),
    ...Object.keys(profile.headers ?? {}).filter((header) => SECRET_NAME.test(header)),
  ];
  if (
    kept.length > 0 &&
    url !== undefined &&
    profile.url !== undefined &&
    originOf(url) !== originOf(profile.url)
  ) {
    warnings.push(
      `warning: profile "${name}" keeps its ${kept.join(", ")} for ${originOf(profile.url)}, and it is now sent to ${originOf(url)}`,
    );
  }
  if (flags.insecure ?? profile.insecure ?? false) {
    warnings.push(
      "warning: --insecure: the server's certificate is not checked; anyone on the way can read the token",
    );
  }
  if (flags.proxy !== undefined && URL.canParse(flags.proxy) && new URL(flags.proxy).password !== "") {
    warnings.push(
      "warning: the password in --proxy can be read in the process list; give the proxy as https_proxy or http_proxy, or in the profile",
    );
  }
  const cacert = flags.cacert ?? profile.cacert;
  const proxy = flags.proxy ?? profile.proxy;
  return {
    url,
    profile: name,
    protected: profile.protected ?? false,
    headers,
    secrets: secretsOf(headers, token?.value, proxy),
    proxy: chosenProxy(proxy, env),
    cacert: cacert === undefined ? undefined : await readCertificates(cacert),
    insecure: flags.insecure ?? profile.insecure ?? false,
    timeoutMs:
      flags.timeout ??
      (profile.timeout === undefined ? TIMEOUT_DEFAULT_MS : parseDurationMs(String(profile.timeout))),
    verbose: flags.verbose ?? false,
    quiet: flags.quiet ?? false,
    output: flags.output,
    casing: profile.casing ?? "lower",
    warnings,
  };
}

/** `30` and `30s` are seconds; `500ms` and `2m` too. Above 0, at most a day. */
export function parseDurationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m)?$/.exec(text.trim());
  const unitMs = { ms: 1, s: 1000, m: 60_000 }[match?.[2] ?? "s"] ?? 1000;
  const ms = match === null ? Number.NaN : Number(match[1]) * unitMs;
  if (!(ms > 0 && ms <= TIMEOUT_MAX_MS)) {
    throw new UsageError(
      `"${text}" is not a time`,
      "Give seconds (30, 30s), milliseconds (500ms) or minutes (2m), at most a day.",
    );
  }
  return ms;
}

function chosenProfile(name: string | undefined, file: ProfileFile): Profile {
  if (name === undefined) return {};
  const profile = file.profiles.get(name);
  if (profile !== undefined) return profile;
  const known = [...file.profiles.keys()];
  throw new UsageError(
    `there is no profile "${name}" in ${file.path}`,
    known.length === 0
      ? `Make it with: customers profile set ${name} --url https://…`
      : `Known profiles: ${known.join(", ")}.`,
  );
}

/** Later ones win: token, then the profile's headers, then the command line's. */
function mergedHeaders(
  profile: Profile,
  token: string | undefined,
  flagHeaders: readonly Header[],
): Header[] {
  const merged = new Map<string, Header>();
  const add = (header: Header) => merged.set(header.name.toLowerCase(), header);
  if (token !== undefined) add({ name: "Authorization", value: `Bearer ${token}`, secret: true });
  for (const [name, value] of Object.entries(profile.headers ?? {})) {
    add({ ...parseHeader(`${name}: ${value}`), secret: true });
  }
  flagHeaders.forEach(add);
  return [...merged.values()];
}

function secretsOf(
  headers: readonly Header[],
  token: string | undefined,
  proxy: string | undefined,
): string[] {
  const secrets = new Set<string>(token === undefined ? [] : [token]);
  for (const header of headers.filter(({ secret }) => secret)) {
    secrets.add(header.value);
    // "Bearer xyz": the part after the scheme is the secret where the whole is not quoted as one.
    for (const part of header.value.split(/[\s,;=]+/)) if (part.length >= 12) secrets.add(part);
  }
  const password = proxy !== undefined && URL.canParse(proxy) ? new URL(proxy).password : "";
  if (password !== "") secrets.add(password).add(decodeURIComponent(password));
  return [...secrets].sort((a, b) => b.length - a.length);
}

function checkedUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new UsageError(
      `${text.includes("@") ? "the URL" : `"${text}"`} is not an http:// or https:// URL`,
      "Give the base URL, such as --url https://customers.example.com",
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new UsageError(
      "the URL holds credentials, which would end in process lists and logs",
      "Give the URL without them, and the credentials as --header-env 'Authorization: $VARIABLE'.",
    );
  }
  if (url.search !== "" || url.hash !== "") {
    throw new UsageError(
      `"${text}" has a query or fragment`,
      "Give the base URL, up to but without /customers.",
    );
  }
  return url.origin + url.pathname.replace(/\/+$/, "");
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}

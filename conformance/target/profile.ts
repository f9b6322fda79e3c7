/**
 * The profile: what the kit must know of a deployment and cannot find out by itself. A TOML file, flags, or
 * both; a flag wins. Everything is read once and every fault is reported at once.
 */
import { Value } from "@sinclair/typebox/value";
import { parse } from "smol-toml";
import {
  type CallerHeader,
  type Environment,
  HeaderReader,
  type HeaderTable,
  readTextFile,
} from "./caller-header.ts";
import { type Printed, runHeaderCommand } from "./header-command.ts";
import type { Secret } from "./mask.ts";
import { messageOf } from "./message.ts";
import { percentDecoded } from "./percent-decoded.ts";
import { FIELDS, type Field, ProfileFile } from "./profile-file.ts";
import { type ProxySetting, proxyFor, proxySetting } from "./proxy.ts";

export type Profile = {
  /** Absolute, without a slash at the end; `/customers/{id}` follows it. */
  readonly baseUrl: string;
  readonly timeoutMs: number;
  readonly main: readonly CallerHeader[];
  /** Runs the header command: the main caller's new headers, or why there are none. Adds to `secrets`. */
  readonly renew: (() => Printed | string) | undefined;
  readonly limited:
    | { readonly headers: readonly CallerHeader[]; readonly denied: Field | undefined }
    | undefined;
  readonly otherTenant: readonly CallerHeader[] | undefined;
  readonly ids: readonly string[];
  readonly create: {
    readonly path: string;
    readonly body: string | undefined;
    readonly headers: readonly CallerHeader[];
    readonly command: string | undefined;
  };
  readonly json: Partial<Record<Field, string>>;
  readonly putBody: string | undefined;
  readonly patch: Readonly<NonNullable<ProfileFile["patch"]>>;
  readonly delete: Readonly<NonNullable<ProfileFile["delete"]>>;
  readonly metrics: {
    readonly urls: readonly string[];
    readonly headers: readonly CallerHeader[];
    readonly none: boolean;
    /** How long counters may lag behind the responses that they count; undefined: the kit's own patience. */
    readonly lagMs: number | undefined;
  };
  readonly tls: {
    readonly ca: string | undefined;
    readonly insecure: boolean;
    /** Of the client, as PEM; both or none. */
    readonly cert?: string | undefined;
    readonly key?: string | undefined;
  };
  readonly proxy: ProxySetting | undefined;
  readonly rate: number | undefined;
  readonly budget: number | undefined;
  readonly secrets: readonly Secret[];
};

/** Values of flags, as they were given. Lists are repeated flags. */
export type ProfileFlags = {
  baseUrl?: string | undefined;
  /** The text of a TOML file. */
  profileText?: string | undefined;
  header?: readonly string[] | undefined;
  headerEnv?: readonly string[] | undefined;
  limitedHeader?: readonly string[] | undefined;
  limitedHeaderEnv?: readonly string[] | undefined;
  limitedDenied?: string | undefined;
  otherTenantHeader?: readonly string[] | undefined;
  otherTenantHeaderEnv?: readonly string[] | undefined;
  customerId?: readonly string[] | undefined;
  metricsUrl?: readonly string[] | undefined;
  metricsHeader?: readonly string[] | undefined;
  metricsHeaderEnv?: readonly string[] | undefined;
  timeout?: number | undefined;
  headerCommand?: string | undefined;
  proxy?: string | undefined;
  cacert?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
};

/** The profile can't be used; `faults` names everything that is wrong with it. */
export class ProfileFault extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join("\n"));
    this.faults = faults;
  }
}

const TIMEOUT_MS = 10_000;

/** @throws ProfileFault with all faults of file, flags and environment. */
export function readProfile(flags: ProfileFlags, env: Environment): Profile {
  const reader = new HeaderReader(env);
  const { faults } = reader;
  const file = readFile(flags.profileText, faults);
  const baseUrl = readBaseUrl(flags.baseUrl ?? file["base-url"], faults);
  const headers = (
    literal: readonly string[] | undefined,
    fromEnv: readonly string[] | undefined,
    table: HeaderTable | undefined,
    prefix: string,
  ) =>
    literal === undefined && fromEnv === undefined
      ? reader.table(table ?? {}, prefix)
      : [...reader.lines(literal ?? [], prefix), ...reader.expanded(fromEnv ?? [])];
  const denied = flags.limitedDenied?.toLowerCase() ?? file.limited?.denied;
  if (denied !== undefined && !FIELDS.includes(denied as Field))
    faults.push(`limited-denied: ${denied} is not a field. Give one of ${FIELDS.join(", ")}.`);
  const limited = headers(flags.limitedHeader, flags.limitedHeaderEnv, file.limited?.headers, "LIMITED_");
  const other = headers(
    flags.otherTenantHeader,
    flags.otherTenantHeaderEnv,
    file["other-tenant"]?.headers,
    "OTHER_TENANT_",
  );
  const command = flags.headerCommand ?? file["header-command"];
  const renew =
    command === undefined
      ? undefined
      : () => {
          const printed = runHeaderCommand(command, env);
          if (typeof printed !== "string") reader.secrets.push(...printed.secrets);
          return printed;
        };
  const main = [
    ...headers(flags.header, flags.headerEnv, file.headers, ""),
    ...printedHeaders(renew?.() ?? { headers: [], secrets: [] }, faults),
  ];
  const named = flags.proxy ?? file.proxy;
  const proxy = proxySetting(named === undefined ? undefined : readUrl(named, "proxy", faults), env);
  const profile: Profile = {
    baseUrl,
    timeoutMs: flags.timeout ?? file["timeout-ms"] ?? TIMEOUT_MS,
    main,
    renew,
    limited: limited.length > 0 ? { headers: limited, denied: denied as Field | undefined } : undefined,
    otherTenant: other.length > 0 ? other : undefined,
    ids: flags.customerId ?? file.customers?.ids ?? [],
    create: {
      path: file.customers?.path ?? "/customers",
      body: file.customers?.body,
      headers: reader.table(file.customers?.headers ?? {}, "CREATE_"),
      command: file.customers?.command,
    },
    json: file.json ?? {},
    putBody: file.put?.body,
    patch: file.patch ?? {},
    delete: file.delete ?? {},
    metrics: {
      urls: (flags.metricsUrl ?? file.metrics?.urls ?? []).map((url) => readUrl(url, "metrics-url", faults)),
      headers: headers(flags.metricsHeader, flags.metricsHeaderEnv, file.metrics?.headers, "METRICS_"),
      none: flags.metricsUrl === undefined && (file.metrics?.none ?? false),
      lagMs: file.metrics?.["lag-ms"],
    },
    tls: {
      ca: readPem(flags.cacert ?? file.tls?.["ca-file"], "--cacert", faults),
      insecure: file.tls?.insecure ?? false,
      cert: readPem(flags.cert ?? file.tls?.["cert-file"], "--cert", faults),
      key: readPem(flags.key ?? file.tls?.["key-file"], "--key", faults),
    },
    proxy,
    rate: file.pace?.rate,
    budget: file.pace?.budget,
    secrets: reader.secrets,
  };
  for (const [flag, headers] of [
    ["--limited-header", limited],
    ["--other-tenant-header", other],
  ] as const) {
    if (headers.length > 0 && isSame(headers, profile.main))
      faults.push(`${flag}: these are the credentials of the main caller. Give those of another caller.`);
  }
  if ((profile.tls.cert === undefined) !== (profile.tls.key === undefined))
    faults.push("A client certificate needs its key. Give both --cert and --key.");
  reader.secrets.push(...proxySecrets(proxy, baseUrl, faults));
  if (limited.length === 0 && denied !== undefined)
    faults.push("limited-denied needs a limited caller. Give its credentials by --limited-header-env.");
  if (faults.length > 0) throw new ProfileFault(faults);
  return profile;
}

function isSame(some: readonly CallerHeader[], others: readonly CallerHeader[]): boolean {
  const lines = (headers: readonly CallerHeader[]) =>
    headers
      .map(({ name, value }) => `${name.toLowerCase()}:${value}`)
      .sort()
      .join("\n");
  return lines(some) === lines(others);
}

/** @throws ProfileFault with all faults of the file. */
export function readProfileFile(text: string): ProfileFile {
  const faults: string[] = [];
  const file = readFile(text, faults);
  if (faults.length > 0) throw new ProfileFault(faults);
  return file;
}

function readFile(text: string | undefined, faults: string[]): ProfileFile {
  if (text === undefined) return {};
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    faults.push(`profile: ${messageOf(error).trim()}`);
    return {};
  }
  if (Value.Check(ProfileFile, value)) return value;
  for (const fault of Value.Errors(ProfileFile, value))
    faults.push(`profile: ${fault.path.slice(1).replaceAll("/", ".") || "the file"}: ${fault.message}`);
  return {};
}

function readBaseUrl(text: string | undefined, faults: string[]): string {
  if (text === undefined) {
    faults.push("There is no base URL. Give --base-url URL, or base-url in a profile.");
    return "";
  }
  const url = readUrl(text, "base-url", faults);
  if (/[?#]/.test(text))
    faults.push(`base-url: ${text} has a query or a fragment. Remove it: paths are appended to the URL.`);
  return url.replace(/\/+$/, "");
}

function readUrl(text: string, name: string, faults: string[]): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    faults.push(`${name}: ${text} is not an http:// or https:// URL.`);
  else if (url.username !== "" || url.password !== "")
    faults.push(
      `${name}: the URL holds credentials, which end up in logs. ${name === "proxy" ? "Set http_proxy or https_proxy instead." : "Give them by --header-env."}`,
    );
  return text;
}

function readPem(path: string | undefined, name: string, faults: string[]): string | undefined {
  if (path === undefined) return undefined;
  const text = readTextFile(path, name, faults);
  if (text !== "" && !text.includes("-----BEGIN ")) faults.push(`${name}: ${path} is not a PEM file.`);
  return text;
}

function printedHeaders(printed: Printed | string, faults: string[]): readonly CallerHeader[] {
  if (typeof printed !== "string") return printed.headers;
  faults.push(`header-command: ${printed}. Run it by hand to see what it prints.`);
  return [];
}

/** A proxy's URL in the environment may hold its password. */
function proxySecrets(proxy: ProxySetting | undefined, baseUrl: string, faults: string[]): Secret[] {
  const address = URL.parse(baseUrl);
  if (address === null) return [];
  try {
    const password = proxyFor(proxy, address)?.password ?? "";
    return password === "" ? [] : [{ value: percentDecoded(password), shown: "$PROXY_PASSWORD" }];
  } catch {
    faults.push("The proxy in http_proxy or https_proxy is not a URL. Write it as http://host:port.");
    return [];
  }
}

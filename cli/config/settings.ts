/** Settings: flag over environment over profile, read once. The only reader of the environment. */

import { chooseDeployment, type Deployment } from "./deployment.ts";
import type { Flags, OutputFormat } from "./flags.ts";
import type { ProfileFile } from "./profile/profile-file.ts";
import type { Profile } from "./profile/profile-settings.ts";
import {
  type ClientCertificate,
  type Environment,
  fromEnvironment,
  readCertificates,
  readClientCertificate,
} from "./sources/setting-source.ts";
import { chosenToken, type Token, tokenFileWarnings } from "./token.ts";
import { originOf } from "./values/base-url.ts";
import { parseDurationMs, parseUndoMs } from "./values/duration.ts";
import { type Header, parseHeader, parseHeaderEnv } from "./values/header-option.ts";
import { chosenProxy, environmentProxies, type ProxySetting, proxySecrets } from "./values/proxy.ts";

export type Settings = {
  /** The base URL, http or https, no trailing slash, query or credentials; undefined where none is set. */
  url: string | undefined;
  /** The profile in use, where one is. */
  profile: string | undefined;
  /** A profile of this origin that asks before writes. */
  protectedBy: string | undefined;
  /** Sent with every request, Authorization included. */
  headers: readonly Header[];
  /** What must never appear in any output. */
  secrets: readonly string[];
  proxy: ProxySetting;
  /** Certificates (PEM) that replace the system's. */
  cacert: string | undefined;
  clientCertificate: ClientCertificate | undefined;
  insecure: boolean;
  timeoutMs: number;
  verbose: boolean;
  quiet: boolean;
  /** Only where asked for; each command has its own default. */
  output: OutputFormat | undefined;
  casing: "lower" | "pascal";
  /** How long earlier states are kept for `customers undo`; undefined: none are recorded. */
  undoMs: number | undefined;
  /** Printed once on standard error before the command runs. */
  warnings: readonly string[];
  /** Which setting decided, for `customers config`. */
  sources: ReturnType<typeof sourcesOf>;
};

const TIMEOUT_DEFAULT_MS = 30_000;

export type Sources = {
  flags: Flags;
  env: Environment;
  file: ProfileFile;
  /** The command is about the profile file itself. */
  needsProfile?: boolean;
  /** Only called for --token-stdin. */
  readStdin: (instead: string) => Promise<string>;
};

/** Throws a UsageError that says which setting is wrong and what to give instead. */
export async function readSettings({
  flags,
  env,
  file,
  needsProfile = false,
  readStdin,
}: Sources): Promise<Settings> {
  const deployment = chooseDeployment({ flags, env, file });
  const { profile, url } = deployment;
  const token = await chosenToken(flags, deployment, readStdin);
  const flagHeaders = [
    ...(flags.header ?? []).map((text) => parseHeader(text)),
    ...(flags.headerEnv ?? []).map((text) => parseHeaderEnv(text, env)),
  ];
  const headers = mergedHeaders(profile, token?.value, flagHeaders);
  const cacert = flags.cacert ?? profile.cacert;
  const proxyText = flags.proxy ?? profile.proxy;
  const insecure = flags.insecure ?? profile.insecure ?? false;
  return {
    url,
    profile: deployment.profileName,
    protectedBy: deployment.protectedBy,
    headers,
    secrets: secretsOf(headers, token?.value, [
      ...(proxyText === undefined ? [] : [proxyText]),
      ...environmentProxies(env),
    ]),
    proxy: await chosenProxy(
      proxyText === undefined
        ? undefined
        : { text: proxyText, source: flags.proxy === undefined ? "the profile's proxy" : "--proxy" },
      originOf(url),
      env,
    ),
    cacert: cacert === undefined ? undefined : await readCertificates(cacert),
    clientCertificate: await readClientCertificate(
      flags.cert === undefined && flags.key === undefined ? profile : flags,
    ),
    insecure,
    timeoutMs:
      flags.timeout ??
      (profile.timeout === undefined ? TIMEOUT_DEFAULT_MS : parseDurationMs(String(profile.timeout))),
    verbose: flags.verbose ?? false,
    quiet: flags.quiet ?? false,
    output: flags.output,
    casing: profile.casing ?? "lower",
    undoMs: parseUndoMs(fromEnvironment(env, "CUSTOMERS_UNDO") ?? profile.undo ?? "off"),
    warnings: warningsOf({ flags, env, file, deployment, insecure, needsProfile }),
    sources: sourcesOf(flags, env, deployment, token),
  };
}

function sourcesOf(flags: Flags, env: Environment, deployment: Deployment, token: Token | undefined) {
  const { profile, profileName } = deployment;
  const ofProfile = `profile "${profileName}"`;
  const source = (option: string, flag: unknown, stored: unknown) =>
    flag !== undefined ? option : stored !== undefined ? ofProfile : undefined;
  const path = (name: "cacert" | "cert") => {
    const value = flags[name] ?? profile[name];
    return value === undefined
      ? undefined
      : { value, source: source(`--${name}`, flags[name], profile[name]) ?? "" };
  };
  return {
    url: deployment.urlSource,
    profile: profileName === undefined ? undefined : deployment.profileSource,
    token: token?.source,
    headers: source("--header, --header-env", flags.header ?? flags.headerEnv, profile.headers),
    cacert: path("cacert"),
    cert: path("cert"),
    insecure: source("--insecure", flags.insecure, profile.insecure),
    timeout: source("--timeout", flags.timeout, profile.timeout),
    casing: source("", undefined, profile.casing),
    undo: source("CUSTOMERS_UNDO", fromEnvironment(env, "CUSTOMERS_UNDO"), profile.undo),
  };
}

function warningsOf({
  flags,
  file,
  deployment,
  insecure,
  env,
  needsProfile,
}: Omit<Sources, "readStdin"> & { deployment: Deployment; insecure: boolean }): string[] {
  const inProcessList = (flags.header ?? []).map((text) => parseHeader(text)).filter(({ secret }) => secret);
  const homeless = !env["HOME"] && !env["XDG_CONFIG_HOME"];
  return [
    ...(homeless && (needsProfile || deployment.url === undefined)
      ? [`warning: HOME is not set, so profiles are looked for in ${file.path}`]
      : []),
    ...file.warnings,
    ...inProcessList.map(
      ({ name }) =>
        `warning: the value of --header '${name}: …' can be read in the process list; give it as --header-env '${name}: $VARIABLE'`,
    ),
    ...deployment.warnings,
    ...tokenFileWarnings(flags),
    ...(insecure
      ? ["warning: --insecure: the server's certificate is not checked; anyone on the way can read the token"]
      : []),
    ...(flags.proxy !== undefined && proxySecrets(flags.proxy).length > 0
      ? [
          "warning: the password in --proxy can be read in the process list; give the proxy as https_proxy or http_proxy, or in the profile",
        ]
      : []),
  ];
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
  proxies: readonly string[],
): string[] {
  const secrets = new Set<string>(token === undefined ? [] : [token]);
  for (const header of headers.filter(({ secret }) => secret)) {
    secrets.add(header.value);
    // "Bearer xyz": the part after the scheme is the secret where the whole is not quoted as one.
    for (const part of header.value.split(/[\s,;=]+/)) if (part.length >= 12) secrets.add(part);
  }
  for (const secret of proxies.flatMap(proxySecrets)) secrets.add(secret);
  return [...secrets].sort((a, b) => b.length - a.length);
}

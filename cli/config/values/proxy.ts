/**
 * Which proxy a request goes through: the one that the operator names, else the standard variables, read as curl
 * reads them. The decision is made once for the origin of the deployment, so every part of the program agrees on it.
 */
import { UsageError } from "../../outcome/failure.ts";
import { type Environment, fromEnvironment } from "../sources/setting-source.ts";

export type ProxySetting =
  | { kind: "direct" }
  /** `source` names the setting: `--proxy`, `https_proxy`. The URL may hold credentials. */
  | { kind: "proxy"; url: string; source: string };

/** @param explicit of --proxy or of the profile; "" there means no proxy, as curl has it. */
export async function chosenProxy(
  explicit: { text: string; source: string } | undefined,
  origin: string | undefined,
  env: Environment,
): Promise<ProxySetting> {
  if (explicit !== undefined) return proxyOf(explicit.text, explicit.source);
  if (origin === undefined || isLocal(origin)) return { kind: "direct" };
  const variable = proxyVariable(new URL(origin).protocol, env);
  if (variable === undefined) return { kind: "direct" };
  const exempt = noProxy(env);
  if (exempt !== "") {
    const { isExempt } = await import("./no-proxy.ts");
    if (isExempt(origin, exempt)) return { kind: "direct" };
  }
  return proxyOf(variable.text, variable.name);
}

function proxyOf(text: string, source: string): ProxySetting {
  return text === "" ? { kind: "direct" } : { kind: "proxy", url: parseProxyUrl(text, source), source };
}

/** Lower case wins, as in curl; in a CGI script HTTP_PROXY is the request's Proxy header, and so anybody's. */
function proxyVariable(protocol: string, env: Environment): { name: string; text: string } | undefined {
  const cgi = fromEnvironment(env, "REQUEST_METHOD") !== undefined;
  const names =
    protocol === "https:"
      ? ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
      : ["http_proxy", ...(cgi ? [] : ["HTTP_PROXY"]), "all_proxy", "ALL_PROXY"];
  for (const name of names) {
    const text = fromEnvironment(env, name);
    if (text !== undefined) return { name, text };
  }
  return undefined;
}

function noProxy(env: Environment): string {
  return fromEnvironment(env, "no_proxy") ?? fromEnvironment(env, "NO_PROXY") ?? "";
}

/** Every proxy URL of the environment, whichever is used: their passwords are secrets. */
export function environmentProxies(env: Environment): string[] {
  return ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].flatMap(
    (name) => fromEnvironment(env, name) ?? [],
  );
}

/** Without a scheme it is http://, as in curl. @param source names the setting in the message. */
export function parseProxyUrl(text: string, source: string): string {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  if (url === undefined || url.hostname === "") {
    throw new UsageError(`${source}: the proxy is not a URL`, "Give it as http://host:port");
  }
  if (url.protocol === "http:") {
    if (!hasPort(withScheme)) url.port = "1080"; // as in curl
    return url.href;
  }
  const scheme = url.protocol.replace(":", "");
  throw new UsageError(
    `${source}: ${scheme}:// proxies are not supported`,
    `Give an http:// proxy${source.includes("_") ? ", or unset the variable" : ""}. It carries https:// requests too, in a tunnel.`,
  );
}

/** True where a port is written, :80 included, which a parsed URL does not show. */
function hasPort(url: string): boolean {
  return /^[^/]*\/\/(?:[^@/]*@)?(?:\[[^\]]*\]|[^:/?#]*):\d+/.test(url);
}

/** What runs on this machine is not reached through a proxy, unless the operator names one. */
function isLocal(origin: string): boolean {
  return /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(origin).hostname);
}

/** For messages; never with the proxy's password. */
export function proxyInWords({ url, source }: Extract<ProxySetting, { kind: "proxy" }>): string {
  return `through the proxy ${new URL(url).host} (${source})`;
}

/** `http://me:***@host:port`: who is known may be shown, the password not. */
export function maskedProxyUrl(text: string): string {
  return text.replace(/^((?:[a-z][a-z0-9+.-]*:\/\/)?[^/:@]*):[^@]*@/i, "$1:***@");
}

/** The password as it is written, decoded, and as Proxy-Authorization carries it. */
export function proxySecrets(text: string): string[] {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(withScheme)) return [];
  const { username, password } = new URL(withScheme);
  if (password === "") return [];
  return [...new Set([password, decoded(password).toString(), basic(username, password)])];
}

/** For the header Proxy-Authorization; undefined where the URL has no credentials. */
export function proxyAuthorization(url: string): string | undefined {
  const { username, password } = new URL(url);
  return username === "" ? undefined : `Basic ${basic(username, password)}`;
}

function basic(username: string, password: string): string {
  return Buffer.concat([decoded(username), Buffer.from(":"), decoded(password)]).toString("base64");
}

/** As curl does: a lone % stands for itself, and the bytes need not be UTF-8, which decodeURIComponent refuses. */
function decoded(text: string): Buffer {
  const bytes = text.replace(/%([0-9a-f]{2})/gi, (_, digits) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(bytes, "latin1");
}

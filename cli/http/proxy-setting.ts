/** Which proxy is in the way: one that the operator names, else the standard environment variables. */

import { type Environment, fromEnvironment } from "../config/setting-source.ts";
import { UsageError } from "../outcome/failure.ts";

export type ProxySetting =
  | { kind: "explicit"; url: string }
  /** Each empty where it is not set. */
  | { kind: "environment"; http: string; https: string; no: string };

/** @param proxy of --proxy or the profile. */
export function chosenProxy(proxy: string | undefined, env: Environment): ProxySetting {
  if (proxy === undefined) {
    const variable = (name: string) =>
      fromEnvironment(env, name) ?? fromEnvironment(env, name.toUpperCase()) ?? "";
    // In a CGI script HTTP_PROXY is what the request's Proxy header says, and so anybody's.
    const inScript = fromEnvironment(env, "REQUEST_METHOD") !== undefined;
    return {
      kind: "environment",
      http: inScript ? (fromEnvironment(env, "http_proxy") ?? "") : variable("http_proxy"),
      https: variable("https_proxy"),
      no: variable("no_proxy"),
    };
  }
  const parsed = URL.canParse(proxy) ? new URL(proxy) : undefined;
  if (parsed?.protocol === "http:" || parsed?.protocol === "https:")
    return { kind: "explicit", url: parsed.href };
  throw new UsageError("the proxy is not an http:// or https:// URL", "Give it as --proxy http://host:port");
}

/** In words for a connection to `origin` that failed; never with the proxy's password. Undefined: no proxy is set for it. */
export function proxyInWords(proxy: ProxySetting, origin: string): string | undefined {
  if (proxy.kind === "explicit") return `by way of the proxy ${hostOf(proxy.url)}`;
  const variable = origin.startsWith("https:") ? "https" : "http";
  const url = proxy[variable];
  return url === "" ? undefined : `${variable}_proxy names the proxy ${hostOf(url)}`;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "of a malformed address";
}

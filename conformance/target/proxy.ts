/** Which proxy a request goes through: one that is named, else the standard environment variables, as the client honours them. */

import type { Environment } from "./caller-header.ts";
import { percentDecoded } from "./percent-decoded.ts";

export type ProxySetting =
  | { readonly kind: "explicit"; readonly url: string }
  /** Each empty where it is not set. */
  | { readonly kind: "environment"; readonly http: string; readonly https: string; readonly no: string };

/** @returns undefined where no request goes through a proxy. */
export function proxySetting(named: string | undefined, env: Environment): ProxySetting | undefined {
  if (named !== undefined) return { kind: "explicit", url: named };
  const variable = (name: string) => env[name] || env[name.toUpperCase()] || "";
  // In a CGI script HTTP_PROXY holds the request's Proxy header, which anybody can send.
  const isScript = env["REQUEST_METHOD"] !== undefined;
  const http = isScript ? (env["http_proxy"] ?? "") : variable("http_proxy");
  const https = variable("https_proxy");
  if (http === "" && https === "") return undefined;
  return { kind: "environment", http, https, no: variable("no_proxy") };
}

/** @returns the proxy for this address; undefined: it is reached directly. */
export function proxyFor(setting: ProxySetting | undefined, address: URL): URL | undefined {
  if (setting === undefined) return undefined;
  if (setting.kind === "explicit") return new URL(setting.url);
  const url = address.protocol === "https:" ? setting.https : setting.http;
  if (url === "" || isExempt(address, setting.no)) return undefined;
  return new URL(/^https?:\/\//i.test(url) ? url : `http://${url}`);
}

/** `no_proxy` names hosts: themselves and all below; `*.a` only those below; `*` all; a port where one is given. */
function isExempt(address: URL, no: string): boolean {
  const host = address.hostname.toLowerCase().replace(/^\[|\]$/g, "");
  const port = address.port || (address.protocol === "https:" ? "443" : "80");
  return no
    .toLowerCase()
    .split(/[,\s]+/)
    .filter((entry) => entry !== "")
    .some((entry) => {
      const [name, own] = hostAndPort(entry);
      if (own !== undefined && own !== port) return false;
      if (name === "*") return true;
      const below = name.replace(/^\*?\./, "");
      return host.endsWith(`.${below}`) || (!name.startsWith("*.") && host === below);
    });
}

/** A bare IPv6 address holds colons and no port. */
function hostAndPort(entry: string): [host: string, port: string | undefined] {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? [];
  return [bracketed ?? plain ?? entry, port];
}

/** The header that carries the user and password of a proxy's URL. */
export function proxyAuthorization({ username, password }: URL): string | undefined {
  if (username === "" && password === "") return undefined;
  const pair = `${percentDecoded(username)}:${percentDecoded(password)}`;
  return `Basic ${Buffer.from(pair, "utf8").toString("base64")}`;
}

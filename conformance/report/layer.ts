/**
 * Which layer between kit and service a violation points to, and the line of configuration that fixes it. It
 * stays a violation of the deployment, since its users see only the whole.
 */
import { headerValue } from "../http/http-reply.ts";
import type { Exchange, Layer } from "./schema.ts";

type Signs = {
  readonly server: string;
  readonly via: string;
  readonly coding: string | undefined;
  readonly tag: string | undefined;
};

/** @param exchanges those that the evidence of the violation refers to */
export function layerOf(rule: string, exchanges: readonly Exchange[]): Layer | null {
  for (const exchange of exchanges) {
    const headers = exchange.reply?.headers ?? [];
    const signs: Signs = {
      server: headerValue(headers, "server") ?? "",
      via: `${headerValue(headers, "via") ?? ""} ${headers.some(([name]) => /^x-varnish$/i.test(name)) ? "varnish" : ""}`,
      coding: headerValue(headers, "content-encoding"),
      tag: headerValue(headers, "etag"),
    };
    const layer =
      compression(signs) ??
      cache(exchange) ??
      (/^(ETG-0[123]|ENV-0[123]|IFM-07)$/.test(rule) ? stripped(exchange, signs) : null);
    if (layer !== null) return layer;
  }
  return null;
}

function compression({ server, via, coding, tag }: Signs): Layer | null {
  const suffix = /-(gzip|br|deflate|zstd)"$/.exec(tag ?? "")?.[1];
  const weak = /^W\//.test(tag ?? "");
  const varnish = /varnish/i.test(via);
  // Varnish unpacks for clients without gzip, and the tag stays weak.
  if (suffix === undefined && !(weak && (coding !== undefined || varnish))) return null;
  const sign =
    suffix === undefined
      ? `${tag} with Content-Encoding: ${coding ?? "none"}`
      : `the suffix -${suffix} in ${tag}`;
  const layer = (name: string, fix: string): Layer => ({ name, sign, fix });
  if (suffix !== undefined && /caddy/i.test(server + via))
    return layer("Caddy encode", "remove `encode` from the site block of the customer routes");
  if (suffix !== undefined)
    return layer(
      "Apache mod_deflate or mod_brotli",
      "DeflateAlterETag NoChange   (in the server or <VirtualHost>, not in <Location>; or: SetEnvIf Request_URI /customers no-gzip)",
    );
  if (varnish)
    return layer(
      "Varnish",
      "set beresp.do_gzip = false;   (in vcl_backend_response, for the customer routes)",
    );
  if (/nginx|openresty/i.test(server))
    return layer("nginx gzip", "gzip off;   (in the location of the customer routes)");
  return layer(
    "a compressing proxy (HAProxy, nginx or the like)",
    "HAProxy: remove `compression algo`; nginx: `gzip off;` for the customer routes",
  );
}

function cache({ reply }: Exchange): Layer | null {
  const age = Number(headerValue(reply?.headers ?? [], "age") ?? 0);
  const hit = headerValue(reply?.headers ?? [], "x-cache");
  if (!(age > 0) && !/\bhit\b/i.test(hit ?? "")) return null;
  return {
    name: "a shared cache",
    sign: age > 0 ? `Age: ${age}` : `X-Cache: ${hit}`,
    fix: "Varnish: return (pass); in vcl_recv for the customer routes; nginx: proxy_cache off;",
  };
}

function stripped({ reply }: Exchange, { server, tag }: Signs): Layer | null {
  if (reply === null || tag !== undefined || reply.status === 404) return null;
  const layer = (name: string, fix: string): Layer => ({ name, sign: `no ETag behind Server: ${name}`, fix });
  if (/nginx|openresty/i.test(server))
    return layer("nginx", "remove `proxy_hide_header ETag;`, and any filter that drops the tag");
  if (/apache/i.test(server)) return layer("Apache", "remove `Header unset ETag`; DeflateAlterETag NoChange");
  return null;
}

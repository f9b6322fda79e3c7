/**
 * undici's connections to one deployment: direct, or through an HTTP proxy, with the TLS settings of the
 * operator. The paths matter: under Bun a bare 'undici' is a built-in shim that ignores proxies and
 * dispatchers.
 */
import { subscribe } from "node:diagnostics_channel";
import type { Dispatcher } from "undici/index.js";
import symbols, { type Connected } from "undici/lib/core/symbols.js";
import Agent from "undici/lib/dispatcher/agent.js";
import type { Settings } from "../config/settings.ts";
import { proxyAuthorization } from "../config/values/proxy.ts";

/**
 * An interim response is passed over, also where nobody asked for it (RFC 9110 §15.2). undici does that with all
 * but 100, at which it closes the connection, so its parser gets a 102 in place of each.
 */
subscribe("undici:client:connected", (message) => {
  const parser = (message as Connected).socket[symbols.kParser];
  const complete = parser.onHeadersComplete.bind(parser);
  parser.onHeadersComplete = (status, ...rest) => complete(status === 100 ? 102 : status, ...rest);
});

export async function openDispatcher(
  settings: Settings,
  origin: string,
  bodyBytesMax: number,
): Promise<Dispatcher> {
  const connect = {
    ...(settings.cacert === undefined ? {} : { ca: settings.cacert }),
    ...settings.clientCertificate,
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 somewhere in an environment can't switch it off.
    rejectUnauthorized: !settings.insecure,
    timeout: 0,
    // HTTP/1.1 alone: undici would take HTTP/2 from a server that offers it, over Bun's node:http2, which no
    // test here covers.
    allowH2: false,
  };
  // The time limits are those of the exchange; undici's own would cut a longer --timeout short.
  const limits = { headersTimeout: 0, bodyTimeout: 0, maxResponseSize: bodyBytesMax, allowH2: false };
  const { proxy } = settings;
  if (proxy.kind === "direct") return new Agent({ ...limits, connect });
  if (origin.startsWith("http:")) return forwarding(new Agent({ ...limits, connect }), proxy.url, origin);
  const { openTunnels } = await import("./tunnels.ts");
  const token = proxyAuthorization(proxy.url);
  return openTunnels({ ...limits, uri: proxy.url, requestTls: connect, ...(token && { token }) });
}

/**
 * A request for an http:// URL goes to the proxy itself, with the whole URL as its target (RFC 9112 §3.2.2).
 * undici's ProxyAgent turns a 407 to such a request into an error with nothing but a text, so this is done
 * here.
 */
function forwarding(agent: Agent, proxyUrl: string, origin: string): Dispatcher {
  const proxyOrigin = new URL(proxyUrl).origin;
  const authorization = proxyAuthorization(proxyUrl);
  const ofProxy = {
    host: new URL(origin).host,
    ...(authorization && { "proxy-authorization": authorization }),
  };
  return agent.compose(
    (dispatch) => (options, handler) =>
      dispatch(
        {
          ...options,
          origin: proxyOrigin,
          path: origin + options.path,
          headers: { ...ofProxy, ...(options.headers as Record<string, string>) },
        },
        handler,
      ),
  );
}

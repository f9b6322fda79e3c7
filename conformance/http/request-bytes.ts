/** The bytes of an HTTP/1.1 request (RFC 9112), header lines as given. */
import type { Exchange } from "../report/schema.ts";
import { proxyAuthorization } from "../target/proxy.ts";

export type Outgoing = {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | undefined;
  readonly framing?: Exchange["framing"] | undefined;
};

type Hop = {
  /** The proxy that is sent the absolute target; undefined: none, or a tunnel through one. */
  readonly proxy: URL | undefined;
  /** Else the request says that the connection ends after it. */
  readonly keepAlive: boolean;
};

/**
 * The request in two parts. The end is the last byte of the body and what follows it; of a request without a
 * body, the empty line after the header section. One byte is too little: Bun answers a chunked request that lacks
 * only its last CRLF.
 */
export function requestBytes(
  { method, url: address, headers, body, framing }: Outgoing,
  { proxy, keepAlive }: Hop,
): [start: Buffer, end: Buffer] {
  const url = new URL(address);
  const token = proxy && proxyAuthorization(proxy);
  const origin = proxy === undefined && framing !== "absolute-form" ? "" : url.origin;
  const target = origin + literalPath(address, url);
  const content = Buffer.from(body ?? "", "utf8");
  const chunked = body !== undefined && framing === "chunked";
  const lines = [
    `${method} ${target} ${framing === "http/1.0" ? "HTTP/1.0" : "HTTP/1.1"}`,
    `Host: ${url.host}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(token === undefined ? [] : [`Proxy-Authorization: ${token}`]),
    ...(keepAlive ? [] : ["Connection: close"]),
    ...(chunked
      ? ["Transfer-Encoding: chunked"]
      : body === undefined
        ? []
        : [`Content-Length: ${content.length}`]),
  ];
  const whole = Buffer.concat([
    Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"),
    chunked ? inChunks(content) : content,
  ]);
  const afterContent = !chunked ? "" : content.length === 0 ? LAST_CHUNK : `\r\n${LAST_CHUNK}`;
  const endBytes = content.length > 0 ? 1 + afterContent.length : afterContent.length || EMPTY_LINE.length;
  return [whole.subarray(0, -endBytes), whole.subarray(-endBytes)];
}

const EMPTY_LINE = "\r\n";
const LAST_CHUNK = "0\r\n\r\n";

/** In two chunks, so that a server which reads only the first is found. */
function inChunks(content: Buffer): Buffer {
  const half = Math.ceil(content.length / 2);
  const chunks = [content.subarray(0, half), content.subarray(half)].filter(({ length }) => length > 0);
  return Buffer.concat([
    ...chunks.flatMap((chunk) => [
      Buffer.from(`${chunk.length.toString(16)}\r\n`),
      chunk,
      Buffer.from("\r\n"),
    ]),
    Buffer.from(LAST_CHUNK),
  ]);
}

/** URL removes dot segments and a bare question mark, which a server may treat otherwise. */
function literalPath(address: string, { pathname, search }: URL): string {
  const [, path = ""] = /^https?:\/\/[^/?#]*(\/[^#]*)/i.exec(address) ?? [];
  return /\/\.{1,2}\/|\?$/.test(path) ? path : pathname + search;
}

/** Reads one HTTP/1.1 response from bytes (RFC 9112). Header values are kept as latin1, byte for byte. */
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from "node:zlib";

export type Reply = {
  readonly status: number;
  /** In the order and case in which they came. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
  /** Whether 100 Continue came before it. */
  readonly continued?: boolean;
};

type Parsed =
  | { readonly kind: "complete"; readonly reply: Reply; readonly rest: Buffer }
  | { readonly kind: "incomplete" }
  | { readonly kind: "malformed"; readonly why: string };

const INCOMPLETE: Parsed = { kind: "incomplete" };
const malformed = (why: string): Parsed => ({ kind: "malformed", why });

/** @param ended whether the peer has closed its side; it delimits a body without a length. */
export function parseReply(bytes: Buffer, method: string, ended: boolean): Parsed {
  const beginning = bytes.subarray(0, 5).toString("latin1");
  if (!"HTTP/".startsWith(beginning))
    return malformed(`no HTTP answers, but ${JSON.stringify(bytes.subarray(0, 60).toString("latin1"))}`);
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd === -1)
    return ended ? malformed("the connection closed before the header section ended") : INCOMPLETE;
  const [statusLine = "", ...lines] = bytes.subarray(0, headEnd).toString("latin1").split("\r\n");
  const status = Number(/^HTTP\/1\.[01] ([1-5]\d\d)(?: |$)/.exec(statusLine)?.[1] ?? Number.NaN);
  if (Number.isNaN(status))
    return malformed(`no HTTP/1.1 status line: ${JSON.stringify(statusLine.slice(0, 80))}`);
  const headers: [string, string][] = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) return malformed(`no header line: ${JSON.stringify(line.slice(0, 80))}`);
    headers.push([line.slice(0, colon), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, "")]);
  }
  const after = bytes.subarray(headEnd + 4);
  if (status < 200) {
    const parsed = parseReply(after, method, ended);
    if (parsed.kind !== "complete" || status !== 100) return parsed;
    return { ...parsed, reply: { ...parsed.reply, continued: true } };
  }
  const reply = (body: Buffer, rest: Buffer): Parsed => ({
    kind: "complete",
    reply: { status, headers, body },
    rest,
  });
  if (method === "HEAD") return reply(Buffer.alloc(0), after);
  // Neither has a body; what follows all the same is shown, so that a rule can blame it.
  if (status === 204 || status === 304) return reply(after, Buffer.alloc(0));
  if (/\bchunked\b/i.test(headerValue(headers, "transfer-encoding") ?? ""))
    return parseChunked(after, ended, reply);
  const length = headerValue(headers, "content-length");
  if (length !== undefined) {
    const expected = Number(length);
    if (!/^\d+$/.test(length)) return malformed(`Content-Length: ${length}`);
    if (after.length >= expected) return reply(after.subarray(0, expected), after.subarray(expected));
    return ended ? malformed(`the body ended after ${after.length} of ${expected} bytes`) : INCOMPLETE;
  }
  return ended ? reply(after, Buffer.alloc(0)) : INCOMPLETE;
}

function parseChunked(bytes: Buffer, ended: boolean, reply: (body: Buffer, rest: Buffer) => Parsed): Parsed {
  const chunks: Buffer[] = [];
  const unfinished = ended ? malformed("the connection closed inside a chunked body") : INCOMPLETE;
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd === -1) return unfinished;
    const size = /^[0-9a-fA-F]+/.exec(bytes.subarray(at, lineEnd).toString("latin1"))?.[0];
    if (size === undefined) return malformed("a chunk without a size");
    const start = lineEnd + 2;
    const end = start + Number.parseInt(size, 16);
    if (end === start) {
      const trailerEnd = bytes.indexOf("\r\n", start) === start ? start : bytes.indexOf("\r\n\r\n", start);
      if (trailerEnd === -1) return unfinished;
      const skip = trailerEnd === start ? 2 : 4;
      return reply(Buffer.concat(chunks), bytes.subarray(trailerEnd + skip));
    }
    if (bytes.length < end + 2) return unfinished;
    chunks.push(bytes.subarray(start, end));
    at = end + 2;
  }
}

/** All values of a header, in order; names are matched without regard to case. */
export function headerValues(headers: readonly (readonly [string, string])[], name: string): string[] {
  return headers.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
}

export function headerValue(
  headers: readonly (readonly [string, string])[],
  name: string,
): string | undefined {
  // Asked several times a request: without the list that `headerValues` makes.
  for (const [key, value] of headers)
    if (key.length === name.length && key.toLowerCase() === name) return value;
  return undefined;
}

/** The body as text, content codings undone; a coding that fails is shown as its raw bytes. */
export function bodyText({ headers, body }: Reply): string {
  const coding = headerValue(headers, "content-encoding")?.toLowerCase();
  try {
    if (coding === "gzip") return gunzipSync(body).toString("utf8");
    if (coding === "deflate") return inflateSync(body).toString("utf8");
    if (coding === "br") return brotliDecompressSync(body).toString("utf8");
    if (coding === "zstd") return zstdDecompressSync(body).toString("utf8");
  } catch {
    return body.toString("latin1");
  }
  return body.toString("utf8");
}

import type { MaybePromise } from "../../domain/maybe-promise.ts";
import { ok, type Result, refuse } from "../../domain/problem.ts";
import { parseJsonText } from "./json-text.ts";

/** Sixteen times what a customer's name and email take with every character escaped. */
const BODY_BYTES_MAX = 65_536;

/**
 * Reads a body as JSON: size, media type, then text, in this order. A body that is too long is not kept,
 * whether its length was declared or not.
 *
 * @param mediaTypes in lower case; compared without parameters and case (RFC 9110, section 8.3.1)
 */
export async function readJsonBody(
  request: Request,
  mediaTypes: readonly string[],
): Promise<Result<unknown>> {
  const { headers } = request;
  const body = await readBody(request);
  if (!body.ok) return body;
  const contentType = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (contentType === undefined || !mediaTypes.includes(contentType)) {
    const is = contentType === undefined || contentType === "" ? "has no Content-Type" : "is of another type";
    const acceptPatch = request.method === "PATCH" ? { "accept-patch": mediaTypes.join(", ") } : {};
    return unsupported(`The body ${is}; send Content-Type: ${mediaTypes.join(" or ")}.`, acceptPatch);
  }
  const coding = headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  // An empty list names no coding (RFC 9110, section 5.6.1.2).
  if (coding !== "" && coding !== "identity") {
    // RFC 9110, section 12.5.3: it says that the coding is at fault, not the media type.
    return unsupported("The body is compressed. Send it without Content-Encoding.", {
      "accept-encoding": "identity",
    });
  }
  return parseJsonText(body.value);
}

/** Reads a body whose content means nothing. Without one there is nothing to wait for. */
export function readUnusedBody(request: Request): MaybePromise<Result<null>> {
  if (request.body === null) return requireNoTrailer(request.headers);
  return readBody(request).then((body) => (body.ok ? ok(null) : body));
}

/** Size, then content. */
async function readBody(request: Request): Promise<Result<Uint8Array>> {
  const { headers } = request;
  if (Number(headers.get("content-length") ?? 0) > BODY_BYTES_MAX) return tooLarge();
  const framing = requireNoTrailer(headers);
  return framing.ok ? await readBytes(request) : framing;
}

/**
 * Bun ends the body before its trailer, takes that for a broken request and answers it with 400: the write would be
 * applied and its reply lost (RFC 9112, section 7.1.2). That is so for a body that nobody reads, too.
 */
function requireNoTrailer(headers: Headers): Result<null> {
  if (!headers.has("trailer")) return ok(null);
  return refuse("malformed-request", "The body announces a trailer. Send it without the Trailer header.");
}

/** @returns the body, or a refusal where it is longer than it may be */
async function readBytes(request: Request): Promise<Result<Uint8Array>> {
  try {
    // The declared length was checked, and Bun holds the body to it. Asking for `body` would create a stream.
    if (request.headers.has("content-length")) return ok(await request.bytes());
    if (request.body === null) return ok(new Uint8Array());
    const reader = request.body.getReader();
    const chunks: Uint8Array[] = [];
    let length = 0;
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      length += read.value.byteLength;
      if (length > BODY_BYTES_MAX) {
        await discardRest(reader);
        return tooLarge();
      }
      chunks.push(read.value);
    }
    return ok(Buffer.concat(chunks));
  } catch (error) {
    if (!isCutOff(error)) throw error;
    // Nobody reads this reply, but the log must not blame the service.
    return refuse("incomplete-body", "The connection ended before the body was whole.");
  }
}

/** What is used of a ReadableStreamDefaultReader, of which the platform's types have two versions. */
type BodyReader = {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
  cancel(): Promise<void>;
};

/**
 * Bounds of how much of an unwanted body is read, and for how long, before
 * the reply is sent regardless. Proxies seldom pass more than 32 MiB (nginx:
 * 1 MiB unless configured); reading them takes some 80 ms of processor time.
 */
const DISCARDED = { bytesMax: 32 * 1024 * 1024, msMax: 10_000 };

/**
 * Reads an unwanted body before the reply is sent. Where the reply is the connection's last (`Connection:
 * close`, HTTP/1.0), Bun closes the socket with it; bytes that arrive afterwards are answered
 * with a reset, which discards the reply. RFC 9112, section 9.6 would rather have the reply
 * sent first and the connection closed in stages, but Bun offers no half-closing, and does
 * not show the version of HTTP, so every body is read. Behind an nginx with two upstreams,
 * 900 kB POSTs without a token had taken both out of service: 196 of 200 reads were 502.
 */
export async function discardBody(request: Request): Promise<void> {
  if (Number(request.headers.get("content-length") ?? 0) > DISCARDED.bytesMax) return;
  if (request.body !== null) await discardRest(request.body.getReader());
}

export async function discardRest(reader: BodyReader, { bytesMax, msMax } = DISCARDED): Promise<void> {
  // A pending read of a cancelled stream ends.
  const timer = setTimeout(() => void reader.cancel(), msMax);
  try {
    let bytes = 0;
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      bytes += read.value?.byteLength ?? 0;
      if (bytes > bytesMax) return void reader.cancel();
    }
  } catch (error) {
    if (!isCutOff(error)) throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** The client left, broke its framing or was too slow. */
function isCutOff(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

function tooLarge(): Result<never> {
  return refuse("payload-too-large", `A body may have at most ${BODY_BYTES_MAX} bytes.`);
}

function unsupported(detail: string, headers: Readonly<Record<string, string>>): Result<never> {
  return refuse("unsupported-media-type", detail, { headers });
}

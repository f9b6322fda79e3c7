import { ok, type Result, refuse } from "../domain/problem.ts";
import { parseJsonText } from "./json-text.ts";

export const BODY_BYTES_MAX = 65_536;

/**
 * Reads a body as JSON: size, media type, then text, in this order. A body that is too long is not read to its
 * end, whether its length was declared or not.
 *
 * @param mediaTypes in lower case; compared without parameters and case (RFC 9110, section 8.3.1)
 */
export async function readJsonBody(
  request: Request,
  mediaTypes: readonly string[],
): Promise<Result<unknown>> {
  const { headers } = request;
  if (Number(headers.get("content-length") ?? 0) > BODY_BYTES_MAX) return tooLarge();
  const body = await readBytes(request);
  if (!body.ok) return body;
  const contentType = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (contentType === undefined || !mediaTypes.includes(contentType)) {
    const is = contentType === undefined || contentType === "" ? "has no Content-Type" : "is of another type";
    return unsupported(request, mediaTypes, `The body ${is}; send Content-Type: ${mediaTypes.join(" or ")}.`);
  }
  const coding = headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (coding !== "identity")
    return unsupported(request, mediaTypes, "The body is compressed; send it as it is.");
  return parseJsonText(body.value);
}

/** @returns the body, or a refusal as soon as it is longer than it may be */
async function readBytes(request: Request): Promise<Result<Uint8Array>> {
  try {
    // A declared length was checked, and the server holds a body to it. First, since to ask for `body` makes a stream.
    if (request.headers.has("content-length")) return ok(await request.bytes());
    if (request.body === null) return ok(new Uint8Array());
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of request.body) {
      length += chunk.byteLength;
      if (length > BODY_BYTES_MAX) return tooLarge();
      chunks.push(chunk);
    }
    return ok(Buffer.concat(chunks));
  } catch (error) {
    // The client left, broke its framing or was too slow. Nobody reads this answer, but the log must not blame the service.
    if (!(error instanceof DOMException && error.name === "AbortError")) throw error;
    return refuse("incomplete-body", "The connection ended before the body was whole.");
  }
}

function tooLarge(): Result<never> {
  return refuse("payload-too-large", `A body may have at most ${BODY_BYTES_MAX} bytes.`);
}

function unsupported(request: Request, mediaTypes: readonly string[], detail: string): Result<never> {
  const headers = request.method === "PATCH" ? { "accept-patch": mediaTypes.join(", ") } : undefined;
  return refuse("unsupported-media-type", detail, headers === undefined ? {} : { headers });
}

/** Content codings of HTTP (RFC 9110 §8.4.1); loaded where a reply has one. */
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";

/** Undefined where that is impossible; "too large" where it would be longer than `bytesMax`. */
export function uncompressed(
  bytes: Uint8Array,
  coding: string,
  bytesMax: number,
): Uint8Array | "too large" | undefined {
  const limit = { maxOutputLength: bytesMax };
  try {
    switch (coding) {
      case "gzip":
      case "x-gzip":
        return gunzipSync(bytes, limit);
      case "br":
        return brotliDecompressSync(bytes, limit);
      case "deflate":
        return inflateSync(bytes, limit);
      default:
        return undefined;
    }
  } catch (error) {
    return Object(error).code === "ERR_BUFFER_TOO_LARGE" ? "too large" : undefined;
  }
}

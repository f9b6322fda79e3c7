/** Content codings of HTTP (RFC 9110 §8.4.1); loaded where a reply has one. */
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";

/** Undefined where that is impossible, or where it would be longer than `bytesMax`. */
export function uncompressed(bytes: Uint8Array, coding: string, bytesMax: number): Uint8Array | undefined {
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
  } catch {
    return undefined;
  }
}

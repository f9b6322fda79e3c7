import { UsageError } from "../outcome/failure.ts";

/** Undefined where the bytes are not UTF-8: a replacement character would be stored in place of what was meant. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** @param what they are, for the message of the UsageError. */
export function checkedUtf8(bytes: Uint8Array, what: string): string {
  const text = decodeUtf8(bytes);
  if (text !== undefined) return text;
  throw new UsageError(
    `${what} is not UTF-8; nothing was sent`,
    "Convert it, for example with: iconv -t UTF-8",
  );
}

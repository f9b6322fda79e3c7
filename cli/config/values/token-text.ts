import { UsageError } from "../../outcome/failure.ts";

/** A token travels in a header: visible ASCII, no spaces. The message never holds the value itself. */
export function checkedToken(text: string, source: string): string {
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new UsageError(
    token === "" ? `${source} is empty` : `${source} holds spaces or characters that a token cannot have`,
    "Give the token alone, on one line.",
  );
}

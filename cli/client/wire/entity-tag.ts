/** Entity-tags as they come in ETag (RFC 9110 §8.8.3): opaque, and sent back byte for byte. */
export type EntityTag =
  | { kind: "strong"; tag: string }
  | { kind: "weak" | "malformed"; tag: string }
  | { kind: "missing" };

/**
 * A space inside the quotes is not allowed by the RFC, but is unambiguous: such a tag is used as it came.
 */
const STRONG = /^"[\x20\x21\x23-\x7e\x80-\xff]*"$/;
const WEAK = /^W\/"/i;

export function parseEntityTag(header: string | undefined): EntityTag {
  const tag = header?.replace(/^[ \t]+|[ \t]+$/g, "") ?? "";
  if (tag === "") return { kind: "missing" };
  if (STRONG.test(tag)) return { kind: "strong", tag };
  return { kind: WEAK.test(tag) ? "weak" : "malformed", tag };
}

/** What is wrong with a tag, in words. */
import { opaque, visible } from "./tag-forms.ts";

/** @param answered what the answer to a write carried; `before` and `after` are what reads show. */
export function wrongTag(answered: string | undefined, before: string, after: string): string {
  if (answered === before && before !== after)
    return `the answer carries the tag before the write, ${answered}; the next read shows ${after}`;
  if (answered === `W/${after}`)
    return `the answer carries the new tag weakened, ${answered}; the next read shows ${after}`;
  return `the answer carries ${answered}, which differs from what the next read shows, ${after}`;
}

/** Why a field value is no entity-tag. */
export function notATag(value: string): string {
  const odd = [...new Set(opaque(value).replace(/[\x21\x23-\x7e\x80-\xff]/g, ""))].map(visible);
  const why = /^(?:W\/)?".*"$/s.test(value)
    ? `it holds a blank or a character that none may hold: ${odd.join(" ")}`
    : "it is not in double quotes";
  return `ETag: ${visible(value)} is no quoted entity-tag: ${why}`;
}

/** The preferences of a request that this service knows (RFC 7240). All others are ignored, as section 2 says. */

/** `Prefer: return=representation` (section 4.2). */
export function prefersRepresentation(prefer: string | null): boolean {
  return prefer !== null && preferenceIn(prefer, "return")?.toLowerCase() === "representation";
}

/** `Prefer: changes`, a preference of our own: a 412 says who changed the customer. */
export function prefersChanges(prefer: string | null): boolean {
  return prefer !== null && preferenceIn(prefer, "changes") === "";
}

// Both patterns read a header in time that grows with its length alone.

/** An element of the list, with its parameters. A comma in a quoted string ends none; one left open takes in the rest. */
const ELEMENT = /(?:[^",]|"(?:[^"\\]|\\.)*(?:"|\\?$))+/g;
const TOKEN = "[!#$%&'*+.^_`|~\\w-]+";
/** `token [ BWS "=" BWS word ]`, up to the parameters. */
const PREFERENCE = new RegExp(
  `^[ \\t]*(${TOKEN})[ \\t]*(?:=[ \\t]*(?:(?:(${TOKEN})|"((?:[^"\\\\]|\\\\.)*)")[ \\t]*)?)?(?:;|$)`,
);

/** @returns the value of the first preference of that name, "" without one; null where there is none (section 2) */
function preferenceIn(prefer: string, name: string): string | null {
  for (const [element] of prefer.matchAll(ELEMENT)) {
    const [, found = "", token, quoted = ""] = PREFERENCE.exec(element) ?? [];
    if (found.toLowerCase() === name) return token ?? quoted.replace(/\\(.)/g, "$1");
  }
  return null;
}

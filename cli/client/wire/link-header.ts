/** The Link header (RFC 8288 §3): pure. */

export type Link = {
  /** As written, often relative. */
  target: string;
  /** Types of relation, in lower case. */
  relations: readonly string[];
};

// Every blank belongs to the part before it: were it in two parts, a long header could take exponential time.
const PARAMETER =
  /;[ \t]*(?:([\w!#$%&'*+.^`|~-]+)[ \t]*(?:=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))[ \t]*)?)?/;
const LINK = new RegExp(`[ \\t,]*<([^>]*)>[ \\t]*((?:${PARAMETER.source})*)(?=,|$)`, "y");

/** @returns undefined where the header can't be read to its end. */
export function parseLinks(header: string): readonly Link[] | undefined {
  let end = header.length;
  while (end > 0 && " \t,".includes(header.charAt(end - 1))) end -= 1;
  const text = header.slice(0, end);
  const links: Link[] = [];
  for (LINK.lastIndex = 0; LINK.lastIndex < text.length; ) {
    const [link, target = "", parameters = ""] = LINK.exec(text) ?? [];
    if (link === undefined) return undefined;
    links.push({ target, relations: relationsIn(parameters) });
  }
  return links;
}

/** Parsers must ignore each `rel` after the first (§3.3). */
function relationsIn(parameters: string): readonly string[] {
  for (const [, name, quoted, bare] of parameters.matchAll(new RegExp(PARAMETER, "g"))) {
    if (name?.toLowerCase() !== "rel") continue;
    const value = quoted?.replaceAll(/\\(.)/g, "$1") ?? bare ?? "";
    return value.toLowerCase().split(/\s+/);
  }
  return [];
}

/** Other spellings of a field in a query, which a policy may not recognize. */

import type { Field } from "../../target/profile-file.ts";

/** Names under which other APIs, frameworks and query parsers know a selection of fields. */
const PARAMETERS = [
  ..."fields[] fields%5B%5D fields[0] Fields %66ields field _fields $fields select $select include expand".split(
    " ",
  ),
  ..."$expand projection attributes props columns view".split(" "),
];

/** Letters that a case folding, or a mapping to capitals, takes for others. */
const folded = (name: string) => name.replaceAll("i", "\u0131").replaceAll("s", "\u017f");

export function spellings(field: Field, ok: Field, quick: boolean): string[] {
  const code = field.charCodeAt(0).toString(16);
  const lists = [
    field.toUpperCase(),
    field.charAt(0).toUpperCase() + field.slice(1),
    field.charAt(0) + field.charAt(1).toUpperCase() + field.slice(2),
    `${field},${field}`,
    `${ok}&fields=${field}`,
    `${field}&fields=${ok}`,
    `%20${field}%20`,
    `${ok},%20${field}`,
    `%${code}${field.slice(1)}`,
    // Decoded once by a gateway that checks, and once more by the service.
    `%25${code}${field.slice(1)}`,
    `${ok}%252C${field}`,
    `${ok},,${field}`,
    `${ok},`,
    `${ok}%2C${field}`,
    "*",
    "",
    ...[
      folded(field),
      `${ok};${field}`,
      `${ok}|${field}`,
      `${ok} ${field}`,
      `["${field}"]`,
      `${field}\0`,
    ].map(encodeURIComponent),
  ].map((list) => `?fields=${list}`);
  const named = PARAMETERS.flatMap((name) => [
    `?${name}=${field}`,
    ...(quick ? [] : [`?fields=${ok}&${name}=${field}`]),
  ]);
  return [...lists, `?FIELDS=${field}`, ...named];
}

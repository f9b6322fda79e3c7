/** What a service may wrongly take for If-Match where there is none: other headers, parameters, members of the body. */

import type { Bad, Lines, Probe } from "./refusal.ts";
import { opaque } from "./tag-forms.ts";

const stand =
  (what: string, lines: (tag: string) => Lines, open: Partial<Probe> = {}): Bad =>
  (tag) => ({ what: `${what} in place of If-Match`, lines: lines(tag), ...open });

const inHeader = (name: string): Bad => stand(`the token in ${name}`, (tag) => [[name, tag]]);

const inQuery =
  (name: string): Bad =>
  (tag) => ({
    what: `the token as the parameter ${name} in place of If-Match`,
    lines: [],
    query: `?${name}=${encodeURIComponent(tag)}`,
    // A deployment may refuse parameters that it does not know before all else.
    allowed: [400, 404],
  });

/** Fit for every method, DELETE without a body too. */
export function standIns(): Bad[] {
  const date = new Date(Date.now() + 3_600_000).toUTCString();
  return [
    stand("If-Unmodified-Since", () => [["If-Unmodified-Since", date]]),
    inHeader("ETag"),
    inHeader("X-If-Match"),
    inHeader("X-ETag"),
    // RFC 9110 13.2.2 makes this one 412 where If-None-Match is looked at.
    stand("the token in If-None-Match", (tag) => [["If-None-Match", tag]], { allowed: [412] }),
    inQuery("if-match"),
    inQuery("etag"),
    inQuery("version"),
  ];
}

const MEMBERS = [
  "etag",
  "ETag",
  "_etag",
  "@odata.etag",
  "ifMatch",
  "rowVersion",
  "RowVersion",
  "row_version",
  "version",
  "Version",
  "concurrencyStamp",
] as const;

/** The token as members of the body: as it is, without its quotes, and as a number where it is one. */
export function memberStandIns(oneByOne: boolean): Bad[] {
  const sets = oneByOne ? MEMBERS.map((member) => [member]) : [MEMBERS];
  const forms: [string, (tag: string) => unknown][] = [
    ["the token", (tag) => tag],
    ["the token without quotes", opaque],
    ["the token as a number", (tag) => (/^\d{1,15}$/.test(opaque(tag)) ? Number(opaque(tag)) : undefined)],
  ];
  return sets.flatMap((members) =>
    forms.map(
      ([what, form]): Bad =>
        (tag) => {
          const value = form(tag);
          if (value === undefined) return undefined;
          return {
            what: `${what} in the body as ${members.join(", ")} in place of If-Match`,
            lines: [],
            members: Object.fromEntries(members.map((member) => [member, value])),
            // A deployment may refuse members that it does not know before all else.
            allowed: [400, 422],
          };
        },
    ),
  );
}

/**
 * Forms of If-Match that must be refused, derived from a real current tag, as rows. In a row TAG is the current tag,
 * TOKEN the text between its quotes, FORMER the tag before the last accepted write, OWN-ID the id of the customer.
 */
import type { Customer } from "../../fixtures/ground.ts";
import type { Values } from "../../target/values.ts";
import type { Content, Lines } from "../trial.ts";
import { affixes, caseFlips, type Form, foldings, opaque, spellings, successors } from "./tag-forms.ts";

/**
 * What the specification may be read to allow beside 412 or 428: some statuses, any refusal, or anything, as long as
 * nothing changes.
 */
export type Allowed = readonly number[] | "refused" | "any";

/** One request that must be refused. */
export type Refused = Content & {
  /** In words, to follow "PUT with". */
  readonly what: string;
  readonly lines: Lines;
  readonly allowed?: Allowed;
  /** A way of sending that a deployment need not take, and what is allowed where it takes it with the current tag. */
  readonly optional?: { readonly way: string; readonly allowed: Allowed };
  /** What goes before it on the same connection. */
  readonly opening?: "a read" | "two reads" | "a read of the former tag" | "an accepted write" | "a conflict";
  /** What is done to the customer right before, wherever it is sent from. It changes nothing. */
  readonly first?: ((customer: Customer, tag: string) => Promise<unknown>) | undefined;
  /** In place of fresh values. Of a PATCH only those leave that differ from the stored ones, or else the name. */
  readonly values?: ((stored: Values, fresh: Values) => Values) | undefined;
};

/** Derives a request from the current and the former tag; undefined where they have no such form. */
export type Derive = (tag: string, former: string, customer: Customer) => Refused | undefined;

/** Header lines are bytes, one a character. */
const bytes = (text: string) => Buffer.from(text, "utf8").toString("latin1");

export const ifMatch = (value: string): Lines => [["If-Match", value]];

/** The same form, with more said of what it is. */
export const worded =
  (derive: Derive, more: string): Derive =>
  (...at) => {
    const form = derive(...at);
    return form && { ...form, what: `${form.what}, ${more}` };
  };

type Row = readonly [what: string, value: string | readonly string[], allowed?: Allowed];

/** A list of values is a header line each. @param allowed where a row does not say */
export function rows(table: readonly Row[], allowed: Allowed = []): Derive[] {
  return table.map(([what, value, own = allowed]) => (tag, former, { id }) => {
    const filled = [value].flat().map((each) => fill(each, tag, former, id));
    return filled.includes(undefined)
      ? undefined
      : { what, lines: filled.map((each): [string, string] => ["If-Match", each ?? ""]), allowed: own };
  });
}

function fill(row: string, tag: string, former: string, id: string): string | undefined {
  if (row.includes("FORMER") && former === tag) return undefined;
  return row
    .replaceAll("OWN-ID", id)
    .replaceAll("TAG", () => tag)
    .replaceAll("TOKEN", () => opaque(tag))
    .replaceAll("FORMER", () => former);
}

/** A firewall before the service may take a quote or a semicolon for an attack and answer 403 itself. */
const STOPPABLE = [403];
/** A server may refuse bytes beyond ASCII in a header. */
const ODD_BYTES = [400, 403];
/** A list is "not supported": whether it is a wrong token (412) or a bad header (400) is open. */
const AS_LIST = [400];

/** A tag that no customer has ever had. */
export const NEVER_GIVEN_TAG = '"kit-never-given"';
export const NEVER_GIVEN: Derive = () => ({ what: "a tag never given", lines: ifMatch(NEVER_GIVEN_TAG) });
export const NONE: Derive = () => ({ what: "no If-Match", lines: [] });
export const EMPTY = rows([["an empty If-Match", ""]]);
export const BLANKS = rows([
  ["an If-Match of blanks (three spaces)", "   "],
  ["an If-Match of blanks (a tab)", "\t"],
  ["an If-Match of blanks (spaces and a tab)", " \t "],
]);
export const BLANK: Derive = () => ({ what: "a blank If-Match", lines: ifMatch("  ") });
/** Must be refused to a caller who may not write. */
export const CURRENT: Derive = (tag) => ({ what: "the current tag", lines: ifMatch(tag) });
export const STALE: Derive = (tag, former) =>
  tag === former ? undefined : { what: "a stale tag", lines: ifMatch(former) };
/** RFC 9110 13.1.1 lets a server answer 2xx to a stale write whose effect is there already; the specification does not. */
export const PREVIOUS: readonly Derive[] = [
  ...rows([["the previous tag, stale by now,", "FORMER"]]),
  (tag, former) =>
    former === tag
      ? undefined
      : {
          what: "the previous tag, stale by now, and the values that are stored,",
          lines: ifMatch(former),
          values: (stored) => stored,
        },
];
/** By kind; each form is the current tag altered, or none that the customer has. */
export const INEXACT = {
  weak: rows([
    ["the current tag weakened", "W/TAG"],
    ["the current tag weakened with a small w", "w/TAG"],
    ["the current tag weakened with a blank after W/", "W/ TAG"],
    ["the previous tag weakened", "W/FORMER"],
    ["the current tag weakened and without its quotes", "W/TOKEN"],
  ]),
  unquoted: rows([
    ["the current tag without its quotes", "TOKEN"],
    ["the current tag in single quotes", "'TOKEN'", STOPPABLE],
    ["the current tag without its closing quote", '"TOKEN'],
    ["the current tag without its opening quote", 'TOKEN"'],
    ["the current tag with every quote doubled", '"TAG"'],
    ["the current tag with its quotes escaped", '\\"TOKEN\\"', STOPPABLE],
    ["the current tag with its quotes escaped for HTML", "&quot;TOKEN&quot;", STOPPABLE],
    ["the current tag with its quotes percent-encoded", "%22TOKEN%22", STOPPABLE],
    ["the current tag in curly quotes", `${bytes("\u201c")}TOKEN${bytes("\u201d")}`, ODD_BYTES],
  ]),
  star: rows([
    ["If-Match *", "*"],
    ["If-Match * in quotes", '"*"'],
    ["If-Match * between blanks", "  * "],
  ]),
  list: rows(
    [
      ["a list, the current tag first", 'TAG, "kit-other"'],
      ["a list, the current tag last", '"kit-other", TAG'],
      ["a list without blanks", 'TAG,"kit-other"'],
      ["a list, an empty member last", "TAG,"],
      ["a list, an empty member first", ",TAG"],
      ["a list, an empty member and a blank first", ", TAG"],
      ["a list of the current tag twice", "TAG, TAG"],
      ["a list of the current tag and its weak form", "TAG, W/TAG"],
      ["a list of three, the current tag in the middle", '"kit-other", TAG, "kit-third"'],
      ["a list with * in it", '"kit-other", *'],
      ["a list of five other tags", '"kit-1", "kit-2", "kit-3", "kit-4", "kit-5"'],
    ],
    AS_LIST,
  ),
  twoLines: rows(
    [
      ["two If-Match lines, the current tag first", ["TAG", '"kit-other"']],
      ["two If-Match lines, the current tag last", ['"kit-other"', "TAG"]],
      ["two If-Match lines, both of the current tag", ["TAG", "TAG"]],
    ],
    AS_LIST,
  ),
  otherCase: formsOf(caseFlips, 3),
  affix: formsOf(affixes, 19),
  spelling: formsOf(spellings, 8),
  folding: formsOf(foldings, 4),
  /** Present, not blank, and no tag that the customer has: a parser may find nothing to compare in them. */
  noTag: rows([
    ["a comma alone", ",", [400, 428]],
    ["commas and blanks alone", ", ,", [400, 428]],
    ["a quote alone", '"', STOPPABLE],
    ["an empty tag weakened", 'W/""'],
    ["W/ alone", "W/"],
    ["the customer's own id as a tag", '"OWN-ID"'],
    ["a date to come", "Thu, 31 Dec 2099 23:59:59 GMT", AS_LIST],
  ]),
};
/** One form of each kind, always the same. */
export const firstOfEach = (...kinds: readonly (readonly Derive[])[]): Derive[] =>
  kinds.flatMap((forms) => forms.slice(0, 1));
export const SUCCESSORS = formsOf(successors, 5);

const shortened = (text: string) =>
  text.length > 24 ? `${text.slice(0, 24)}… (${text.length} characters)` : text;

/** A firewall may stop such a request, or find its header too large. */
export const HOSTILE = rows(
  [
    '""',
    `"' OR '1'='1"`,
    `"x' OR 1=1 --"`,
    '"%"',
    '".*"',
    '"[^x]*"',
    '"null"',
    "null",
    "undefined",
    '" "',
    '"   "',
    '"0"',
    '"-1"',
    '"true"',
    '"../../etc/passwd"',
    `"\${7*7}"`,
    `"${"a".repeat(2000)}"`,
    `"${"a".repeat(5000)}"`,
  ].map((text) => [`the text ${shortened(text)} as a tag`, text] as const),
  [403, 431],
);

function formsOf(forms: (tag: string) => readonly Form[], count: number): Derive[] {
  return Array.from({ length: count }, (_, index) => (tag) => {
    const form = forms(tag)[index];
    if (form === undefined) return undefined;
    const odd = /[^\x20-\x7e]/.test(form.value) && !/[^\x20-\x7e]/.test(tag);
    const allowed = odd ? ODD_BYTES : /[;<]/.test(form.value) ? STOPPABLE : [];
    return { ...form, lines: ifMatch(form.value), allowed };
  });
}

/** What a service may wrongly take for If-Match where there is none; a deployment may refuse parameters that it does not know. */
export const STAND_IN_HEADERS =
  "ETag X-If-Match If_Match X-ETag If-Match-ETag X-Row-Version If-Version".split(" ");
const CONDITIONS = [
  [["If-None-Match", "*"]],
  [["If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"]],
] as const;
const PARAMETERS = ["if-match", "ifMatch", "etag", "version", "rowVersion"];
/** Fit for every method, DELETE without a body too. */
export function standIns(): Derive[] {
  const date = new Date(Date.now() + 3_600_000).toUTCString();
  const stand =
    (what: string, derive: (tag: string) => Partial<Refused>): Derive =>
    (tag) => ({ what: `${what} in place of If-Match`, lines: [], ...derive(tag) });
  return [
    stand("If-Unmodified-Since", () => ({ lines: [["If-Unmodified-Since", date]] })),
    // RFC 9110 13.2.2 makes this one 412 where If-None-Match is looked at.
    stand("the token in If-None-Match", (tag) => ({ lines: [["If-None-Match", tag]], allowed: [412] })),
    ...STAND_IN_HEADERS.map((name) => stand(`the token in ${name}`, (tag) => ({ lines: [[name, tag]] }))),
    ...PARAMETERS.map((name) =>
      stand(`the token as the parameter ${name}`, (tag) => ({
        query: `?${name}=${encodeURIComponent(tag)}`,
        allowed: [400, 404],
        optional: { way: `with the parameter ${name}`, allowed: [] },
      })),
    ),
    // Conditions of another kind; RFC 9110 13.2.2 makes If-None-Match: * 412.
    ...CONDITIONS.map((lines) => stand(lines[0].join(": "), () => ({ lines, allowed: [412] }))),
  ];
}

const MEMBERS = [
  ..."etag ETag _etag @odata.etag ifMatch rowVersion RowVersion row_version".split(" "),
  ..."version Version concurrencyStamp".split(" "),
];

/** The token as members of the body: as it is, without its quotes, and as a number where it is one. */
export function memberStandIns(oneByOne: boolean): Derive[] {
  const sets = oneByOne ? MEMBERS.map((member) => [member]) : [MEMBERS];
  const forms: [string, (tag: string) => unknown][] = [
    ["the token", (tag) => tag],
    ["the token without quotes", opaque],
    // To a mapper of objects a row without a version is a new one, which it writes without comparing.
    ["null", () => null],
    ["the token as a number", (tag) => (/^\d{1,15}$/.test(opaque(tag)) ? Number(opaque(tag)) : undefined)],
  ];
  return sets.flatMap((members) =>
    forms.map(
      ([what, form]): Derive =>
        (tag) => {
          const value = form(tag);
          if (value === undefined) return undefined;
          return {
            what: `${what} in the body as ${members.join(", ")} in place of If-Match`,
            lines: [],
            members: Object.fromEntries(members.map((member) => [member, value])),
            // A deployment may refuse members that it does not know before all else.
            allowed: [400, 422],
            optional: { way: `with ${what} as ${members.join(", ")}`, allowed: [] },
          };
        },
    ),
  );
}

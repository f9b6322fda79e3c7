/** If-Match values that must be refused, derived from a real current tag. */
import { affixes, caseFlips, opaque, spellings } from "../tag-forms.ts";
import { type Bad, formsOf, header } from "./refusal.ts";

export const NONE: Bad = { what: "no If-Match", lines: () => [] };
export const EMPTY: Bad = { what: "an empty If-Match", lines: () => header("") };
export const BLANKS: readonly Bad[] = ["   ", "\t", " \t "].map((blank) => ({
  what: "an If-Match of blanks",
  lines: () => header(blank),
}));
export const WEAK: Bad = { what: "the current tag weakened", lines: (tag) => header(`W/${tag}`) };
export const STAR: Bad = { what: "If-Match *", lines: () => header("*") };
export const UNQUOTED: readonly Bad[] = [
  { what: "the current tag without its quotes", lines: (tag) => header(opaque(tag)) },
  { what: "the current tag in single quotes", lines: (tag) => header(`'${opaque(tag)}'`) },
  { what: "the current tag without its closing quote", lines: (tag) => header(`"${opaque(tag)}`) },
  { what: "the current tag without its opening quote", lines: (tag) => header(`${opaque(tag)}"`) },
];
export const LISTS: readonly Bad[] = [
  { what: "a list, the current tag first", lines: (tag) => header(`${tag}, "kit-other"`) },
  { what: "a list, the current tag last", lines: (tag) => header(`"kit-other", ${tag}`) },
  { what: "a list without blanks", lines: (tag) => header(`${tag},"kit-other"`) },
];
export const TWO_LINES: readonly Bad[] = [
  {
    what: "two If-Match lines, the current tag first",
    lines: (tag) => [...header(tag), ...header('"kit-other"')],
  },
  {
    what: "two If-Match lines, the current tag last",
    lines: (tag) => [...header('"kit-other"'), ...header(tag)],
  },
];
export const CASES = formsOf("the current tag in another letter case", caseFlips, 3);
export const AFFIXES = formsOf("the current tag with something added or cut off", affixes, 7);
export const SPELLINGS = formsOf("another spelling of the current tag", spellings, 6);
export const INEXACT: readonly Bad[] = [
  WEAK,
  ...UNQUOTED.slice(0, 1),
  STAR,
  ...LISTS.slice(0, 2),
  ...CASES.slice(0, 1),
  ...AFFIXES.slice(0, 2),
];
/** A list is "not supported": whether it is a wrong token (412) or a bad header (400) is open. */
export const AS_LIST = { allowed: [400] } as const;

export const PREVIOUS: Bad = {
  what: "the previous tag",
  lines: (tag, former) => (former === tag ? undefined : header(former)),
};

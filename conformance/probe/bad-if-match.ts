/** If-Match values that must be refused, derived from a real current tag. */

import { type Bad, bad, formsOf, header } from "./refusal.ts";
import { affixes, caseFlips, opaque, spellings } from "./tag-forms.ts";

/** A firewall before the service may take a quote or a semicolon for an attack and answer 403 itself. */
function stoppable(derive: Bad): Bad {
  return (tag, former) => {
    const probe = derive(tag, former);
    return probe === undefined ? undefined : { ...probe, allowed: [403] };
  };
}

export const NONE: Bad = () => ({ what: "no If-Match", lines: [] });
export const EMPTY: Bad = bad("an empty If-Match", () => "");
export const BLANKS: readonly Bad[] = [
  bad("an If-Match of blanks (three spaces)", () => "   "),
  bad("an If-Match of blanks (a tab)", () => "\t"),
  bad("an If-Match of blanks (spaces and a tab)", () => " \t "),
];
export const WEAK: Bad = bad("the current tag weakened", (tag) => `W/${tag}`);
export const WEAK_SMALL: Bad = bad("the current tag weakened with a small w", (tag) => `w/${tag}`);
export const STAR: Bad = bad("If-Match *", () => "*");
export const QUOTED_STAR: Bad = bad("If-Match * in quotes", () => '"*"');
export const UNQUOTED: readonly Bad[] = [
  bad("the current tag without its quotes", (tag) => opaque(tag)),
  stoppable(bad("the current tag in single quotes", (tag) => `'${opaque(tag)}'`)),
  bad("the current tag without its closing quote", (tag) => `"${opaque(tag)}`),
  bad("the current tag without its opening quote", (tag) => `${opaque(tag)}"`),
  bad("the current tag with every quote doubled", (tag) => `"${tag}"`),
  stoppable(bad("the current tag with its quotes escaped", (tag) => `\\"${opaque(tag)}\\"`)),
];
export const LISTS: readonly Bad[] = [
  bad("a list, the current tag first", (tag) => `${tag}, "kit-other"`),
  bad("a list, the current tag last", (tag) => `"kit-other", ${tag}`),
  bad("a list without blanks", (tag) => `${tag},"kit-other"`),
  bad("a list, an empty member last", (tag) => `${tag},`),
  bad("a list, an empty member first", (tag) => `,${tag}`),
  bad("a list, an empty member and a blank first", (tag) => `, ${tag}`),
  bad("a list of the current tag twice", (tag) => `${tag}, ${tag}`),
];
export const TWO_LINES: readonly Bad[] = [
  (tag) => ({
    what: "two If-Match lines, the current tag first",
    lines: [...header(tag), ...header('"kit-other"')],
  }),
  (tag) => ({
    what: "two If-Match lines, the current tag last",
    lines: [...header('"kit-other"'), ...header(tag)],
  }),
];
export const CASES = formsOf(caseFlips, 3);
export const AFFIXES = formsOf(affixes, 12).map(
  (derive): Bad =>
    (tag, former) => {
      const probe = derive(tag, former);
      return /[;<]/.test(probe?.lines[0]?.[1] ?? "") ? stoppable(derive)(tag, former) : probe;
    },
);
export const SPELLINGS = formsOf(spellings, 8);
export const INEXACT: readonly Bad[] = [
  WEAK,
  ...UNQUOTED.slice(0, 1),
  STAR,
  ...LISTS.slice(0, 2),
  ...CASES.slice(0, 1),
  ...AFFIXES.slice(0, 3),
];
/** A list is "not supported": whether it is a wrong token (412) or a bad header (400) is open. */
export const AS_LIST = { allowed: [400] } as const;

export const PREVIOUS: Bad = bad("the previous tag, stale by now,", (tag, former) =>
  former === tag ? undefined : former,
);
/** RFC 9110 13.1.1 lets a server answer 2xx to a stale write whose effect is there already; the specification does not. */
export const PREVIOUS_SAME_VALUES: Bad = (tag, former) =>
  former === tag
    ? undefined
    : {
        what: "the previous tag, stale by now, and the values that are stored,",
        lines: header(former),
        storedValues: true,
      };

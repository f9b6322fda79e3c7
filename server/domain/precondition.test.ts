import { describe, expect, test } from "bun:test";
import type { RowVersion } from "./entity-tag.ts";
import {
  diagnose,
  EXPLANATIONS,
  expectedVersion,
  failedPrecondition,
  type Preconditions,
  readPreconditions,
  trimBlanks,
} from "./precondition.ts";

const TAG = '"AAECAwQFBgfIycrL"';
const OPAQUE = TAG.slice(1, -1);
const CURRENT = OPAQUE as RowVersion;
const OTHER = '"CQkJCQkJCQkJCQkJ"';
const WEAK_OTHER = `W/${OTHER}`;

const preconditions = (ifMatch: string | null, ifNoneMatch: string | null = null): Preconditions =>
  readPreconditions({ get: (name) => (name === "if-match" ? ifMatch : ifNoneMatch) });

test("spaces and tabs are trimmed, and nothing else is", () => {
  expect(trimBlanks(' \t"x"\t ')).toBe('"x"');
  for (const kept of ["\u00a0", "\u000b", "\ufeff", "\u2003", "\r", "\n"]) {
    expect(trimBlanks(`${kept}"x"${kept}`)).toBe(`${kept}"x"${kept}`);
  }
});

test("an absent or blank precondition is none; a no-break space is a value", () => {
  const none = { ifMatch: null, ifNoneMatch: null };
  for (const blank of [null, "", " ", "\t", " \t \t"]) expect(preconditions(blank, blank)).toEqual(none);
  expect(preconditions("\u00a0", ` ${TAG}\t`)).toEqual({ ifMatch: "\u00a0", ifNoneMatch: TAG });
});

test("only the very tag meets If-Match", () => {
  expect(failedPrecondition(preconditions(TAG), CURRENT)).toBeNull();
  for (const other of [OTHER, `W/${TAG}`, OPAQUE, "*", `${TAG}, ${TAG}`, TAG.toLowerCase(), `${TAG}x`]) {
    expect(failedPrecondition(preconditions(other), CURRENT)).toBe("If-Match");
  }
});

test("If-Match is evaluated before If-None-Match", () => {
  expect(failedPrecondition(preconditions(OTHER, "*"), CURRENT)).toBe("If-Match");
  expect(failedPrecondition(preconditions(TAG, "*"), CURRENT)).toBe("If-None-Match");
  expect(failedPrecondition(preconditions(TAG, WEAK_OTHER), CURRENT)).toBeNull();
});

describe("what the store compares is what the preconditions say", () => {
  const values = [
    null,
    TAG,
    OTHER,
    `W/${TAG}`,
    "*",
    `${OTHER}, ${TAG}`,
    `${TAG}, ${OTHER}`,
    "x",
    OPAQUE,
    '"a,b"',
    ",",
  ];
  const rows = values.flatMap((ifMatch) => values.map((ifNoneMatch) => [ifMatch, ifNoneMatch] as const));
  test.each(rows)("If-Match %p, If-None-Match %p", (ifMatch, ifNoneMatch) => {
    const given = preconditions(ifMatch, ifNoneMatch);
    const expected = expectedVersion(given);
    for (const stored of [CURRENT, OTHER.slice(1, -1) as RowVersion, "DDDDDDDDDDDDDDDD" as RowVersion]) {
      const isApplied =
        typeof expected === "string" ? expected === stored : !expected.anyExcept.includes(stored);
      expect(isApplied).toBe(failedPrecondition(given, stored) === null);
    }
  });
});

describe("If-None-Match", () => {
  test.each([
    [null, false],
    ["", false],
    [" \t", false],
    ["*", true],
    [TAG, true],
    [`W/${TAG}`, true],
    [`"a,b", ${TAG}`, true],
    [`${OTHER},W/${TAG} , "z"`, true],
    [OTHER, false],
    [OPAQUE, false],
    [`"x${OPAQUE}"`, false],
    [`w/${TAG}`, false],
    [`x${TAG}`, false],
    [`${TAG} ${TAG}`, false],
    [`${TAG}, x`, false],
    [`, ,${TAG},`, true],
    [`"${TAG}`, false],
    [",", false],
    [`"${OPAQUE.toLowerCase()}"`, OPAQUE === OPAQUE.toLowerCase()],
  ])("%p: matches %p", (header, matches) => {
    expect(failedPrecondition(preconditions(null, header), CURRENT)).toBe(matches ? "If-None-Match" : null);
  });
});

describe("a mangled tag is named for what was done to it", () => {
  test.each([
    [`W/${TAG}`, "weak"],
    [`w/${TAG}`, "weak"],
    [`W/${OTHER}`, "weak"],
    ["*", "any"],
    [`${TAG}, ${TAG}`, "list"],
    [`${TAG},${OTHER}`, "list"],
    [`"a", ${TAG}`, "list"],
    [`W/"a", ${TAG}`, "list"],
    [", ", "list"],
    [`"${OPAQUE}-gzip"`, "compression-suffix"],
    [`"${OPAQUE};br"`, "compression-suffix"],
    [`${TAG}-gzip`, "compression-suffix"],
    [OPAQUE, "unquoted"],
    [`'${OPAQUE}'`, "unquoted"],
    [`"${OPAQUE}`, "unquoted"],
    [`${OPAQUE}"`, "unquoted"],
    [`" ${OPAQUE}"`, "unquoted"],
    [`%22${OPAQUE}%22`, "unquoted"],
    [`\\"${OPAQUE}\\"`, "unquoted"],
    [`\u00a0${TAG}`, "non-ascii"],
    [`"${OPAQUE}\u00e9"`, "non-ascii"],
    [swapCase(TAG), "case-changed"],
    [`${TAG}x`, "trailing-bytes"],
    [`"x${OPAQUE}"`, "trailing-bytes"],
    ['"something else"', "not-an-entity-tag"],
    [OTHER, "stale"],
  ])("%p is %p", (received, kind) => {
    expect<string>(diagnose(preconditions(received), CURRENT)).toBe(kind);
  });
});

test("a precondition that only If-None-Match fails is named so", () => {
  expect(diagnose(preconditions(TAG, "*"), CURRENT)).toBe("none-match");
  expect(diagnose(preconditions(null, `W/${TAG}`), CURRENT)).toBe("none-match");
});

test("every explanation says what to do next", () => {
  for (const explanation of Object.values(EXPLANATIONS)) {
    expect(explanation).toMatch(
      /[a-z)*`]\. [^.]*\b(?:[Ss]end|read|Read|Turn|configure|Leave|Idempotency-Key)\b/,
    );
  }
});

function swapCase(text: string): string {
  return text.replace(/[a-zA-Z]/g, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );
}

// With a pattern that goes back at every blank each of these would take hours.
test("a million blanks inside a header are passed over once", () => {
  const blanks = " ".repeat(1_000_000);
  expect(trimBlanks(`${blanks}a${blanks}b${blanks}`)).toBe(`a${blanks}b`);
  expect(diagnose(preconditions(`${TAG}${blanks}x`), CURRENT)).toBe("trailing-bytes");
  expect(diagnose(preconditions(`${TAG},${blanks}x`), CURRENT)).toBe("list");
  expect(failedPrecondition(preconditions(null, `"a",${blanks}x`), CURRENT)).toBeNull();
  expect(failedPrecondition(preconditions(null, `"a",${blanks}${TAG}${blanks}`), CURRENT)).toBe(
    "If-None-Match",
  );
});

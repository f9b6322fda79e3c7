import { describe, expect, test } from "bun:test";
import type { RowVersion } from "./entity-tag.ts";
import {
  diagnose,
  expectedVersion,
  matchesExpected,
  matchesIfNoneMatch,
  readIfMatch,
  trimBlanks,
} from "./precondition.ts";

const TAG = '"AAECAwQFBgfIycrL"';
const CURRENT = expectedVersion(TAG) as RowVersion;
const OPAQUE = TAG.slice(1, -1);
const OTHER = '"CQkJCQkJCQkJCQkJ"';

test("spaces and tabs are trimmed, and nothing else is", () => {
  expect(trimBlanks(' \t"x"\t ')).toBe('"x"');
  for (const kept of ["\u00a0", "\u000b", "\ufeff", "\u2003", "\r", "\n"]) {
    expect(trimBlanks(`${kept}"x"${kept}`)).toBe(`${kept}"x"${kept}`);
  }
});

test("an absent or blank If-Match is none; a no-break space is a value", () => {
  for (const blank of [null, "", " ", "\t", " \t \t"]) expect(readIfMatch(blank)).toBeNull();
  expect(readIfMatch("\u00a0")).toBe("\u00a0");
  expect(readIfMatch(` ${TAG}\t`)).toBe(TAG);
});

test("only the very tag matches its version", () => {
  expect(matchesExpected(expectedVersion(TAG), CURRENT)).toBe(true);
  expect(matchesExpected("any", CURRENT)).toBe(true);
  for (const other of [OTHER, `W/${TAG}`, OPAQUE, "*", `${TAG}, ${TAG}`, TAG.toLowerCase(), `${TAG}x`]) {
    expect(matchesExpected(expectedVersion(other), CURRENT)).toBe(false);
  }
});

describe("If-None-Match of a read", () => {
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
    expect(matchesIfNoneMatch(header, CURRENT)).toBe(matches);
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
    const diagnosis = diagnose(received, CURRENT);
    expect(diagnosis.kind).toBe(kind as typeof diagnosis.kind);
    expect(diagnosis.explanation.length).toBeGreaterThan(40);
  });
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
  expect(diagnose(`${TAG}${blanks}x`, CURRENT).kind).toBe("trailing-bytes");
  expect(diagnose(`${TAG},${blanks}x`, CURRENT).kind).toBe("list");
  expect(matchesIfNoneMatch(`"a",${blanks}x`, CURRENT)).toBe(false);
  expect(matchesIfNoneMatch(`"a",${blanks}${TAG}${blanks}`, CURRENT)).toBe(true);
});

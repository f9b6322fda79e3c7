/**
 * The text that `edit` shows and reads back: the customer as JSON, under lines of comment. A line that begins
 * with // can't be part of JSON, so comments are whole lines and everything else is the server's own JSON.
 */

import { memberNamed, plainText } from "../client/customer.ts";
import {
  indentJson,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonEquals,
  parseJson,
} from "../client/json.ts";
import type { FieldConflict } from "../client/loop/field-conflicts.ts";
import { fieldLines } from "../outcome/value-text.ts";

const COMMENT = /^\s*\/\//;

export function renderText(value: JsonObject, comments: readonly string[]): string {
  return withComments(`${indentJson(value, 2)}\n`, comments);
}

/** Someone's text, as it is, under other comments than before. */
export function withComments(text: string, comments: readonly string[]): string {
  return comments.map((line) => `// ${line.replaceAll(/[\r\n]+/g, " ")}\n`).join("") + withoutComments(text);
}

type ParsedText = { ok: true; value: JsonObject } | { ok: false; problem: string };

/** @param base what the text was made from: its id is not to be changed. */
export function parseText(text: string, base: JsonObject): ParsedText {
  let value: Json;
  let twice: string | undefined;
  try {
    value = parseJson(withoutComments(text), (name) => {
      twice = name;
    });
  } catch (error) {
    return { ok: false, problem: `this is not JSON: ${(error as Error).message}` };
  }
  if (!isJsonObject(value)) return { ok: false, problem: "this is not a JSON object" };
  // Names match without regard to case; what the server shows twice in its own way may stay.
  twice ??= [...value.keys()].find((name) => !base.has(name) && hasOther(value, name));
  if (twice !== undefined) return { ok: false, problem: `the member ${twice} appears twice` };
  const [before, now] = [memberNamed(base, "id")?.value, memberNamed(value, "id")?.value];
  if (before !== undefined && now !== undefined && !jsonEquals(before, now)) {
    return { ok: false, problem: `the id can't be changed: it is ${plainText(before)}` };
  }
  return { ok: true, value };
}

function hasOther(value: JsonObject, name: string): boolean {
  return [...value.keys()].some((other) => other !== name && other.toLowerCase() === name.toLowerCase());
}

/** The members with another value than in `base`, and the new ones. One that is missing is left as it is. */
export function changedMembers(base: JsonObject, edited: JsonObject): Map<string, Json> {
  return new Map(
    [...edited].filter(([name, value]) => {
      const before = base.get(name);
      return before === undefined || !jsonEquals(before, value);
    }),
  );
}

/** What is there now, with the change on top: the text to decide a conflict in. */
export function mergedValue(theirs: JsonObject, change: ReadonlyMap<string, Json>): JsonObject {
  const merged = new Map(theirs);
  for (const [field, value] of change) merged.set(memberNamed(theirs, field)?.name ?? field, value);
  return merged;
}

export function introduction(id: string): string[] {
  return [
    `Customer ${id}. What you change is sent when you save and quit; without a change nothing is sent.`,
    "A member that you delete is left as it is. Lines that begin with // are not sent.",
  ];
}

/** @param who words about who changed it. */
export function conflictComments(
  id: string,
  conflicts: readonly FieldConflict[],
  who: readonly string[],
): string[] {
  return [
    `CONFLICT: someone else changed customer ${id} while you edited. Below are your values.`,
    ...fieldLines(conflicts),
    ...who.map((text) => `  ${text}`),
    "Decide, delete this comment, save and quit. If you leave the text as it is, nothing is sent.",
  ];
}

function withoutComments(text: string): string {
  return text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .filter((line) => !COMMENT.test(line))
    .join("\n");
}

/** What a conditional write is to reach, and under which conditions. */
import { type Customer, memberNamed, plainText } from "../customer.ts";
import type { WriteIntent } from "./intent.ts";

/** Compared as text; `anyCase`: without regard to case. */
export type Expectation = { field: string; value: string; anyCase?: boolean };

/** What to do when someone else wrote in between. */
export type OnConflict = "reapply" | "merge" | "fail";

export type WriteJob = {
  id: string;
  intent: WriteIntent;
  onConflict: OnConflict;
  /** Checked after every reading: of many who expect the same, one alone succeeds. */
  expect: readonly Expectation[];
  /** The tag that is sent; a 412 is then final. */
  ifMatch?: string | undefined;
  /** Writes that are sent at most. */
  maxAttempts?: number | undefined;
  /** Asks a server that can say it who else changed the customer. */
  asksForChanges?: boolean | undefined;
  /** Sent with each write (X-Request-Id), so that among the changes its own can be told apart. */
  requestId?: string | undefined;
  /** Begins from this reading rather than from a fresh one. */
  base?: Customer | undefined;
};

/**
 * A version that is named, or a value that is expected, is a claim: of two who make it, one alone may
 * succeed.
 */
export function claims({ ifMatch, expect }: WriteJob): boolean {
  return ifMatch !== undefined || expect.length > 0;
}

/** Compared as text: an expectation of `1.10` is met by the number 1.10. */
export function unmetExpectation(
  expect: readonly Expectation[],
  current: Customer,
): { field: string; wanted: string; found: string | undefined } | undefined {
  for (const { field, value, anyCase = false } of expect) {
    const member = memberNamed(current.value, field);
    const found = member === undefined ? undefined : plainText(member.value);
    const isMet = anyCase ? found?.toLowerCase() === value.toLowerCase() : found === value;
    if (!isMet) return { field, wanted: value, found };
  }
  return undefined;
}

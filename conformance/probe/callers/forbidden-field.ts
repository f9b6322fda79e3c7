/** The field that the limited caller may not read, and what an answer gives away of it. */

import type { Customer } from "../../fixtures/ground.ts";
import { CouldNotRun } from "../../http/outcome-signal.ts";
import { accepted, isClientError } from "../../http/status.ts";
import type { Seen } from "../../http/wire.ts";
import { plain } from "../../target/names.ts";
import { FIELDS, type Field } from "../../target/profile-file.ts";
import type { Answered } from "../answered.ts";
import type { Attempt } from "../attempt.ts";
import { holds } from "../token/holds.ts";
import type { Weight } from "../trial.ts";

export const memberOf = (seen: Seen, field: Field) =>
  Object.entries(seen.object ?? {}).find(([name]) => plain(name) === field);

/**
 * The field that the limited caller may not read: the profile says it, else the first that it is refused, or that is
 * left out, null or masked where the main caller is shown a value.
 */
export async function deniedField(t: Attempt): Promise<Field> {
  const named = t.kit.profile.limited?.denied;
  if (named !== undefined) return named;
  for (const field of ["email", "name", "status", "id"] as const) {
    const query = `?fields=${field}`;
    const purpose = "find the forbidden field";
    const theirs = () => t.get(t.kit.main, { query, caller: "limited", purpose });
    const valueIn = (seen: Seen) => memberOf(seen, field)?.[1] ?? null;
    const seen = await theirs();
    if (isClientError(seen.status)) return field;
    if (seen.status !== 200) continue;
    const own = valueIn(await t.get(t.kit.main, { query, purpose: "the same by the main caller" }));
    if (own === null || Bun.deepEquals(own, valueIn(seen))) continue;
    // Somebody else may have written between the two.
    if (Bun.deepEquals(valueIn(await theirs()), valueIn(seen))) return field;
  }
  throw new CouldNotRun(
    "the limited caller is refused no field; name the forbidden one with --limited-denied",
  );
}

export type Forbidden = {
  readonly field: Field;
  readonly value: unknown;
  readonly others: Field[];
  readonly control: Seen;
};

/** The forbidden field and its value as the main caller reads it. The control request: the main caller is answered. */
export async function forbidden(t: Attempt, to: Customer = t.kit.main, known?: Field): Promise<Forbidden> {
  const field = known ?? (await deniedField(t));
  const control = await t.get(to, {
    query: `?fields=${field}`,
    purpose: "control request: the main caller",
  });
  const value = memberOf(control, field)?.[1];
  if (control.status !== 200 || value === undefined)
    throw new CouldNotRun(`the main caller reads no ${field} itself (${control.status})`, ["FLD-01"]);
  return { field, value, others: FIELDS.filter((other) => other !== field), control };
}

/**
 * Whether the answer gives the value away. The id stands in the path anyway and a status is a word like any other,
 * so those two count as members of a body alone.
 */
export function revealed(seen: Seen, field: Field, value: unknown): boolean {
  if (field !== "id" && field !== "status") return holds(seen, value);
  return accepted(seen.status) && memberOf(seen, field)?.[1] === value;
}

/** Looks at an answer to the limited caller, beside the main caller's. */
export function mustHide(
  read: Answered,
  { field, value, control }: Forbidden,
  what: string,
  weight: Weight = {},
): void {
  read.control({ differs: "the main caller asks", seen: control });
  const found = `the answer ${read.seen.status} to ${what} holds the forbidden ${field}`;
  read.must("no-value", !revealed(read.seen, field, value), found, weight);
}

/** Writes by callers who may not write the customer. */

import type { PatchForm } from "../../target/patch-form.ts";
import type { Attempt } from "../attempt.ts";
import type { Prepared } from "../prepared.ts";
import {
  BLANK,
  CURRENT,
  EMPTY,
  firstOfEach,
  INEXACT,
  NEVER_GIVEN,
  NONE,
  type Refused,
  STALE,
} from "../requests/if-match-forms.ts";
import type { Method } from "../snapshot.ts";
import type { AskOptions } from "../trial.ts";

/** What decides for the owner: to a stranger all of them must be one. */
export const STRANGERS_FORMS = [
  CURRENT,
  NONE,
  ...EMPTY,
  BLANK,
  STALE,
  NEVER_GIVEN,
  ...firstOfEach(INEXACT.star),
];

export type WayOfWriting = { readonly method: Method; readonly patchForm?: PatchForm };

/** Each method, and PATCH in each form of body that it takes. */
export async function waysOfWriting(t: Attempt): Promise<WayOfWriting[]> {
  const { ground, deployment } = t.kit;
  const ways: WayOfWriting[] = [{ method: "PUT" }];
  if (await t.patchOffered()) {
    ways.push({ method: "PATCH" });
    for (const patchForm of await t.otherPatchForms()) ways.push({ method: "PATCH", patchForm });
  }
  if (deployment.deleteOffered !== false && ground.cannotMake === undefined) ways.push({ method: "DELETE" });
  return ways;
}

export const asSent = ({ lines, body }: Refused, { patchForm }: WayOfWriting): AskOptions => ({
  ifMatch: lines,
  body,
  patchForm,
  caller: "other-tenant",
});

/** Of its own where one can be made: the other tenant may take it over. */
export async function strangersTarget(t: Attempt): Promise<Prepared> {
  const customer = await t.ownCustomer();
  const control = await t.control("PUT", { to: customer, purpose: "make the tag stale" });
  return { customer, former: control.former, now: control };
}

/** Customers that another caller of the run has made for itself: a policy may exempt the owner, or a whole tenant. */
import type { Attempt } from "../attempt.ts";
import type { Prepared } from "../prepared.ts";
import { notShown, WRITABLE } from "../snapshot.ts";

export const MAKERS = ["limited", "other-tenant"] as const;
type OtherMaker = (typeof MAKERS)[number];

/** To follow the name of a request. */
export const BY_MAKER = {
  limited: "by the limited caller to a customer that it has made",
  "other-tenant": "by another tenant to a customer of its own",
} as const satisfies Record<OtherMaker, string>;

/** A new customer of this caller's own; undefined where the deployment does not let it, or does not show name and email as they were sent. */
export async function readableCustomer(t: Attempt, maker: OtherMaker) {
  const customer = await t.kit.ground.madeBy(maker);
  if (customer === undefined) return undefined;
  const query = t.kit.deployment.stateQuery;
  const before = t.snapshotIn(await t.get(customer, { query, purpose: "read before" }));
  const isShown = before !== undefined && WRITABLE.every((field) => t.kit.values.made(before.fields[field]));
  return isShown ? { customer, before } : undefined;
}

/**
 * A customer of this caller's own, that it has written once with the current tag; undefined where the deployment does not
 * let it, or does not show name and email as they were written.
 */
export async function ownCustomer(t: Attempt, maker: OtherMaker): Promise<Prepared | undefined> {
  const made = await readableCustomer(t, maker);
  if (made === undefined) return undefined;
  const { customer, before } = made;
  const what = `the current tag, ${BY_MAKER[maker]},`;
  const asked = { to: customer, before, what, allowed: "any answer", purpose: "control request" };
  const { accepted, seen, after, values } = await t.write("PUT", asked);
  const isApplied = accepted && after !== undefined && after.tag === seen.tag && after.tag !== before.tag;
  if (!isApplied || notShown(after.fields, values) !== undefined) return undefined;
  const control = { differs: "it is a PUT, and If-Match was the current tag", seen };
  return { customer, former: before.tag, now: after, control };
}

/** A refused write keeps the status of the customer, which the reads before and after it need not show. */

import type { Customer } from "../../fixtures/ground.ts";
import type { Seen } from "../../http/wire.ts";
import { type Attempt, BASE } from "../attempt.ts";
import { type Prepared, updatedCustomer } from "../prepared.ts";
import type { Derive } from "../requests/if-match-forms.ts";
import { change, type Method } from "../snapshot.ts";
import { isCurrent, type Kind, probeRefusal } from "./refusal-probe.ts";

type Status = { readonly seen: Seen; readonly value: unknown };

export async function statusOf(t: Attempt, customer: Customer): Promise<Status> {
  const seen = await t.get(customer, { query: "?fields=status", purpose: "the status" });
  return { seen, value: t.fieldsOf(seen).status };
}

const differs = (a: Status, b: Status) => !Bun.deepEquals(a.value, b.value);

/** A job of the deployment may settle the status after a write, or change it at any time. */
const SETTLES_MS = 1000;

/**
 * No probe names the status, so a refused one leaves it. Where it is another one after a series of them, each is tried
 * again on customers whose status has settled; it must change on two of them.
 */
export async function mustKeepStatus(
  t: Attempt,
  method: Method,
  kind: Kind,
  forms: readonly Derive[],
  { customer }: Prepared,
  before: Status,
): Promise<void> {
  const { doubts, ground, wire } = t.kit;
  if (before.value === undefined || doubts.has("status moves") || ground.cannotMake !== undefined) return;
  if (!differs(before, await statusOf(t, customer))) return;
  const key = `${method} ${kind} moves the status`;
  const blamed = t.kit.blamed.get(key);
  if (blamed !== undefined && blamed.by !== t.rule.id) return void t.maskedBy.add(blamed.by);
  // One that goes back by itself was no effect of these writes.
  await wire.rest(SETTLES_MS);
  if (!differs(before, await statusOf(t, customer))) return;
  const first = await statusMover(t, method, kind, forms);
  const second = first && (await statusMover(t, method, kind, [first.derive]));
  if (second === undefined) return void doubts.add("status moves");
  const { written, from, to } = second;
  const { status } = written.seen;
  if (Object.values<string>(BASE[method]).includes(t.rule.id))
    t.kit.blamed.set(key, { status, by: t.rule.id });
  written.show(written.seen, { before: from.seen, after: to.seen, unchanged: false });
  const found = `${written.evidence.probe} was answered ${status}, and the ${change("status", from.value, to.value)}`;
  written.must("unchanged", false, found);
}

/** The first of these forms on which the status of a customer made for it is another one right after the refusal. */
async function statusMover(t: Attempt, method: Method, kind: Kind, forms: readonly Derive[]) {
  const at = await updatedCustomer(t);
  await t.kit.wire.rest(SETTLES_MS);
  for (const derive of forms) {
    const form = derive(at.now.tag, at.former, at.customer);
    if (form === undefined || isCurrent(form, at.now.tag)) continue;
    const from = await statusOf(t, at.customer);
    const written = await probeRefusal(t, method, kind, form, at);
    const to = await statusOf(t, at.customer);
    if (differs(from, to)) return { derive, written, from, to };
    if (written.after !== undefined) at.now = written.after;
  }
  return undefined;
}

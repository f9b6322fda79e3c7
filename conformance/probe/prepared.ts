/** The customer, its tags and the connection that a probe of a refusal starts from. */

import type { Customer } from "../fixtures/ground.ts";
import type { Connection } from "../http/socket-transport.ts";
import type { Maker } from "../target/journal.ts";
import type { Attempt } from "./attempt.ts";
import type { Control } from "./proof.ts";
import { NEVER_GIVEN_TAG, type Refused } from "./requests/if-match-forms.ts";
import type { Method, Snapshot } from "./snapshot.ts";
import type { Lines } from "./trial.ts";

export type PreparedOptions = {
  /** In place of the main customer. */
  readonly customer?: Customer;
  /** A customer that is not written before it is probed. */
  readonly untouched?: Customer;
  /** Header lines that the accepted write before carries too. */
  readonly headers?: Lines | undefined;
};

/** What a probe of a refusal starts from. */
export type Prepared = {
  readonly customer: Customer;
  former: string;
  now: Snapshot;
  readonly control?: Control;
  /** Another of the same kind, in place of one that a probe has changed. */
  readonly again?: () => Promise<Prepared>;
};

/** DELETE is tried on customers made for it, and its control request comes last. */
export async function preparedFor(
  t: Attempt,
  method: Method,
  { customer, untouched, headers }: PreparedOptions = {},
): Promise<Prepared> {
  if (untouched !== undefined) {
    const now = await t.state(untouched, "read before");
    const again = async () => preparedFor(t, method, { untouched: await t.kit.ground.make() });
    return { customer: untouched, former: now.tag, now, again };
  }
  if (method === "DELETE") return await updatedCustomer(t, headers, customer?.maker);
  const to = customer ?? t.kit.main;
  const control = await t.control(method, { to, headers });
  return {
    customer: to,
    former: control.former,
    now: control,
    control: { differs: `If-Match was the current tag, ${control.former}`, seen: control.written.seen },
  };
}

/** A customer that has had a former tag: written once with PUT. */
export async function updatedCustomer(t: Attempt, headers?: Lines, maker?: Maker): Promise<Prepared> {
  const customer = await t.kit.ground.make(maker);
  const control = await t.control("PUT", { to: customer, headers, purpose: "make the tag stale" });
  return { customer, former: control.former, now: control };
}

/** A connection on which something went before. A write makes the former tag of `at` a new one. */
export async function connectionAfter(
  t: Attempt,
  method: Method,
  opening: NonNullable<Refused["opening"]>,
  at: Prepared,
): Promise<Connection> {
  const via = t.kit.wire.connect();
  if (opening === "an accepted write" || opening === "a read of the former tag") {
    const elsewhere = opening === "a read of the former tag";
    if (elsewhere) await t.get(at.customer, { via, purpose: "first request of the connection" });
    const control = await t.control(method === "PATCH" ? "PATCH" : "PUT", {
      to: at.customer,
      before: at.now,
      purpose: `accepted write on ${elsewhere ? "another" : "the"} connection`,
      ...(elsewhere ? {} : { via }),
    });
    at.former = control.former;
    at.now = control;
  } else if (opening === "a conflict") {
    const ask = { ifMatch: NEVER_GIVEN_TAG, purpose: "a conflict on the connection", via };
    await t.sendWrite(method === "PATCH" ? "PATCH" : "PUT", at.customer, ask);
    // What is applied all the same is a base rule's to blame.
    const now = await t.state(at.customer, "read after the conflict");
    if (now.tag !== at.now.tag) at.former = at.now.tag;
    at.now = now;
  } else {
    for (const nth of opening === "a read" ? ["first"] : ["first", "second"])
      await t.get(at.customer, { via, purpose: `${nth} request of the connection` });
  }
  return via;
}

/** Races in which DELETE takes part, each on a customer made for it. */

import type { Attempt } from "../../probe/attempt.ts";
import type { Check } from "../../probe/check.ts";
import { CouldNotRun } from "../../probe/outcome-signal.ts";
import {
  contendersOf,
  enforced,
  type Lane,
  RaceAccount,
  raceRound,
  rounds,
  unknown,
  won,
} from "../../probe/race.ts";
import { GONE, Losers } from "../../probe/race-losers.ts";
import { updatedCustomer } from "../../probe/refused.ts";
import { accepted, stateOf } from "../../probe/trial.ts";

/** @throws CouldNotRun where DELETE errs even without a race: that is IFM-40's or IFM-41's to blame. */
async function deleteEnforced(t: Attempt): Promise<void> {
  const { customer, former, now } = await updatedCustomer(t);
  if (former === now.tag) return;
  const stale = await t.rawWrite("DELETE", customer, { ifMatch: former, purpose: "control: stale DELETE" });
  if (accepted(stale.status))
    throw new CouldNotRun("a stale DELETE is accepted even when nobody else writes; see IFM-41");
  const twin = await t.rawWrite("DELETE", customer, {
    ifMatch: now.tag,
    purpose: "twin: DELETE with the current tag",
  });
  if (!accepted(twin.status))
    throw new CouldNotRun(`DELETE with the current tag was answered ${twin.status}; see IFM-40`);
}

export const atmDeletes = {
  "ATM-04": async (t) => {
    await enforced(t, "PUT");
    await deleteEnforced(t);
    const account = new RaceAccount(t);
    const losers = new Losers(t);
    const fired = new Set<number>();
    for (let number = 1; number <= rounds(t, 0.4); number += 1) {
      const customer = await t.kit.ground.make();
      const before = await t.state(customer, "read before");
      const evidence = t.probe(
        `round ${number}: PUTs and DELETEs with ${before.tag} at once`,
        "at most one accepted, and the final state is the winner's",
      );
      const lanes: Lane[] = Array.from({ length: contendersOf(t) }, (_, lane) =>
        // Who is released first matters where the two check by different code, so they take turns.
        (lane + number) % 2 === 0
          ? { who: `writer ${lane + 1}`, method: "PUT", values: t.kit.values.next() }
          : { who: `deleter ${lane + 1}`, method: "DELETE" },
      );
      const contenders = await raceRound(t, number, customer, before, lanes);
      account.add(contenders);
      losers.look(contenders, GONE);
      const after = await t.get(customer, { query: t.kit.deployment.stateQuery, purpose: "read back" });
      const winners = won(contenders);
      const puts = winners.filter(({ method }) => method === "PUT");
      const deletes = winners.filter(({ method }) => method === "DELETE");
      Object.assign(evidence, {
        came: `accepted: ${winners.map(({ who, seen }) => `${who} (${seen?.status})`).join(", ") || "none"}; a read then answers ${after.status}`,
        sent: winners.at(-1)?.n ?? null,
        before: stateOf(before.seen),
        after: stateOf(after),
      });
      // Two DELETEs that both report success are ATM-07's matter.
      t.check(
        "no-fork",
        puts.length + Math.min(1, deletes.length) <= 1,
        `${winners.map(({ who }) => who).join(" and ")} were all accepted with ${before.tag}`,
      );
      if (puts.length === 1 && deletes.length === 0)
        t.check(
          "put-stays",
          after.status === 200 && holdsName(after.text, puts[0]?.values?.name),
          `a PUT alone was accepted, and a read then answers ${after.status} without its values`,
        );
      if (puts.length === 0 && deletes.length > 0)
        t.check(
          "delete-stays",
          !lanes.some(({ values }) => holdsName(after.text, values?.name)),
          `a DELETE alone was accepted, and a read then answers ${after.status} with the values of a refused PUT`,
        );
      if (evidence.fired.length > 0) fired.add(number);
    }
    await losers.judgeSilence();
    account.close(fired);
  },
  "ATM-07": async (t) => {
    await deleteEnforced(t);
    const account = new RaceAccount(t);
    const losers = new Losers(t);
    const fired = new Set<number>();
    for (let number = 1; number <= rounds(t, 0.1); number += 1) {
      const customer = await t.kit.ground.make();
      const before = await t.state(customer, "read before");
      const evidence = t.probe(`round ${number}: DELETEs with ${before.tag} at once`, "exactly one accepted");
      const lanes: Lane[] = Array.from({ length: contendersOf(t) }, (_, lane) => ({
        who: `deleter ${lane + 1}`,
        method: "DELETE",
      }));
      const contenders = await raceRound(t, number, customer, before, lanes);
      account.add(contenders);
      losers.look(contenders, GONE);
      const winners = won(contenders);
      if (winners.length === 0 && unknown(contenders).length === 0)
        throw new CouldNotRun("no DELETE with the current tag was accepted; see IFM-40");
      evidence.came = `accepted: ${winners.map(({ who }) => who).join(", ")}`;
      evidence.sent = winners.at(-1)?.n ?? null;
      t.check(
        "one-winner",
        winners.length <= 1,
        `${winners.length} DELETEs with the tag ${before.tag} were accepted`,
      );
      if (evidence.fired.length > 0) fired.add(number);
    }
    await losers.judgeSilence();
    account.close(fired);
  },
} satisfies Record<`ATM-${"04" | "07"}`, Check>;

function holdsName(text: string, name: string | undefined): boolean {
  return name !== undefined && text.toLowerCase().includes(name.toLowerCase());
}

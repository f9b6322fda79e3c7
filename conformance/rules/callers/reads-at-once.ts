/** AUT: reads of one customer, and of two, that are under way at once. */

import type { Customer } from "../../fixtures/ground.ts";
import { CouldNotRun, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { isGone } from "../../http/status.ts";
import type { Seen } from "../../http/wire.ts";
import { getOf } from "../../probe/answered.ts";
import type { Attempt } from "../../probe/attempt.ts";
import { CALLERS } from "../../probe/callers/read-by.ts";
import { describe } from "../../probe/proof.ts";
import { contendersOf } from "../../probe/races/round.ts";
import { together } from "../../probe/races/together.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { saysNothing } from "../../probe/weather.ts";

type Asked = {
  readonly to: Customer;
  readonly caller: keyof typeof CALLERS;
  readonly query: string;
  /** The answer while nothing else is under way. */
  readonly alone: Seen;
};

const QUERIES = ["", "?fields=name", "?fields=email", "?fields=id,status"];

/** Reads by every caller, of all and of some fields, each with its answer while nothing else is under way. */
async function askedAlone(t: Attempt): Promise<Asked[]> {
  const { main, profile } = t.kit;
  const own = await t.ownCustomer();
  const asked: Asked[] = [];
  const add = async (to: Customer, caller: Asked["caller"], query: string) => {
    const alone = await ask(t, { to, caller, query });
    if (!saysNothing(alone, caller)) asked.push({ to, caller, query, alone });
  };
  for (const query of QUERIES) {
    await add(main, "main", query);
    if (profile.limited !== undefined) await add(main, "limited", query);
    if (profile.otherTenant !== undefined) await add(main, "other-tenant", query);
    if (own !== main) await add(own, "main", query);
  }
  return asked;
}

/** Each round begins with another read: a service that shares answers gives the first one to all. */
async function atOnce(t: Attempt): Promise<void> {
  const asked = await askedAlone(t);
  const answered = asked.filter(({ alone }) => alone.status === 200);
  if (answered.length < 2) throw new CouldNotRun("no two reads are answered with 200", ["ETG-01"]);
  const count = Math.min(asked.length, contendersOf(t));
  const lanes = Array.from({ length: count }, () => t.kit.wire.connect());
  try {
    for (let first = 0; first < asked.length; first += t.quick ? 4 : 1) {
      const round = Array.from({ length: count }, (_, lane) => asked[(first + lane) % asked.length] as Asked);
      const seen = await together(
        round.map(({ to, caller, query }, lane) =>
          t.get(to, { caller, query, via: lanes[lane], purpose: "probe: reads at once" }),
        ),
      );
      for (const [lane, one] of round.entries()) await compare(t, one, seen[lane] as Seen, count - 1);
    }
  } finally {
    for (const lane of lanes) lane.close();
  }
}

const ask = (t: Attempt, { to, caller, query }: Omit<Asked, "alone">) =>
  t.get(to, { caller, query, purpose: "control request: the read alone" });

async function compare(t: Attempt, asked: Asked, seen: Seen, others: number): Promise<void> {
  const { to, caller, query, alone } = asked;
  // A 401 or 403 may be a gateway's where the read alone was answered otherwise, for every caller.
  const differs = seen.status !== alone.status;
  if (saysNothing(seen, differs ? "main" : caller)) return;
  // A copy that lags may not have the other customer yet.
  if (differs && isGone(seen.status) && t.kit.doubts.has("reads lag")) return;
  if (differs && (await ask(t, asked)).status !== alone.status) return;
  const which = to === t.kit.main ? "" : " of another customer";
  const probe = `${getOf(query)}${which} by ${CALLERS[caller]}, beside ${others} other reads`;
  const proof = t.proof(probe, "as it is answered alone");
  proof.show(seen, { came: `${describe(seen)} ${seen.text.slice(0, 160)}`.trim() });
  proof.control({ differs: "nothing else is under way", seen: alone });
  const found = `${probe} was answered ${seen.status}; alone it is answered ${alone.status}`;
  proof.must("status", !differs, found, OTHERS_MAY_CAUSE);
  if (seen.status !== 200 || alone.status !== 200) return;
  const [is, was] = [t.fieldsOf(seen), t.fieldsOf(alone)];
  const names = (fields: object) => Object.keys(fields).sort().join(", ") || "no field";
  proof.must(
    "fields",
    names(is) === names(was),
    `${probe} was answered with ${names(is)}; alone it is answered with ${names(was)}`,
    OTHERS_MAY_CAUSE,
  );
  const same = names(is) !== names(was) || Bun.deepEquals(is, was);
  const mixed = `${probe} was answered with ${JSON.stringify(is)}; alone it is answered with ${JSON.stringify(was)}`;
  proof.must("values", same || t.kit.doubts.has("reads lag"), mixed, OTHERS_MAY_CAUSE);
}

export const readsAtOnce: Rule = rule(
  "AUT-18",
  "Reads that are under way at once are each answered for their own caller, customer and fields",
  {
    spec: ["4.1 rule 8", "4.1 rule 1", "5.2"],
    reading: "Each read is answered as it is when nothing else is under way.",
    hurts: "When two people ask at once, one is shown what only the other may see, or asked for.",
    after: ["ETG-01", "FLD-01", "AUT-01", "AUT-05"],
    check: atOnce,
  },
);

/** Writers that a deployment may serve by other code, or lock by another key, than those that write the ordinary way. */

import type { Customer } from "../../fixtures/ground.ts";
import { accepted, isGone } from "../../http/status.ts";
import type { Values } from "../../target/values.ts";
import type { Attempt } from "../attempt.ts";
import { BY_MAKER, ownCustomer } from "../callers/own-customers.ts";
import { updatedCustomer } from "../prepared.ts";
import { pathEnd, takenPaths } from "../requests/other-paths.ts";
import { OF_STATUS, patchOfStatus } from "../requests/request-shapes.ts";
import { type Method, notShown, type Snapshot, storedValues } from "../snapshot.ts";
import type { Content } from "../trial.ts";
import { type LineUp, lineUp } from "./race.ts";
import { contendersOf } from "./round.ts";

type Way = {
  readonly what: string;
  readonly content?: Content;
  /** In place of fresh ones. */
  readonly values?: (fresh: Values, before: Snapshot) => Partial<Values>;
  readonly rounds?: number;
};

/** Longer than the first part of a body that a server may read together with the head. */
const LONG_BYTES = 2000;

const BODIES: readonly Way[] = [
  { what: "with a long body", content: { padBytes: LONG_BYTES }, rounds: 2 },
  { what: "in chunks", content: { framing: "chunked" } },
];
/** A service that first looks which values change may check the tag by other code, or not at all. */
const VALUES: Readonly<Record<Method, readonly Way[]>> = {
  PUT: [
    { what: "with the stored values", values: (_, before) => storedValues(before) },
    {
      what: "with another name alone",
      values: ({ name }, before) => ({ name, email: storedValues(before).email }),
    },
    {
      what: "with an accent",
      values: ({ name, email }) => ({ name: name.replace("Kit", "K\u00eft"), email }),
    },
  ],
  PATCH: [
    { what: "of name and email", values: (fresh) => fresh },
    { what: "of the stored name", values: (_, before) => ({ name: storedValues(before).name }) },
  ],
  DELETE: [],
};

/** Line-ups of such writers, as far as the deployment takes them. */
export async function otherWays(t: Attempt, method: Method): Promise<LineUp[]> {
  if (
    t.leavesOut(
      "races by another caller, at another spelling of the address, of long and chunked bodies and of other values",
    )
  )
    return [];
  const limited = { what: "by the limited caller", content: { caller: "limited" }, rounds: 2 } as const;
  const ways: Way[] = t.kit.profile.limited === undefined ? [] : [limited];
  if (method !== "DELETE") ways.push(...BODIES, ...VALUES[method]);
  const ofStatus = method === "PATCH" ? await patchOfStatus(t) : undefined;
  if (ofStatus !== undefined) ways.push({ what: OF_STATUS, content: { body: ofStatus }, values: () => ({}) });
  if (method === "PUT")
    for (const { url } of await takenPaths(t))
      ways.push({ what: `at ${pathEnd({ ...t.kit.main, url })}`, content: { url } });
  const lineUps: LineUp[] = [];
  for (const way of ways)
    if (await (method === "DELETE" ? deletesLikeOrdinary(t, way) : writesLikeOrdinary(t, method, way)))
      for (let round = 0; round < (way.rounds ?? 1); round += 1) lineUps.push(otherWay(t, method, way));
  return lineUps;
}

/** All but the last writer write this way. A faulty service lets all of them win, or one beside the last. */
function otherWay(t: Attempt, method: Method, { what, content, values }: Way): LineUp {
  const ordinary = lineUp(t, method, method);
  return (lane, before) => {
    const one = ordinary(lane, before);
    if (lane === contendersOf(t) - 1) return one;
    const own = values?.(t.kit.values.next(), before) ?? one.values;
    return { ...one, who: `${one.who} (${what})`, way: content, ...(own && { values: own }) };
  };
}

/** A customer of another tenant's own, where that tenant writes it as the main caller writes its customers. */
export async function ownForRace(t: Attempt): Promise<{ customer: Customer; lane: LineUp } | undefined> {
  if (t.leavesOut("races by another tenant for a customer of its own")) return undefined;
  const own = await ownCustomer(t, "other-tenant");
  if (own === undefined) return undefined;
  const { customer } = own;
  const way: Way = { what: BY_MAKER["other-tenant"] };
  const isOrdinary = await writesLikeOrdinary(t, "PUT", way, customer);
  return isOrdinary ? { customer, lane: otherWay(t, "PUT", way) } : undefined;
}

/** Other rules say what is wrong with a way in which it is not: here it would prove nothing. */
async function writesLikeOrdinary(
  t: Attempt,
  method: "PUT" | "PATCH",
  { what, content, values: make }: Way,
  to = t.kit.main,
): Promise<boolean> {
  const asked = { ...content, to, allowed: "any answer", purpose: "control request" };
  const from = await t.state(to, "read before");
  const fresh = t.kit.values.next();
  const values = make?.(fresh, from) ?? (method === "PUT" ? fresh : { name: fresh.name });
  const write = await t.write(method, { ...asked, before: from, values, what: `the current tag, ${what}` });
  const { seen, before, after } = write;
  if (!write.accepted || after === undefined || seen.tag !== after.tag || after.tag === before.tag)
    return false;
  if (notShown(after.fields, values) !== undefined) return false;
  const stale = await t.write(method, {
    ...asked,
    before: after,
    values,
    ifMatch: [["If-Match", before.tag]],
    what: `a stale tag, ${what}`,
  });
  return stale.seen.status === 412 && stale.seen.tag === after.tag && stale.unchanged;
}

async function deletesLikeOrdinary(t: Attempt, { what, content }: Way): Promise<boolean> {
  const { customer: to, former, now } = await updatedCustomer(t);
  const asked = { ...content, to, before: now, allowed: "any answer", purpose: "control request" };
  const ifMatch = [["If-Match", former]] as const;
  const stale = await t.write("DELETE", { ...asked, ifMatch, what: `a stale tag, ${what}` });
  if (stale.seen.status !== 412 || !stale.unchanged) return false;
  const { seen, afterSeen } = await t.write("DELETE", { ...asked, what: `the current tag, ${what}` });
  return accepted(seen.status) && isGone(afterSeen.status);
}

/**
 * Races: every contender sends all but the end of its request, then all ends are let go in one turn of the event
 * loop. Time-outs, 5xx and the like are unknown outcomes: such a write may or may not have happened.
 */

import type { Customer } from "../../fixtures/ground.ts";
import { CouldNotRun, Inconclusive, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { accepted, isGone } from "../../http/status.ts";
import type { RuleId } from "../../report/schema.ts";
import type { Values } from "../../target/values.ts";
import { type Attempt, BASE, SPECIAL } from "../attempt.ts";
import { type Prepared, updatedCustomer } from "../prepared.ts";
import { difference, type Method, notShown, type Snapshot, WRITABLE } from "../snapshot.ts";
import { saysNothing } from "../weather.ts";
import { Losers } from "./losers.ts";
import { overlapOf } from "./overlap.ts";
import { type Contender, contendersOf, type Lane, type Round } from "./round.ts";
import { together } from "./together.ts";

const RATE_LIMIT_REST_MS = 1000;
/** For the deployment to read what each contender sent so far: else who comes first is chance, and not the line-up's. */
export const ARRIVAL_MS = 5;

export type LineUp = (lane: number, before: Snapshot) => Lane;

/** Two kinds of writers by turns; `first` is released first, and that decides who wins where nothing else does. */
export function lineUp(t: Attempt, first: Method, second: Method): LineUp {
  return (lane) => {
    const method = lane % 2 === 0 ? first : second;
    const who = `${WRITERS[method]} ${lane + 1}`;
    if (method === "DELETE") return { who, method };
    const { name, email } = t.kit.values.next();
    if (method === "PUT") return { who, method, values: { name, email } };
    return { who, method, values: lane % 2 === 0 ? { name } : { email } };
  };
}

const WRITERS = { PUT: "writer", PATCH: "patcher", DELETE: "deleter" } as const satisfies Record<
  Method,
  string
>;

/** Each may check by its own code, and the fault may lie with the one that comes first or second. */
export function bothOrders(t: Attempt, one: Method, other: Method): LineUp[] {
  return [lineUp(t, one, other), lineUp(t, other, one)];
}

/** The rules on the tag after an accepted write; a DELETE is raced on a customer that a PUT has written. */
export const CHANGES_TAG = { PUT: "ETG-08", PATCH: "ETG-11", DELETE: "ETG-08" } as const satisfies Record<
  Method,
  RuleId
>;

/**
 * A race says nothing where a plain stale write is accepted or applied as well, where the current tag is refused, or
 * where a write changes more than it names.
 * @throws CouldNotRun then
 */
export async function enforced(t: Attempt, method: Method): Promise<void> {
  const { customer, former, now } =
    method === "DELETE" ? await updatedCustomer(t) : await writtenAlone(t, method);
  if (former === now.tag)
    throw new CouldNotRun(`the tag does not change on an accepted write, so no ${method} is ever stale`, [
      CHANGES_TAG[method],
    ]);
  const see = [BASE[method].stale, SPECIAL[method].shapes];
  // The writers of a race carry either field.
  const { name, email } = t.kit.values.next();
  for (const values of method === "PATCH" ? [{ name }, { email }] : [undefined]) {
    const stale = await t.write(method, {
      to: customer,
      before: now,
      values,
      ifMatch: [["If-Match", former]],
      what: "a stale tag, while nobody else writes",
      purpose: "control request: stale",
    });
    const { status } = stale.seen;
    if (stale.accepted) throw stale.breach(`a stale ${method} is accepted even when nobody else writes`, see);
    const gone = method === "DELETE" && isGone(stale.afterSeen.status);
    if (gone || (method !== "DELETE" && heldBy(stale.after, stale.values)))
      throw stale.breach(
        `a stale ${method} is answered ${status} and applied even when nobody else writes`,
        see,
      );
  }
  if (method === "DELETE") await t.control("DELETE", { to: customer, before: now });
}

/** @throws CouldNotRun where a write changes what it does not name even when nobody else writes. */
async function writtenAlone(t: Attempt, method: "PUT" | "PATCH"): Promise<Prepared> {
  const control = await t.control(method);
  const { before, values } = control.written;
  const other = WRITABLE.find(
    (field) => values[field] === undefined && !Bun.deepEquals(before.fields[field], control.fields[field]),
  );
  if (other !== undefined)
    throw new CouldNotRun(
      `${method} of the name changes the ${other} even when nobody else writes`,
      [BASE[method].current],
      OTHERS_MAY_CAUSE,
    );
  return { customer: t.kit.main, former: control.former, now: control };
}

/** As `enforced`, of a method that a rule can race without. @returns what the rule ends with then */
export async function notEnforced(t: Attempt, method: Method): Promise<CouldNotRun | undefined> {
  try {
    await enforced(t, method);
    return undefined;
  } catch (error) {
    if (error instanceof CouldNotRun) return error;
    throw error;
  }
}

type RaceOptions = {
  /** A share of the rounds that were asked for: at least two, and at least one of each line-up. */
  readonly share: number;
  /** Who takes part, round by round. */
  readonly lineUps: readonly LineUp[];
  /** Who takes part in rounds after those, one each. */
  readonly further?: readonly LineUp[];
  /** A customer of another caller's own, and who writes it in two rounds at the end. */
  readonly own?: { readonly customer: Customer; readonly lane: LineUp } | undefined;
  readonly allowed: string;
  /** In place of the main customer, one a round. */
  readonly customer?: () => Promise<Customer>;
};

const OWN_ROUNDS = 2;

/** All rounds of a rule. @throws Inconclusive where no two requests overlapped */
export async function race(
  t: Attempt,
  options: RaceOptions,
  judge: (round: Round) => void = () => {},
): Promise<void> {
  const { lineUps, share, further = [], own } = options;
  const count = Math.max(2, lineUps.length, Math.ceil(t.kit.options.rounds * share));
  const all = Array.from({ length: count }, (_, index) => lineUps[index % lineUps.length] as LineUp);
  const last = own === undefined ? [] : Array.from({ length: OWN_ROUNDS }, () => own.lane);
  const losers = new Losers(t);
  const rounds: Round[] = [];
  const failed = new Set<number>();
  for (const [index, lane] of [...all, ...further, ...last].entries()) {
    const number = index + 1;
    const from = t.failures.length;
    const isLast = index >= all.length + further.length;
    const to = (isLast ? own?.customer : await options.customer?.()) ?? t.kit.main;
    const round = await oneRound(t, number, lane, to, options.allowed);
    losers.look(round);
    judge(round);
    if (t.failures.length > from) failed.add(number);
    rounds.push(round);
  }
  await losers.judgeSilence();
  account(t, rounds, failed);
}

async function oneRound(
  t: Attempt,
  number: number,
  lane: LineUp,
  to: Customer,
  allowed: string,
): Promise<Round> {
  const before = await t.state(to, "read before");
  const taking = Array.from({ length: contendersOf(t) }, (_, index) => lane(index, before));
  const evidence = t.proof(`round ${number}: ${taking.length} writes with ${before.tag} at once`, allowed);
  const contenders = await compete(t, number, to, before, taking);
  const winners = contenders.filter(({ outcome }) => outcome === "won");
  const afterSeen = await t.get(to, { query: t.kit.deployment.stateQuery, purpose: "read back" });
  const after = t.snapshotIn(afterSeen);
  const decides = winners[1] ?? winners[0] ?? contenders.find(({ seen }) => seen !== undefined);
  const won = winners.map(({ who, seen }) => `${who} (${seen?.status}, ETag ${seen?.tag ?? "none"})`);
  const then =
    after === undefined ? afterSeen.status : `${JSON.stringify(after.fields.name)}, ETag ${after.tag}`;
  const came = `accepted: ${won.join(", ") || "none"}; then read: ${then}`;
  const proof = evidence.show(decides?.seen ?? afterSeen, { came, before: before.seen, after: afterSeen });
  return {
    number,
    customer: to,
    before,
    contenders,
    winners,
    unknown: contenders.filter(({ outcome }) => outcome === "unknown"),
    afterSeen,
    after,
    proof,
    of: (one, allowed) => {
      const own = t.proof(`round ${number}, ${one.who}: ${one.method} with ${before.tag}`, allowed);
      return own.show(one.seen ?? afterSeen, { before: before.seen, after: afterSeen });
    },
  };
}

/** Releases them in one turn, after a pause in which the deployment most likely reads what each sent so far. */
export async function letGo<T>(t: Attempt, held: readonly { release(): Promise<T> }[]): Promise<T[]> {
  await t.kit.wire.rest(ARRIVAL_MS);
  return await together(held.map((one) => one.release()));
}

/** All lanes carry the tag of `before`. */
async function compete(
  t: Attempt,
  round: number,
  customer: Customer,
  before: Snapshot,
  taking: readonly Lane[],
): Promise<Contender[]> {
  const held = await together(
    taking.map(({ method, values, who, way }) =>
      t.hold(method, customer, { ...way, ifMatch: before.tag, values, purpose: `${who}, round ${round}` }),
    ),
  );
  const opened = held.filter(({ opened }) => opened).length;
  if (opened >= 2 && opened < held.length) t.kit.limits.connections = opened;
  const answers = await letGo(t, held);
  // A service that limits the rate gets a rest before the next round.
  if (answers.some(({ seen }) => seen?.status === 429)) await t.kit.wire.rest(RATE_LIMIT_REST_MS);
  return answers.map(({ exchange, seen, early }, index) => {
    const lane = taking[index] as Lane;
    const outcome =
      seen === undefined || saysNothing(seen, "main") ? "unknown" : accepted(seen.status) ? "won" : "lost";
    const sentMs = exchange.startedMs;
    const answeredMs = sentMs + exchange.durationMs;
    t.timeline.push({
      round,
      lane: lane.who,
      what: `${lane.method} ${Object.entries(lane.values ?? {})
        .map(([field, value]) => `${field}=${value}`)
        .join(" ")}`.trim(),
      sentMs,
      answeredMs: seen === undefined ? null : answeredMs,
      status: seen?.status ?? null,
      from: before.tag,
      to: seen?.tag ?? null,
      won: outcome === "won",
    });
    return {
      ...lane,
      outcome,
      opened: held[index]?.opened === true,
      early,
      seen,
      sentMs,
      answeredMs,
    };
  });
}

/** What the rounds were: races at all, and what gap they could have shown. */
function account(t: Attempt, all: readonly Round[], failed: ReadonlySet<number>): void {
  const { timeline, kit, rule } = t;
  if (failed.size > 0)
    timeline.splice(0, timeline.length, ...timeline.filter(({ round }) => failed.has(round)));
  const { overlapped, gapMs, early } = overlapOf(all.map(({ contenders }) => contenders));
  const unknown = all.reduce((sum, each) => sum + each.unknown.length, 0);
  const answeredEarly = early > 0 ? `; requests answered before they were complete: ${early}` : "";
  const note =
    gapMs === null
      ? `no two requests had a definite outcome${answeredEarly}`
      : `the last bytes left within ${gapMs.toFixed(2)} ms (median)${answeredEarly}`;
  kit.races.push({ rule: rule.id, rounds: all.length, overlapped, unknown, gapMs, note });
  if (overlapped === 0)
    throw new Inconclusive(
      `in none of ${all.length} rounds were two requests with a definite outcome under way at once${answeredEarly}`,
    );
  t.note = `; ${overlapped} of ${all.length} rounds overlapped${unknown > 0 ? `, ${unknown} requests had no definite outcome` : ""}${answeredEarly}`;
}

export function heldBy(state: Snapshot | undefined, values: Partial<Values> | undefined): boolean {
  return state !== undefined && notShown(state.fields, values ?? {}) === undefined;
}

/** At most one winner, and the final state is its own. */
export function oneWinner({ winners, before, after, proof }: Round, stays: string): void {
  const names = winners.map(({ who }) => who).join(", ");
  proof.must(
    "no-fork",
    winners.length <= 1,
    `${winners.length} writes with the tag ${before.tag} were accepted: ${names}`,
  );
  const [winner] = winners;
  if (winners.length !== 1 || winner?.values === undefined) return;
  const { values } = winner;
  const rest = WRITABLE.filter((field) => values[field] === undefined);
  proof.must(
    stays,
    heldBy(after, values) &&
      rest.every((field) => Bun.deepEquals(after?.fields[field], before.fields[field])),
    () =>
      `${winner.who} alone was accepted with ${JSON.stringify(winner.values)}; the final state is another: ${after === undefined ? "the customer is gone" : difference(before, after)}`,
    OTHERS_MAY_CAUSE,
  );
}

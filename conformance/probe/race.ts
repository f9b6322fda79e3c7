/**
 * Races: every contender sends all but its last byte, then all last bytes are let go in one turn of the event
 * loop. Time-outs, 5xx and 429 are unknown outcomes: such a write may or may not have happened.
 */

import type { Seen } from "../http/wire.ts";
import type { Moment } from "../report/schema.ts";
import type { Customer } from "../run/ground.ts";
import type { Attempt } from "./attempt.ts";
import { CouldNotRun, Inconclusive } from "./outcome-signal.ts";
import { accepted, type Method, type Snapshot } from "./trial.ts";
import type { Values } from "./values.ts";

const RATE_LIMIT_REST_MS = 1000;

export type Lane = { readonly who: string; readonly method: Method; readonly values?: Partial<Values> };

export type Contender = Lane & {
  readonly outcome: "won" | "lost" | "unknown";
  /** Whether the deployment took its connection. */
  readonly opened: boolean;
  readonly seen: Seen | undefined;
  readonly n: number;
  readonly sentMs: number;
  readonly answeredMs: number;
};

export const won = (all: readonly Contender[]) => all.filter(({ outcome }) => outcome === "won");
export const unknown = (all: readonly Contender[]) => all.filter(({ outcome }) => outcome === "unknown");

/** How many take part: as many as asked for, or as many connections as the deployment takes at once. */
export function contendersOf({ kit }: Attempt): number {
  return Math.max(2, Math.min(kit.options.connections, kit.limits.connections));
}

/** A share of the rounds that were asked for, at least two. */
export function rounds(t: Attempt, share: number): number {
  return Math.max(2, Math.ceil(t.kit.options.rounds * share));
}

/**
 * A race says nothing where a plain stale write is accepted as well.
 * @throws CouldNotRun then: it is IFM-03's or IFM-31's to blame.
 */
export async function enforced(t: Attempt, method: "PUT" | "PATCH"): Promise<void> {
  const { former, tag } = await t.twin(method, t.kit.main);
  if (former === tag)
    throw new CouldNotRun(
      "the tag does not change on an accepted write, so no write is ever stale; see ETG-08",
    );
  const stale = await t.rawWrite(method, t.kit.main, {
    ifMatch: former,
    purpose: `control: stale ${method}`,
  });
  if (accepted(stale.status))
    throw new CouldNotRun(
      `a stale ${method} is accepted even when nobody else writes; see ${method === "PUT" ? "IFM-03" : "IFM-31"}`,
    );
}

/** One round: all lanes carry the tag of `before`. */
export async function raceRound(
  t: Attempt,
  round: number,
  customer: Customer,
  before: Snapshot,
  lanes: readonly Lane[],
): Promise<Contender[]> {
  const held = await Promise.all(
    lanes.map(({ method, values, who }) =>
      t.kit.wire.hold({
        rule: t.rule.id,
        ...t.writeAsk(method, customer, { ifMatch: before.tag, values, purpose: `${who}, round ${round}` }),
      }),
    ),
  );
  const opened = held.filter(({ opened }) => opened).length;
  if (opened >= 2 && opened < held.length) t.kit.limits.connections = opened;
  const answers = await Promise.all(held.map((one) => one.release()));
  // A service that limits the rate gets a rest before the next round.
  if (answers.some(({ seen }) => seen?.status === 429)) await t.kit.wire.rest(RATE_LIMIT_REST_MS);
  return answers.map(({ exchange, seen }, index) => {
    t.keep(exchange);
    const lane = lanes[index] as Lane;
    const outcome =
      seen === undefined || seen.status >= 500 || seen.status === 429
        ? "unknown"
        : accepted(seen.status)
          ? "won"
          : "lost";
    const contender = {
      ...lane,
      outcome,
      opened: held[index]?.opened === true,
      seen,
      n: exchange.n,
      sentMs: exchange.startedMs,
      answeredMs: exchange.startedMs + exchange.durationMs,
    } as const;
    t.timeline.push(moment(round, contender, before.tag));
    return contender;
  });
}

function moment(
  round: number,
  { who, method, values, seen, sentMs, answeredMs, outcome }: Contender,
  from: string,
): Moment {
  return {
    round,
    lane: who,
    what: `${method} ${Object.entries(values ?? {})
      .map(([field, value]) => `${field}=${value}`)
      .join(" ")}`.trim(),
    sentMs,
    answeredMs: seen === undefined ? null : answeredMs,
    status: seen?.status ?? null,
    from,
    to: seen?.tag ?? null,
    won: outcome === "won",
  };
}

/** Keeps account of all rounds of a rule: whether they were races at all, and what they could have shown. */
export class RaceAccount {
  readonly #trial: Attempt;
  #rounds = 0;
  #overlapped = 0;
  #unknown = 0;
  readonly #spreads: number[] = [];

  constructor(trial: Attempt) {
    this.#trial = trial;
  }

  add(contenders: readonly Contender[]): void {
    this.#rounds += 1;
    const known = contenders.filter(({ outcome }) => outcome !== "unknown");
    this.#unknown += contenders.length - known.length;
    const sent = known.map(({ sentMs }) => sentMs);
    if (known.some((a) => known.some((b) => a !== b && a.sentMs < b.answeredMs && b.sentMs < a.answeredMs)))
      this.#overlapped += 1;
    if (sent.length > 1) this.#spreads.push(Math.max(...sent) - Math.min(...sent));
  }

  /** Drops all but the rounds that fired from the time line, and notes the account in the report. */
  close(firedRounds: ReadonlySet<number>): void {
    const { timeline, kit, rule } = this.#trial;
    if (firedRounds.size > 0) {
      const kept = timeline.filter(({ round }) => firedRounds.has(round));
      timeline.splice(0, timeline.length, ...kept);
    }
    const spreads = [...this.#spreads].sort((a, b) => a - b);
    const gapMs = spreads[Math.floor(spreads.length / 2)] ?? null;
    kit.races.push({
      rule: rule.id,
      rounds: this.#rounds,
      overlapped: this.#overlapped,
      unknown: this.#unknown,
      gapMs,
      note:
        gapMs === null
          ? "no two requests had a definite outcome"
          : `the last bytes left within ${gapMs.toFixed(2)} ms (median): a longer gap between check and write is likely to be hit in so many rounds, a shorter one may not be`,
    });
    if (this.#overlapped === 0)
      throw new Inconclusive(
        `in none of ${this.#rounds} rounds were two requests with a definite outcome under way at once`,
      );
    this.#trial.note = `; ${this.#overlapped} of ${this.#rounds} rounds overlapped${this.#unknown > 0 ? `, ${this.#unknown} requests had no definite outcome` : ""}`;
  }
}

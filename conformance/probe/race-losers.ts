/** What the losers of a race are answered: the outcomes are deterministic, 428 or 412 (7 rule 1). */

import { headerValue } from "../http/http-reply.ts";
import type { Attempt } from "./attempt.ts";
import { type Contender, contendersOf, won } from "./race.ts";
import { accepted } from "./trial.ts";

/** Where a DELETE may have won, the others may as well find no customer. */
export const GONE = [404, 410] as const;

/** Answers of one who stands before the service and got none from it. */
const UNAVAILABLE = [502, 503, 504];

/**
 * Without exactly one winner it is told elsewhere what is wrong, but for a 500: it may be any failure of a race, yet it
 * is neither of the two outcomes that there are.
 */
function refusedAsStale(t: Attempt, contenders: readonly Contender[], also: readonly number[]): void {
  const decided = won(contenders).length === 1;
  for (const { who, method, seen, outcome } of contenders) {
    if (seen === undefined || outcome === "won") continue;
    if (seen.status !== 500 && (!decided || outcome === "unknown")) continue;
    t.check(
      "status",
      seen.status === 412 || also.includes(seen.status) || t.blamedBefore(method, "stale", seen.status),
      `${who} lost and was answered ${seen.status}, not 412`,
    );
  }
}

/** The losers of all rounds of a rule. */
export class Losers {
  readonly #t: Attempt;
  #losers = 0;
  /** Those that were told nothing. */
  readonly #untold: Contender[] = [];

  constructor(t: Attempt) {
    this.#t = t;
  }

  /** One round. @param also what they may be answered beside 412 */
  look(contenders: readonly Contender[], also: readonly number[] = []): void {
    this.#count(contenders);
    refusedAsStale(this.#t, contenders, also);
  }

  #count(contenders: readonly Contender[]): void {
    if (won(contenders).length > 1) return;
    // One whose connection was never opened took no part; one asked for patience (8.3) was told something.
    const losers = contenders.filter(
      (one) => one.opened && one.outcome !== "won" && !isAskedForPatience(one),
    );
    this.#losers += losers.length;
    this.#untold.push(
      ...losers.filter(({ seen }) => seen === undefined || UNAVAILABLE.includes(seen.status)),
    );
  }

  /** A few are the network's; most are the race's, where as many writes that do not meet are all accepted. */
  async judgeSilence(): Promise<void> {
    const t = this.#t;
    const [first] = this.#untold;
    const most = this.#untold.length * 2 > this.#losers;
    const ofRace = first !== undefined && most && (await apart(t, first));
    const told = () =>
      `${this.#untold.length} of ${this.#losers} writes that lost a race were answered neither 412 nor 428 (${kinds(this.#untold)})`;
    t.check(
      "told",
      !ofRace,
      () => `${told()}, while as many at once, each to a customer of its own, are all accepted`,
    );
    t.check(
      "available",
      ofRace || (!most && this.#untold.every(({ seen }) => seen === undefined)),
      told,
      "SHOULD",
    );
  }
}

function isAskedForPatience({ seen }: Contender): boolean {
  if (seen?.status === 429) return true;
  return seen?.status === 503 && headerValue(seen.headers, "retry-after") !== undefined;
}

function kinds(untold: readonly Contender[]): string {
  const words = untold.map(({ seen }) => (seen === undefined ? "no answer" : String(seen.status)));
  return [...new Set(words)]
    .map((word) => `${word} ×${words.filter((each) => each === word).length}`)
    .join(", ");
}

/** The twin of a race: as many writes at once that differ in their customer alone. @returns whether all are accepted. */
async function apart(t: Attempt, { method, n }: Contender): Promise<boolean> {
  const evidence = t.probe(
    `${method}s with one tag at once; then as many, each to a customer of its own`,
    "412 to all but one; then all accepted",
  );
  evidence.sent = n;
  if (t.kit.ground.cannotMake !== undefined) return false;
  const customers = await Promise.all(Array.from({ length: contendersOf(t) }, () => t.kit.ground.make()));
  const tags = await Promise.all(customers.map((customer) => t.state(customer, "read before")));
  const held = await Promise.all(
    customers.map((customer, index) =>
      t.kit.wire.hold({
        rule: t.rule.id,
        ...t.writeAsk(method, customer, {
          ifMatch: tags[index]?.tag,
          purpose: "twin: writes that do not meet",
        }),
      }),
    ),
  );
  const answers = await Promise.all(held.map((one) => one.release()));
  for (const { exchange } of answers) t.keep(exchange);
  return answers.every(({ seen }) => seen !== undefined && accepted(seen.status));
}

/** One probe: what was sent, what the specification allows, what came, and what the kit asserts about it. */

import { KitFault } from "../http/outcome-signal.ts";
import { accepted } from "../http/status.ts";
import type { Seen } from "../http/wire.ts";
import type { Evidence } from "../report/schema.ts";
import { stateOf } from "./snapshot.ts";
import type { Trial, Weight } from "./trial.ts";

/**
 * The same request with one thing different, which shows that the probe was answered so for that one thing.
 * It must be accepted, unless `refused`.
 */
export type Control = { readonly differs: string; readonly seen: Seen; readonly refused?: boolean };

type Shown = {
  /** In place of status and ETag. */
  readonly came?: string | undefined;
  /** Reads before and after. */
  readonly before?: Seen | undefined;
  readonly after?: Seen | undefined;
  readonly unchanged?: boolean;
};

export class Proof {
  readonly evidence: Evidence;
  readonly #attempt: Trial;

  constructor(attempt: Trial, evidence: Evidence) {
    this.#attempt = attempt;
    this.evidence = evidence;
  }

  /** Keeps the exchange that decides, and the reads around it. */
  show(seen: Seen, { came, before, after, unchanged }: Shown = {}): this {
    const { evidence } = this;
    evidence.sent = seen.exchange.n;
    evidence.came = came ?? describe(seen);
    if (before !== undefined) evidence.before = stateOf(before);
    if (after !== undefined) evidence.after = stateOf(after);
    if (unchanged !== undefined) evidence.unchanged = unchanged;
    return this;
  }

  control({ differs, seen, refused = false }: Control): void {
    const { exchange, status } = seen;
    this.evidence.control = { differs, n: exchange.n, status, ok: accepted(status) !== refused };
  }

  /**
   * Every assertion speaks: it records and goes on, whatever it finds.
   * @param name the assertion's own part of its id: `unchanged` of `IFM-07.unchanged`
   * @param found what is wrong, as a sentence; read only where the assertion does not hold
   */
  must(name: string, holds: boolean, found: string | (() => string), weight: Weight = {}): boolean {
    if (!holds && this.evidence.sent === null)
      throw new KitFault(`${this.#attempt.rule.id}.${name} fails without an exchange that shows it`);
    return this.#attempt.assert(this.evidence, name, holds, found, weight);
  }

  /** What the specification leaves room for: a warning. */
  should(name: string, holds: boolean, found: string | (() => string)): boolean {
    return this.must(name, holds, found, { level: "SHOULD" });
  }
}

export function describe(seen: Seen): string {
  return `${seen.status}${seen.tag === undefined ? ", no ETag" : `, ETag ${seen.tag}`}`;
}

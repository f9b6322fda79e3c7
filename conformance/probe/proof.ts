/** One probe: what was sent, what the specification allows, what came, and what the kit asserts about it. */

import { KitFault } from "../http/outcome-signal.ts";
import type { Seen } from "../http/wire.ts";
import type { Evidence, Level } from "../report/schema.ts";
import { stateOf } from "./snapshot.ts";
import type { Trial } from "./trial.ts";

/** The same request with one thing different, which shows that the probe was refused for that one thing. */
export type Control = { readonly differs: string; readonly seen: Seen };

type Shown = {
  /** In place of status and ETag. */
  readonly came?: string | undefined;
  /** Reads before and after. */
  readonly before?: Seen | undefined;
  readonly after?: Seen | undefined;
  readonly unchanged?: boolean;
  readonly control?: Control | undefined;
};

type Weight = {
  readonly level?: Level;
  /** Writes of other people in the middle of the probe would make it fail as well. */
  readonly othersMayCause?: boolean;
};

export class Proof {
  readonly evidence: Evidence;
  readonly #attempt: Trial;

  constructor(attempt: Trial, evidence: Evidence) {
    this.#attempt = attempt;
    this.evidence = evidence;
  }

  /** Keeps the exchange that decides, and the reads around it. */
  show(seen: Seen, { came, before, after, unchanged, control }: Shown = {}): this {
    const { evidence } = this;
    evidence.sent = seen.exchange.n;
    evidence.came = came ?? describe(seen);
    if (before !== undefined) evidence.before = stateOf(before);
    if (after !== undefined) evidence.after = stateOf(after);
    if (unchanged !== undefined) evidence.unchanged = unchanged;
    if (control !== undefined) this.control(control);
    return this;
  }

  control({ differs, seen }: Control): void {
    const { n } = seen.exchange;
    this.evidence.control = { differs, n, status: seen.status, ok: seen.status >= 200 && seen.status < 300 };
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

/** For answers whose body tells most. */
export function excerpt({ status, text }: Seen): string {
  return `${status} ${text.slice(0, 160)}`;
}

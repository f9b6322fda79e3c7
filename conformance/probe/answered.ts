/** A probe and its answer; a write also with the reads before and after it. */
import { CouldNotRun, OTHERS_MAY_CAUSE, type Pointer } from "../http/outcome-signal.ts";
import { accepted, isClientError } from "../http/status.ts";
import type { Seen } from "../http/wire.ts";
import type { Evidence, RuleId } from "../report/schema.ts";
import type { Values } from "../target/values.ts";
import { Proof } from "./proof.ts";
import { difference, type Method, type Snapshot, sameFields } from "./snapshot.ts";
import { LAG_MS, type Trial, type Weight } from "./trial.ts";

/** What a probe may be answered with. */
export type Statuses = number | readonly number[] | "2xx" | "4xx";

/** A read as a report names it. */
export const getOf = (query: string): string => (query === "" ? "GET" : `GET ${query}`);

const WORDS = { "2xx": "accepted", "4xx": "by a 4xx" } as const;

function isAnswer(status: number, allowed: Statuses): boolean {
  if (allowed === "2xx") return accepted(status);
  if (allowed === "4xx") return isClientError(status);
  return typeof allowed === "number" ? status === allowed : allowed.includes(status);
}

export class Answered extends Proof {
  readonly seen: Seen;

  constructor(trial: Trial, evidence: Evidence, seen: Seen) {
    super(trial, evidence);
    this.seen = seen;
    this.show(seen);
  }

  get accepted(): boolean {
    return accepted(this.seen.status);
  }

  mustAnswer(name: string, allowed: Statuses, weight: Weight = {}): boolean {
    const { status } = this.seen;
    const wanted = typeof allowed === "string" ? WORDS[allowed] : [allowed].flat().join(" or ");
    const found = `${this.evidence.probe} was answered ${status}, not ${wanted}`;
    return this.must(name, isAnswer(status, allowed), found, weight);
  }

  /** What broke the rules in `see`: they report it, or else the rule that met it does. */
  breach(found: string, see: readonly RuleId[]): CouldNotRun {
    const allowed = "refused, and nothing changed";
    return new CouldNotRun(found, see, { breach: { exchange: this.seen.exchange, allowed, found } });
  }
}

type Facts = {
  readonly method: Method;
  readonly seen: Seen;
  readonly before: Snapshot;
  /** What a read then shows; undefined where the customer is gone. */
  readonly after: Snapshot | undefined;
  readonly afterSeen: Seen;
  readonly values: Partial<Values>;
  /** The read shows the tag from before, although the write was accepted with another one, and reads are known to lag. */
  readonly lags: boolean;
  /** Reads still showed it LAG_MS later. */
  readonly staysOld: boolean;
};

export class Written extends Answered {
  readonly method: Method;
  readonly before: Snapshot;
  readonly after: Snapshot | undefined;
  readonly afterSeen: Seen;
  readonly values: Partial<Values>;
  readonly unchanged: boolean;
  readonly #lags: boolean;
  readonly #staysOld: boolean;

  constructor(trial: Trial, evidence: Evidence, facts: Facts) {
    const { method, seen, before, after, afterSeen, values } = facts;
    super(trial, evidence, seen);
    this.method = method;
    this.before = before;
    this.after = after;
    this.afterSeen = afterSeen;
    this.values = values;
    this.#lags = facts.lags;
    this.#staysOld = facts.staysOld;
    this.unchanged = after !== undefined && trial.same(before, after);
    this.show(seen, { before: before.seen, after: afterSeen, unchanged: this.unchanged });
  }

  /** @throws CouldNotRun where the customer is gone, or the read shows it as it was before. */
  get now(): Snapshot {
    if (this.#lags)
      throw new CouldNotRun(
        `reads lag behind writes: one after an accepted ${this.method} shows the old tag`,
        ["ENV-04"],
        this.#staysOld ? { breach: this.#keptOld() } : {},
      );
    if (this.after === undefined)
      throw new CouldNotRun(`a read after ${this.method} answers ${this.afterSeen.status}`, ["ETG-01"]);
    return this.after;
  }

  #effect(): string {
    const { before, after } = this;
    if (after === undefined) return `was applied all the same: a read then answers ${this.afterSeen.status}`;
    return sameFields(before, after)
      ? `changed the ETag all the same, from ${before.tag} to ${after.tag}, and no field`
      : `was applied all the same: ${difference(before, after)}`;
  }

  /** Nobody else's write brings an old tag back. */
  #keptOld(): NonNullable<Pointer["breach"]> {
    const { probe } = this.evidence;
    const found = `${probe} was accepted with the ETag ${this.seen.tag}; ${LAG_MS / 1000} s later a read still shows the tag before it, ${this.before.tag}`;
    return { exchange: this.afterSeen.exchange, allowed: `ETag ${this.seen.tag}`, found, certain: true };
  }

  mustNotChange(weight: Weight = {}): boolean {
    const found = () => `${this.evidence.probe} ${this.#effect()}`;
    return this.must("unchanged", this.unchanged, found, { ...OTHERS_MAY_CAUSE, ...weight });
  }
}

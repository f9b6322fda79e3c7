/**
 * One rule being tried. `read` and `write` send a request and return the proof that holds its evidence and its
 * assertions, so that a failure always shows the exchange that proves it.
 */

import type { Customer } from "../fixtures/ground.ts";
import { headerValue } from "../http/http-reply.ts";
import { CouldNotRun, Disturbed, OTHERS_MAY_CAUSE, type Pointer } from "../http/outcome-signal.ts";
import { accepted, isGone } from "../http/status.ts";
import type { Ask, Seen } from "../http/wire.ts";
import type { RuleId } from "../report/schema.ts";
import type { PatchForm } from "../target/patch-form.ts";
import type { Values } from "../target/values.ts";
import { Answered, getOf, Written } from "./answered.ts";
import { describe, Proof } from "./proof.ts";
import { visible } from "./requests/tag-forms.ts";
import { type Method, notShown, type Snapshot, shows, storedValues } from "./snapshot.ts";
import { type AskOptions, LAG_MS, type Shape, Trial } from "./trial.ts";
import { saysNothing } from "./weather.ts";

/** The rules that say whether a method accepts the current tag, refuses what it must, and tells the tag in a 412. */
export const BASE = {
  PUT: { current: "IFM-01", stale: "IFM-03", missing: "IFM-04", blank: "IFM-06", tag412: "IFM-07" },
  PATCH: { current: "IFM-30", stale: "IFM-31", missing: "IFM-32", blank: "IFM-33", tag412: "IFM-34" },
  DELETE: { current: "IFM-40", stale: "IFM-41", missing: "IFM-42", blank: "IFM-43", tag412: "IFM-44" },
} as const satisfies Record<Method, Record<"current" | "stale" | "missing" | "blank" | "tag412", RuleId>>;

/** The rules on special forms of a refusal; `shapes` try other ways of sending it, another field alone among them. */
export const SPECIAL = {
  PUT: { shapes: "IFM-23", former: "IFM-18", combined: "IFM-51" },
  PATCH: { exact: "IFM-35", shapes: "IFM-36", former: "IFM-37", combined: "IFM-52" },
  DELETE: { exact: "IFM-45", shapes: "IFM-46", former: "IFM-47", combined: "IFM-53" },
} as const satisfies Record<Method, { exact?: RuleId; shapes: RuleId; former: RuleId; combined: RuleId }>;

export type WriteOptions = Omit<AskOptions, "values"> & {
  /** In place of the main customer. */
  readonly to?: Customer | undefined;
  /** By default fresh ones; `ifMatch` is the current tag by default. */
  readonly values?: "as stored" | Partial<Values> | undefined;
  /** To follow `PUT`. */
  readonly what?: string;
  readonly allowed?: string;
  /** Statuses that answer the probe, though elsewhere they may come from the environment. */
  readonly answers?: readonly number[];
  /** Where a read has shown it just now. */
  readonly before?: Snapshot | undefined;
};

/** `isCurrent`: its If-Match is the tag of now, so it is to be accepted. */
type SentOptions = AskOptions & { readonly isCurrent?: boolean };

export type ReadOptions = Shape & {
  readonly to?: Customer;
  readonly what?: string;
  readonly purpose?: string;
  /** The body is shown beside the status. */
  readonly body?: boolean;
  /** Statuses that answer the probe, though elsewhere they may come from the environment. */
  readonly answers?: readonly number[];
};

/** How often a request is sent again whose answer says nothing, while plain reads are answered. */
const REPEATS = 3;

export class Attempt extends Trial {
  /** Answers that are believed although they say nothing: the same request in the same place got the same in each of several attempts. */
  believed: ReadonlySet<string> = new Set();
  /** Writes with the current tag so far: each attempt sends the same ones in the same order. */
  #guarded = 0;

  proof(probe: string, allowed: string, shown: string | null = null): Proof {
    return new Proof(this, this.probe(probe, allowed, shown));
  }

  /** A read as a probe. @param query with its question mark */
  async read(query: string, allowed: string, options: ReadOptions = {}): Promise<Answered> {
    const { to = this.kit.main, what, body = true, purpose = "probe", answers = [], ...shape } = options;
    const evidence = this.probe(what ?? getOf(query), allowed);
    const seen = await this.send(this.readAsk(to, { ...shape, query, purpose }), answers);
    const read = new Answered(this, evidence, seen);
    if (body) read.show(seen, { came: `${describe(seen)} ${seen.text.slice(0, 160)}`.trim() });
    return read;
  }

  /** A write as a probe, with a read on each side. */
  async write(method: Method, options: WriteOptions = {}): Promise<Written> {
    const { kit } = this;
    const {
      to = kit.main,
      what = "the current tag",
      allowed = "2xx, and it is applied",
      purpose = "probe",
    } = options;
    const before = options.before ?? (await this.state(to, "read before"));
    const whole =
      options.values === "as stored" ? storedValues(before) : (options.values ?? kit.values.next());
    const values =
      method === "PATCH" && typeof options.values !== "object" ? { name: whole.name ?? "" } : whole;
    const ifMatch = options.ifMatch ?? before.tag;
    const guarded = typeof ifMatch === "string" ? ifMatch : ifMatch[0]?.[1].trim();
    const lines = typeof ifMatch === "string" ? [] : ifMatch;
    const evidence = this.probe(
      `${method} with ${what}`,
      allowed,
      lines.length === 0 ? null : lines.map(([name, value]) => `${name}: ${visible(value)}`).join(" ⏎ "),
    );
    const ask = this.writeAsk(method, to, { ...options, ifMatch, values, purpose });
    // One that carries the current tag may have been applied although its answer says nothing.
    const guard = guarded === before.tag ? { to, tag: before.tag } : undefined;
    const seen = await this.send(ask, options.answers, guard);
    const back = await this.#readBack(to, method, before, seen, values);
    return new Written(this, evidence, { method, seen, before, values, ...back });
  }

  /** A write as a probe, without reads around it. */
  async writeOnly(
    method: Method,
    to: Customer,
    { what, allowed, ...options }: SentOptions & { what: string; allowed: string },
  ): Promise<Answered> {
    const evidence = this.probe(`${method} ${what}`, allowed);
    const seen = await this.sendWrite(method, to, { purpose: "probe", ...options });
    return new Answered(this, evidence, seen);
  }

  /** @throws Disturbed where the answer to one with the current tag says nothing, and it was applied */
  sendWrite(method: Method, to: Customer, { isCurrent = false, ...options }: SentOptions): Promise<Seen> {
    const { ifMatch } = options;
    const guard = isCurrent && typeof ifMatch === "string" ? { to, tag: ifMatch } : undefined;
    return this.send(this.writeAsk(method, to, options), [], guard);
  }

  /**
   * An answer that says nothing is asked for again while plain reads are answered as before.
   *
   * @param guard a write that it carries is sent again only where a read shows that it was not applied
   * @throws NoReply
   */
  override async send(
    ask: Omit<Ask, "rule">,
    answers: readonly number[] = [],
    guard?: { readonly to: Customer; readonly tag: string },
  ): Promise<Seen> {
    const { weather, deployment } = this.kit;
    if (guard !== undefined) this.#guarded += 1;
    const place = this.#guarded;
    let seen = await this.#once(ask);
    let alike = [seen];
    // If the next answer has another status, these answers were transient.
    const passed = () => {
      for (const { exchange } of alike) weather.passing.add(exchange.n);
      alike = [];
    };
    for (let repeat = 0; repeat < REPEATS && saysNothing(seen, ask.caller, answers); repeat += 1) {
      await weather.settle();
      if (guard !== undefined) {
        const now = await this.get(guard.to, { query: deployment.stateQuery, purpose: "was it applied" });
        if (now.tag !== guard.tag) {
          const asked = `${place} ${signature(ask)}`;
          if (this.believed.has(asked)) return seen;
          passed();
          throw new Disturbed(seen.exchange, asked);
        }
      }
      const next = await this.#once(ask);
      if (next.status !== seen.status) passed();
      seen = next;
      alike.push(seen);
    }
    return seen;
  }

  async #once(ask: Omit<Ask, "rule">): Promise<Seen> {
    const seen = await super.send(ask);
    if (seen.status >= 500) this.kit.weather.failed.push(seen.exchange);
    return seen;
  }

  /** Reads lag behind writes on some deployments; ENV-04 says so, and the other rules wait for the write to show. */
  async #readBack(
    to: Customer,
    method: Method,
    before: Snapshot,
    answer: Seen,
    values: Partial<Values>,
  ): Promise<Pick<Written, "after" | "afterSeen"> & { lags: boolean; staysOld: boolean }> {
    const { deployment, limits, doubts } = this.kit;
    const until = performance.now() + LAG_MS;
    let waited = false;
    for (;;) {
      const afterSeen = await this.get(to, { query: deployment.stateQuery, purpose: "read back" });
      if (afterSeen.status !== 200 || afterSeen.tag === undefined) {
        if (method === "DELETE" || isGone(afterSeen.status))
          return { afterSeen, after: undefined, lags: false, staysOld: false };
      }
      const after = this.snapshot(afterSeen);
      const oldTag =
        method !== "DELETE" &&
        accepted(answer.status) &&
        after.tag === before.tag &&
        answer.tag !== undefined &&
        answer.tag !== before.tag;
      if (waited && !oldTag) doubts.add("reads lag");
      const late = performance.now() > until;
      if (oldTag && late) limits.lagMs = 0;
      if (!oldTag || limits.lagMs <= 0) {
        const lags = oldTag && doubts.has("reads lag");
        return { afterSeen, after, lags, staysOld: lags && late };
      }
      // With new values under the old tag it may as well be a fault of the tag.
      if (!shows(after.fields.name, values.name ?? values.email ?? "")) doubts.add("reads lag");
      waited = true;
      await this.restForLag();
    }
  }

  /** A write whose end is held back; what comes of it is kept with the rule. */
  async hold(method: Method, to: Customer, options: Parameters<Trial["writeAsk"]>[2]) {
    const held = await this.kit.wire.hold({ rule: this.rule.id, ...this.writeAsk(method, to, options) });
    return {
      opened: held.opened,
      release: async () => {
        const released = await held.release();
        this.keep(released.exchange);
        return released;
      },
    };
  }

  /**
   * A write with the current tag that a rule stands on.
   * @param written with the reads around it, where there were any
   * @throws CouldNotRun where it was not accepted
   */
  needAccepted(method: Method, seen: Seen, written?: Written): void {
    if (accepted(seen.status)) return;
    this.#needCurrent(method, seen);
    const why = `${method} with the current tag was answered ${seen.status}`;
    // 409 may be about the values, which a rule may have sent before: emails may be unique, also over time.
    const breach = written === undefined || seen.status === 409 ? {} : refusedThough(written);
    throw new CouldNotRun(why, [BASE[method].current], { ...OTHERS_MAY_CAUSE, ...breach });
  }

  /** @throws CouldNotRun where a 412 came since reads show a tag that an accepted write of ours has replaced */
  #needCurrent(method: Method, { status, exchange: { request } }: Seen): void {
    const sent = headerValue(request.headers, "if-match");
    if (status === 412 && this.kit.wire.onlooker.lags(new URL(request.url).pathname, sent))
      throw new CouldNotRun(
        `reads lag behind writes: ${method} was sent with the old tag that they show, and answered 412`,
        ["ENV-04"],
      );
  }

  /** @throws CouldNotRun where a rule that this one stands behind has found a violation: it would be found here again. */
  needsUnviolated(): void {
    const see = this.rule.after.filter((id) => this.kit.violated.has(id));
    if (see.length > 0) throw new CouldNotRun("one difference alone makes the deployment fail", see);
  }

  /** @throws CouldNotRun where nothing was asserted, with the reason and the rules that explain it. */
  mustHaveLooked(reason: string, ...see: readonly RuleId[]): void {
    if (this.assertions.size === 0) throw new CouldNotRun(reason, see);
  }

  /**
   * The read after an accepted DELETE, once it shows: reads may lag, and 202 does not say when (RFC 9110 15.3.3).
   * @throws CouldNotRun where reads lag, and still show the customer
   */
  async untilGone(customer: Customer, { seen, before, afterSeen }: Written): Promise<Seen> {
    const { limits, doubts } = this.kit;
    let after = afterSeen;
    const until = performance.now() + LAG_MS;
    const isThere = () => accepted(seen.status) && after.status === 200 && after.tag === before.tag;
    const lagged = () => seen.status !== 202 && doubts.has("reads lag");
    while (isThere() && !(limits.lagMs <= 0 && lagged()) && performance.now() < until) {
      await this.restForLag();
      after = await this.get(customer, { purpose: "read back" });
    }
    if (isThere() && lagged())
      throw new CouldNotRun("reads lag behind writes, so they do not show whether the DELETE was applied", [
        "ENV-04",
      ]);
    return after;
  }

  /** Forms of a PATCH body beside the one in use; a short run leaves them out, unless it `always` tries them. */
  async otherPatchForms(customer = this.kit.main, always = false): Promise<readonly PatchForm[]> {
    if (!always && this.leavesOut("other media types of PATCH")) return [];
    return await this.kit.deployment.otherPatchForms(customer, async () => (await this.state(customer)).tag);
  }

  /** A customer that was never updated; undefined where this run makes none. */
  async neverUpdated(): Promise<Customer | undefined> {
    const { ground, options } = this.kit;
    return ground.cannotMake !== undefined || options.mode === "read-only" ? undefined : await ground.make();
  }

  /** A customer with no history of this run; the main one where none can be made. */
  async ownCustomer(): Promise<Customer> {
    return this.kit.ground.cannotMake === undefined ? await this.kit.ground.make() : this.kit.main;
  }

  /**
   * The control request: a write with the current tag that must be accepted before a refusal proves anything.
   * @throws CouldNotRun when it is refused or has no effect: the base rule of the method says why.
   */
  async control(
    method: Method,
    options: WriteOptions = {},
  ): Promise<Snapshot & { former: string; written: Written }> {
    const see = [BASE[method].current];
    const { before: known, ...asked } = options;
    for (let again = 0; ; again += 1) {
      const written = await this.write(method, {
        purpose: "control request",
        what: "the current tag",
        ...asked,
        before: again === 0 ? known : undefined,
      });
      const { seen, before, values } = written;
      // A 412 with another tag says that the tag just read was not the current one: a lagging read, or others writing.
      if (seen.status === 412 && seen.tag !== undefined && seen.tag !== before.tag && again < REPEATS)
        continue;
      this.#needCurrent(method, seen);
      if (!written.accepted)
        throw new CouldNotRun(
          `the control request, ${method} with the current tag, was answered ${seen.status}, so a refusal would prove nothing`,
          see,
          { othersMayCause: true, ...refusedThough(written) },
        );
      if (method === "DELETE") return { ...before, former: before.tag, written };
      const { now } = written;
      const lost = notShown(now.fields, values);
      if (lost !== undefined)
        throw new CouldNotRun(
          `the control request, ${method} with the current tag, was accepted, and the new ${lost} is not read back`,
          see,
          { othersMayCause: true, ...lostThough(written, lost) },
        );
      return { ...now, former: before.tag, written };
    }
  }
}

/** Statuses that no deployment answers to a write with the current tag of a customer that exists. 409: where the values are fresh. */
const NOT_ACCEPTED: readonly number[] = [304, 404, 409, 410, 412, 428];

/** The current tag refused, while nobody else wrote: that breaks the specification, whatever the rule at hand is about. */
function refusedThough({ method, seen, before, after }: Written): Pick<Pointer, "breach"> {
  const conflict = NOT_ACCEPTED.includes(seen.status);
  // A 412 with another tag says that reads lag, or that somebody else wrote.
  const otherTag = seen.status === 412 && seen.tag !== undefined && seen.tag !== before.tag;
  if (!conflict || otherTag || after === undefined || after.tag !== before.tag) return {};
  const found = `${method} with the current tag ${before.tag} was answered ${seen.status}, while nobody else wrote`;
  return { breach: { exchange: seen.exchange, allowed: "accepted", found } };
}

/** The read shows the very tag that the write was answered with, and not what it wrote: nobody else's write does that. */
function lostThough({ method, seen, after }: Written, field: string): Pick<Pointer, "breach"> {
  if (seen.tag === undefined || after?.tag !== seen.tag) return {};
  const found = `${method} with the current tag was answered ${seen.status} with the ETag ${seen.tag}; a read shows that ETag and not the new ${field}`;
  return { breach: { exchange: seen.exchange, allowed: "accepted, and applied", found, certain: true } };
}

/** The request as the next attempt sends it again in its place, apart from fresh values, tags and keys. */
function signature({ caller, method, purpose, framing, headers }: Omit<Ask, "rule">): string {
  const same = headers.filter(([name]) => !/^(?:if-match|idempotency-key)$/i.test(name));
  return [caller, method, purpose, framing, ...same].join(" ");
}

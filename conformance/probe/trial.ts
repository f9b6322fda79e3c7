/** The requests of one rule, and the record of what was sent, what came and what was asserted. */

import { type Customer, readerOf } from "../fixtures/ground.ts";
import { CouldNotRun, OTHERS_MAY_CAUSE } from "../http/outcome-signal.ts";
import type { Ask, Caller, Seen } from "../http/wire.ts";
import type { Assertion, Evidence, Exchange, Level, Moment, RuleId } from "../report/schema.ts";
import { registryFields } from "../target/names.ts";
import type { PatchForm } from "../target/patch-form.ts";
import { type Values, withMembers } from "../target/values.ts";
import type { Kit } from "./kit.ts";
import { type Method, type Snapshot, sameFields } from "./snapshot.ts";

/** How long reads may lag behind an accepted write before that counts as not applied. */
export const LAG_MS = 2000;
const LAG_READ_MS = 40;

export type Lines = readonly (readonly [string, string])[];

/** How a request is made, beyond what it asks. */
export type Shape = {
  readonly caller?: Caller;
  readonly headers?: Lines | undefined;
  readonly query?: string;
  readonly via?: Ask["via"];
  readonly framing?: Ask["framing"];
  /** In place of the customer's own address. */
  readonly url?: string | undefined;
  /** In place of the method that is asked for. */
  readonly sentAs?: string;
};

/** What a write carries, beside If-Match and values. */
export type Content = Shape & {
  /** Added to a body that is a JSON object. */
  readonly members?: Readonly<Record<string, unknown>> | undefined;
  /** Replaces the body made of values. */
  readonly body?: string | undefined;
  /** In place of the one that the body has; null sends none. */
  readonly mediaType?: string | null | undefined;
  /** Blanks after the body, which change nothing but its length. */
  readonly padBytes?: number | undefined;
};

export type AskOptions = Content & {
  /** A tag for an ordinary If-Match; or header lines as they are to leave. */
  readonly ifMatch?: string | Lines | undefined;
  readonly values?: Partial<Values> | undefined;
  readonly patchForm?: PatchForm | undefined;
  readonly purpose?: string;
};

/** What a failed assertion is worth. */
export type Weight = {
  readonly level?: Level;
  /** Writes of other people in the middle of the probe would make it fail as well. */
  readonly othersMayCause?: boolean;
};

export class Trial {
  readonly kit: Kit;
  readonly rule: { readonly id: RuleId; readonly level: Level; readonly after: readonly RuleId[] };
  readonly assertions = new Map<string, Assertion>();
  readonly evidence: Evidence[] = [];
  readonly exchanges = new Map<number, Exchange>();
  readonly timeline: Moment[] = [];
  /** A value that a refused probe carried was read back: nobody else can have written it. */
  decisive = false;
  /** Base rules that have blamed a status which came here again. It hides what this rule looks for: no pass. */
  readonly maskedBy = new Set<RuleId>();
  /** Ways of sending a write that this deployment does not take, by `PUT in chunks` … */
  readonly notTaken = new Set<string>();
  /** Added to the reason of a pass. */
  note = "";

  constructor(kit: Kit, rule: Trial["rule"]) {
    this.kit = kit;
    this.rule = rule;
  }

  /** Begins the evidence of the next probe. */
  probe(text: string, allowed: string, header: string | null = null): Evidence {
    const evidence: Evidence = {
      probe: text,
      header,
      allowed,
      came: "",
      sent: null,
      before: null,
      after: null,
      unchanged: null,
      control: null,
      fired: [],
    };
    this.evidence.push(evidence);
    return evidence;
  }

  /** Assertions that did not hold, and whether writes of other people would explain it. */
  readonly failures: { id: string; othersMayCause: boolean }[] = [];

  assert(
    evidence: Evidence,
    name: string,
    ok: boolean,
    detail: string | (() => string),
    { level: asked = this.rule.level, othersMayCause = false }: Weight,
  ): boolean {
    const id = `${this.rule.id}.${name}`;
    // No assertion weighs more than its rule.
    const level = this.rule.level === "MUST" ? asked : this.rule.level;
    const assertion = this.assertions.get(id) ?? { id, looked: 0, fired: 0, level, detail: null };
    this.assertions.set(id, assertion);
    assertion.looked += 1;
    if (ok) return true;
    // Of several failures the heaviest counts.
    if (assertion.fired === 0 || level === "MUST") assertion.level = level;
    assertion.fired += 1;
    assertion.detail ??= this.kit.wire.mask(typeof detail === "string" ? detail : detail());
    this.failures.push({ id, othersMayCause });
    evidence.fired.push(id);
    return false;
  }

  /** @throws NoReply */
  async send(ask: Omit<Ask, "rule">): Promise<Seen> {
    const seen = await this.kit.wire.send({ rule: this.rule.id, ...ask });
    this.keep(seen.exchange);
    return seen;
  }

  /** Whether a base rule has blamed this answer already, so that it is not blamed again here. */
  blamedBefore(method: Method, kind: string, status: number): boolean {
    const blamed = this.kit.blamed.get(`${method} ${kind}`);
    if (blamed?.status !== status || blamed.by === this.rule.id) return false;
    this.maskedBy.add(blamed.by);
    return true;
  }

  keep(exchange: Exchange): void {
    this.exchanges.set(exchange.n, exchange);
  }

  get(customer: Customer, options: Shape & { readonly purpose?: string } = {}): Promise<Seen> {
    return this.send(this.readAsk(customer, options));
  }

  readAsk(customer: Customer, options: Shape & { readonly purpose?: string }): Omit<Ask, "rule"> {
    const reader = readerOf(customer);
    const { query = "", caller = reader, headers = [], purpose = "read", via = "undici" } = options;
    const { framing, url = customer.url, sentAs = "GET" } = options;
    return { purpose, caller, reader, method: sentAs, url: url + query, headers, via, framing };
  }

  /** A read that must succeed. @throws CouldNotRun when it shows no customer or no tag: that is ETG-01's to blame. */
  async state(customer: Customer, purpose = "read back"): Promise<Snapshot> {
    const { deployment, limits, doubts, wire } = this.kit;
    const lags = (shown: Seen) => wire.onlooker.lags(new URL(customer.url).pathname, shown.tag);
    const query = deployment.stateQuery;
    let seen = await this.get(customer, { query, purpose });
    const until = performance.now() + LAG_MS;
    while (limits.lagMs > 0 && lags(seen)) {
      if (performance.now() > until) limits.lagMs = 0;
      await this.restForLag();
      seen = await this.get(customer, { query, purpose });
      if (!lags(seen)) doubts.add("reads lag");
    }
    const snapshot = this.snapshot(seen);
    // Every write comes after such a read, so what a given customer is to get back is known before it is touched.
    this.kit.ground.borrow(customer, seen.object ?? {}, this.kit.deployment.names);
    return snapshot;
  }

  /** A moment for reads to catch up with writes. */
  async restForLag(): Promise<void> {
    this.kit.limits.lagMs -= LAG_READ_MS;
    await this.kit.wire.rest(LAG_READ_MS);
  }

  /** As a read of it alone shows it; undefined where none does. */
  async status(customer: Customer, purpose = "its status"): Promise<unknown> {
    return this.fieldsOf(await this.get(customer, { query: "?fields=status", purpose })).status;
  }

  /** The registry fields that an answer shows. */
  fieldsOf({ object = {} }: Seen): Snapshot["fields"] {
    return registryFields(object, this.kit.deployment.names);
  }

  /** @throws CouldNotRun where the read shows no customer or no tag. */
  snapshot(seen: Seen): Snapshot {
    if (seen.status !== 200 || seen.object === undefined)
      throw new CouldNotRun(
        `a read of the customer answered ${seen.status}, not 200 with an object`,
        ["ETG-01"],
        OTHERS_MAY_CAUSE,
      );
    if (seen.tag === undefined) {
      const found = "a read of the customer carried no ETag";
      throw new CouldNotRun(found, ["ETG-01"], {
        breach: { exchange: seen.exchange, allowed: "an ETag", found },
      });
    }
    return { seen, tag: seen.tag, fields: this.fieldsOf(seen) };
  }

  /** undefined where the answer is no 200 with a tag. */
  snapshotIn(seen: Seen): Snapshot | undefined {
    return seen.status === 200 && seen.tag !== undefined ? this.snapshot(seen) : undefined;
  }

  writeAsk(method: Method, customer: Customer, options: AskOptions): Omit<Ask, "rule"> {
    this.kit.ground.guard(customer);
    const { ifMatch } = options;
    const lines: readonly (readonly [string, string])[] =
      ifMatch === undefined ? [] : typeof ifMatch === "string" ? [["If-Match", ifMatch]] : ifMatch;
    const content = this.#contentOf(method, options);
    return {
      purpose: options.purpose ?? "write",
      caller: options.caller ?? customer.maker,
      reader: readerOf(customer),
      method: options.sentAs ?? method,
      url: (options.url ?? customer.url) + (options.query ?? ""),
      ownUrl: customer.url,
      framing: options.framing,
      headers: [
        ...(content === undefined || options.mediaType === null
          ? []
          : ([["Content-Type", options.mediaType ?? content.mediaType]] as [string, string][])),
        ...lines,
        ...(options.headers ?? []),
      ],
      body: content && content.body + " ".repeat(options.padBytes ?? 0),
      // Lines given one by one are meant to the byte.
      via: options.via ?? (typeof ifMatch === "object" ? "socket" : "undici"),
    };
  }

  #contentOf(method: Method, { values, patchForm, body, members }: AskOptions) {
    const { deployment, values: fresh } = this.kit;
    if (method === "DELETE") return body === undefined ? undefined : { mediaType: "application/json", body };
    const made =
      method === "PUT"
        ? { mediaType: "application/json", body: deployment.putBody({ ...fresh.next(), ...values }) }
        : deployment.patchBody(values ?? { name: fresh.next().name }, patchForm);
    return { ...made, body: body ?? withMembers(made.body, members) };
  }

  /** Whether nothing that an update may change has changed. A tag that changes by itself says nothing. */
  same(a: Snapshot, b: Snapshot): boolean {
    return sameFields(a, b) && (a.tag === b.tag || this.kit.doubts.has("tag changes by itself"));
  }

  /** @throws CouldNotRun where ETG-04 has found that reading alone changes the tag. */
  needsStableTag(): void {
    if (this.kit.doubts.has("tag changes by itself"))
      throw new CouldNotRun("the tag changes without any write", ["ETG-04"]);
  }

  async patchOffered(): Promise<boolean> {
    const tag = async () => (await this.state(this.kit.main)).tag;
    return (await this.kit.deployment.patchOffer(this.kit.main, tag)).kind === "offered";
  }

  /** The methods that update a customer, as far as they are offered. */
  async updates(): Promise<readonly ("PUT" | "PATCH")[]> {
    return (await this.patchOffered()) ? ["PUT", "PATCH"] : ["PUT"];
  }

  get quick(): boolean {
    return this.kit.options.mode === "quick";
  }

  /** What a short or a gentle run leaves out: the report says it, since the outcome does not cover it. */
  readonly leftOut: string[] = [];

  /** Whether this is a short run, which leaves out `what`. */
  leavesOut(what: string): boolean {
    return this.#without(this.quick, `--quick: ${what}`);
  }

  /** Whether this is a gentle run, which leaves out `what` since it looks like an attack or a flood. */
  gentlyLeavesOut(what: string): boolean {
    return this.#without(this.kit.options.gentle, `--gentle: ${what}`);
  }

  #without(out: boolean, text: string): boolean {
    if (out && !this.leftOut.includes(text)) this.leftOut.push(text);
    return out;
  }
}

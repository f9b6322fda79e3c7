/**
 * The conflict loop against a model server, with random events: replies lost before and after the write was
 * applied, other writers, refusals, writes that arrive late, interruptions.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Customer } from "../customer.ts";
import { isJsonObject, type Json, parseJson } from "../json.ts";
import type { Reading } from "../read-customer.ts";
import { refusalOf } from "../refusal.ts";
import type { Reply } from "../wire/reply.ts";
import type { ApiRequest } from "../wire/request.ts";
import { changeIntent, deletionIntent } from "./intent.ts";
import type { Action, Event } from "./loop-state.ts";
import { begin, step } from "./step.ts";
import { type OnConflict, unmetExpectation, type WriteJob } from "./write-job.ts";

const NAMES = ["Ada", "Mine", "Theirs"];
const TOTAL_MS = 30_000;

type Members = Record<string, Json>;

/** One customer behind a network; every question of chance is asked of `choose`. */
class ModelServer {
  version = 1;
  members: Members | undefined = { name: "Ada", email: "a@b", status: "active" };
  /** Writes of ours that were applied: the state before each, and the request. */
  readonly applied: { before: Customer; request: ApiRequest }[] = [];
  /** A write that a gateway had answered with 503 was applied, perhaps after a reading that did not show it. */
  gatewayLied = false;
  /** Sent by us, and neither answered nor applied yet. */
  #onTheWay: ApiRequest[] = [];
  readonly #afterGateway = new Set<ApiRequest>();
  readonly #choose: (below: number) => number;

  constructor(choose: (below: number) => number) {
    this.#choose = choose;
  }

  current(): Customer | undefined {
    return this.members === undefined
      ? undefined
      : new Customer(`"${this.version}"`, new Map(Object.entries(this.members)));
  }

  /** What others do, and what was on the way, between two events. */
  passTime(): void {
    this.#onTheWay = this.#onTheWay.filter((request) => {
      if (this.#choose(3) > 0) return true;
      this.#apply(request);
      return false;
    });
    if (this.members === undefined || this.#choose(4) > 0) return;
    const change = [
      { name: NAMES[this.#choose(3)] ?? "" },
      { email: `${this.#choose(2)}@b` },
      { status: this.#choose(2) === 0 ? "active" : "closed" },
    ][this.#choose(3)];
    if (this.#choose(12) === 0) this.members = undefined;
    else this.members = { ...this.members, ...change };
    this.version += 1;
  }

  read(): Reading {
    const broken = this.#choose(12);
    if (broken === 0) return refusalOf(noReply("timeout", true), "reading");
    if (broken === 1) return refusalOf(reply(502), "reading");
    const customer = this.current();
    return customer === undefined
      ? refusalOf(reply(404), "reading")
      : { kind: "read", customer, requestId: undefined };
  }

  write(request: ApiRequest): Reply {
    switch (this.#choose(17)) {
      case 0:
        return noReply("unreachable", false);
      case 1:
        return noReply("timeout", true); // lost on its way there
      case 2:
        this.#onTheWay.push(request);
        return noReply("reset", true);
      case 3:
        this.#onTheWay.push(request);
        return reply(202);
      case 4:
        this.#apply(request);
        return noReply("reset", true);
      case 5:
        this.#apply(request);
        return reply(502);
      case 6:
        this.#apply(request);
        return reply(503, this.#choose(2) === 0 ? {} : { "retry-after": "1" });
      case 7:
        return reply(503, { "retry-after": String(this.#choose(40)) });
      case 8:
        return reply(429, { "retry-after": String(this.#choose(2)) });
      case 9:
        return reply(200, {}, "<html>");
      case 10:
        return reply(403);
      case 11:
        this.#onTheWay.push(request);
        this.#afterGateway.add(request);
        return reply(503);
      default:
        return this.#apply(request);
    }
  }

  #apply(request: ApiRequest): Reply {
    const before = this.current();
    if (before === undefined) return reply(404);
    if (request.headers["if-match"] !== before.etag) return reply(412, { etag: before.etag ?? "" });
    this.applied.push({ before, request });
    this.gatewayLied ||= this.#afterGateway.has(request);
    this.version += 1;
    if (request.method === "DELETE") {
      this.members = undefined;
      return reply(204);
    }
    const body = parseJson(request.body ?? "{}");
    if (isJsonObject(body)) this.members = { ...this.members, ...Object.fromEntries(body) };
    return reply(204, { etag: `"${this.version}"` });
  }
}

function reply(status: number, fields: Record<string, string> = {}, text = ""): Reply {
  return { kind: "complete", status, fields: new Map(Object.entries(fields)), text };
}

function noReply(cause: "timeout" | "reset" | "unreachable" | "interrupted", sent: boolean): Reply {
  return { kind: "no-complete-reply", sent, cause, detail: cause };
}

const jobs: fc.Arbitrary<WriteJob> = fc
  .record({
    onConflict: fc.constantFrom<OnConflict>("reapply", "merge", "fail"),
    operation: fc.constantFrom("name", "status", "delete"),
    expect: fc.constantFrom([], [{ field: "name", value: "Ada" }]),
    pinned: fc.constantFrom(undefined, '"1"', '"0"'),
    maxAttempts: fc.constantFrom(undefined, 2),
  })
  .map(({ operation, pinned, ...rest }) => {
    const change = new Map([[operation, operation === "name" ? "Mine" : "closed"]]);
    const alsoRead = ["name"];
    const intent =
      operation === "delete" ? deletionIntent("1", alsoRead) : changeIntent({ id: "1", change, alsoRead });
    return { id: "1", intent, ...rest, ifMatch: pinned };
  });

test("never a lost update, never done for a write that was not, and every run ends", () => {
  const endings = new Set<string>();
  fc.assert(
    fc.property(jobs, fc.array(fc.nat(10_000), { minLength: 30, maxLength: 120 }), (job, chances) => {
      let asked = 0;
      // Where chance runs out, the network is calm: the highest number is the plain answer everywhere.
      const choose = (below: number) => (chances[asked++] ?? below - 1) % below;
      const server = new ModelServer(choose);
      const { base, outcome } = run(job, server, choose);
      endings.add(outcome.kind);
      checkLostUpdates(job, server, base);
      checkClaim(job, server, outcome);
    }),
    { numRuns: 4000 },
  );
  // A run that reaches only a few endings would prove little.
  for (const kind of [
    "written",
    "unchanged",
    "as-wanted",
    "conflict",
    "unknown-outcome",
    "expectation",
    "deleted",
  ])
    expect([...endings]).toContain(kind);
});

type End = Extract<Action, { kind: "end" }>["outcome"];

function run(
  job: WriteJob,
  server: ModelServer,
  choose: (below: number) => number,
): { base: Customer | undefined; outcome: End } {
  let remainingMs = TOTAL_MS;
  let lastRead: Reading | undefined;
  let [state, action] = begin(job, remainingMs);
  for (let steps = 0; action.kind !== "end"; steps += 1) {
    // Every action takes time, so a run that goes on would pass this bound.
    expect(steps).toBeLessThan(TOTAL_MS / 5);
    server.passTime();
    const tookMs = action.kind === "wait" ? action.ms : 10 + choose(20) * 20;
    remainingMs = Math.max(0, remainingMs - Math.max(10, tookMs));
    const now = { remainingMs, chance: choose(100) / 100 };
    let event: Event;
    if (action.kind === "read") {
      lastRead = server.read();
      event = { kind: "read", reading: lastRead, ...now };
    } else if (action.kind === "write") {
      expect(action.limitMs).toBeLessThanOrEqual(remainingMs + tookMs + 10);
      const interrupted = choose(40) === 1;
      const answer = interrupted ? noReply("interrupted", choose(2) === 0) : server.write(action.request);
      event = { kind: "replied", reply: answer, tookMs, ...now };
    } else event = { kind: choose(40) === 1 ? "interrupted" : "timeUp", ...now };
    [state, action] = step(state, event);
  }
  const { outcome } = action;
  if (outcome.kind === "as-wanted" || outcome.kind === "unchanged") {
    const seen = lastRead?.kind === "read" ? lastRead.customer : "gone";
    if (state.base === undefined) throw new Error("nothing was read");
    expect(job.intent.isAsWanted(state.base, seen)).toBe(true);
  }
  return { base: state.base, outcome };
}

/** Whatever was applied was applied to a state that the job allows. */
function checkLostUpdates(job: WriteJob, server: ModelServer, base: Customer | undefined): void {
  for (const { before, request } of server.applied) {
    expect(unmetExpectation(job.expect, before)).toBeUndefined();
    if (job.ifMatch !== undefined) expect(before.etag).toBe(job.ifMatch);
    const body = request.body === undefined ? undefined : parseJson(request.body);
    for (const [field, value] of isJsonObject(body) ? body : []) {
      // Fields that were not named go back as they are.
      const named = (field === "name" && value === "Mine") || (field === "status" && value === "closed");
      if (!named) expect(value).toBe(before.value.get(field) ?? null);
    }
    if (job.onConflict === "reapply" || base === undefined) continue;
    // With merge and fail, someone else's value of a named field is never written over unseen.
    if (job.onConflict === "fail") expect(before.value).toEqual(base.value);
    const theirs = job.intent.conflicts(base, before);
    expect(theirs).toEqual([]);
  }
}

function checkClaim(job: WriteJob, server: ModelServer, outcome: End): void {
  const { kind, attempts, unknowns } = outcome;
  if (kind === "written") expect(server.applied.length).toBeGreaterThan(0);
  if (kind === "unchanged")
    expect({ attempts, applied: server.applied.length }).toEqual({ attempts: 0, applied: 0 });
  // As wanted without a lost reply is someone else's doing.
  if (kind === "as-wanted" && unknowns === 0) expect(server.applied).toHaveLength(0);
  // Only an unknown outcome leaves open whether anything of ours was applied. A gateway that says 503 of a write on
  // its way is believed after an unmoved reading, until something shows that the customer did move.
  const moved = ["conflict", "expectation", "deleted", "write-not-found"].includes(kind);
  if (!["written", "as-wanted", "unknown-outcome"].includes(kind) && (moved || !server.gatewayLied))
    expect(server.applied).toHaveLength(0);
  if (kind === "unknown-outcome") expect(unknowns).toBeGreaterThan(0);
  if (job.maxAttempts !== undefined) expect(attempts).toBeLessThanOrEqual(job.maxAttempts);
}

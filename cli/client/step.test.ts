import { describe, expect, test } from "bun:test";
import { Customer } from "./customer.ts";
import { changeIntent, deletionIntent } from "./intent.ts";
import type { Json } from "./json.ts";
import type { Reading } from "./read-customer.ts";
import type { Reply } from "./reply.ts";
import { type Action, begin, type Event, type State, step, type WriteJob } from "./step.ts";

const reply = (status: number, fields: Record<string, string> = {}): Reply => ({
  kind: "complete",
  status,
  fields: new Map(Object.entries(fields)),
  text: "",
});
const none = (sent: boolean): Reply => ({ kind: "no-complete-reply", sent, cause: "reset", detail: "" });
const customer = (etag: string, members: Record<string, Json>) =>
  new Customer(etag, new Map(Object.entries(members)));
const read = (value: Customer | "gone"): Reading =>
  value === "gone"
    ? {
        kind: "not-found",
        during: "reading",
        reply: { kind: "complete", status: 404, fields: new Map(), text: "" },
      }
    : { kind: "read", customer: value, requestId: undefined };
const intent = changeIntent({ id: "1", change: new Map([["name", "Mine"]]) });
const job = (options: Partial<WriteJob> = {}): WriteJob => ({
  id: "1",
  intent,
  onConflict: "reapply",
  expect: [],
  ...options,
});
const base = customer('"1"', { name: "Ada", email: "a@b" });
const theirs = (members: Record<string, Json>) => customer('"2"', { name: "Ada", email: "a@b", ...members });
const soon = { remainingMs: 30_000, chance: 0.5 };

type Step = [State, Action];

/** Where the machine stands after these replies to writes, with the first reading again between two of them. */
function afterReplies(over: Partial<WriteJob>, replies: readonly Reply[]): Step {
  let at: Step = step(begin(job(over), 30_000)[0], { kind: "read", reading: read(base), ...soon });
  for (const each of replies) {
    at = toNextWrite(at);
    at = step(at[0], { kind: "replied", reply: each, tookMs: 1, ...soon });
  }
  return at;
}

function toNextWrite([state, action]: Step): Step {
  if (action.kind === "wait") return toNextWrite(step(state, { kind: "timeUp", ...soon }));
  if (action.kind !== "read") return [state, action];
  return toNextWrite(step(state, { kind: "read", reading: read(base), ...soon }));
}

/** What it does about a state that is read next: `write`, `wait`, or how it ends. */
function onReading([state, action]: Step, current: Customer | "gone"): string {
  const event: Event = { kind: "read", reading: read(current), ...soon };
  if (action.kind === "wait") return onReading(step(state, { kind: "timeUp", ...soon }), current);
  const [, next] = action.kind === "read" ? step(state, event) : [state, action];
  return next.kind === "end" ? next.outcome.kind : next.kind;
}

const LOST = none(true);
const STALE = reply(412);
const PENDING = reply(202);
const GONE = reply(404);
const NOT_NOW = reply(503);
const FAIL = { onConflict: "fail" } as const;
const MERGE = { onConflict: "merge" } as const;
const PINNED = { ifMatch: '"1"' };
const NAMED_ADA = { expect: [{ field: "name", value: "Ada" }] };

describe("a reply to a write", () => {
  test("of 202 is followed by readings alone until the tag moves", () => {
    for (const options of [{}, FAIL, NAMED_ADA, PINNED, { intent: deletionIntent("1", []) }]) {
      expect(onReading(afterReplies(options, [PENDING]), base)).toBe("wait");
    }
    expect(onReading(afterReplies({}, [PENDING]), theirs({ name: "Mine" }))).toBe("as-wanted");
    expect(onReading(afterReplies({}, [PENDING]), theirs({}))).toBe("write");
  });

  test.each<[string, Reply]>([
    ["no complete reply", LOST],
    ["500", reply(500)],
    ["502", reply(502)],
    ["503", NOT_NOW],
    ["503 that says when", reply(503, { "retry-after": "1" })],
    ["a page", { kind: "complete", status: 200, fields: new Map(), text: "<html>" }],
  ])("%s is never followed by another write before a reading", (_, unclear) => {
    for (const before of [[], [STALE], [LOST], [NOT_NOW, STALE]]) {
      for (const options of [{}, PINNED, NAMED_ADA]) {
        const [state, action] = afterReplies(options, [...before, unclear]);
        const next = action.kind === "wait" ? step(state, { kind: "timeUp", ...soon })[1] : action;
        expect(["read", "end"]).toContain(next.kind);
      }
    }
  });

  test("of 412 ends a pinned write and is looked at otherwise", () => {
    expect(afterReplies(PINNED, [STALE])[1]).toMatchObject({
      kind: "end",
      outcome: { kind: "conflict", why: "pinned" },
    });
    expect(afterReplies({}, [STALE])[1].kind).toBe("wait");
  });

  test("of 412 that names the refused tag as the current one is not met forever", () => {
    const contradiction = reply(412, { etag: '"1"' });
    const twice = [contradiction, contradiction];
    expect(afterReplies({}, twice)[1].kind).toBe("wait");
    expect(afterReplies({}, [...twice, contradiction])[1]).toMatchObject({
      kind: "end",
      outcome: { kind: "conflict", why: "contradicted" },
    });
    expect(afterReplies({}, [...twice, STALE])[1].kind).toBe("wait");
  });

  test("of 503 is followed by a reading, not before Retry-After", () => {
    const [state, action] = afterReplies({}, [reply(503, { "retry-after": "2" })]);
    expect(action.kind).toBe("wait");
    expect(action.kind === "wait" ? action.ms : 0).toBeGreaterThanOrEqual(2000);
    const waited: Event = { kind: "timeUp", remainingMs: 27_000, chance: 0 };
    expect(step(state, waited)[1].kind).toBe("read");
  });

  test("of 503 whose Retry-After is too late is looked at once, and not written again", () => {
    const at = afterReplies({}, [reply(503, { "retry-after": "3600" })]);
    expect(at[1].kind).toBe("read");
    expect(onReading(at, base)).toBe("unavailable");
    expect(onReading(at, theirs({ name: "Theirs" }))).toBe("unknown-outcome");
    expect(onReading(at, theirs({ name: "Mine" }))).toBe("as-wanted");
  });

  test("of 429 is followed by the same write, not before Retry-After", () => {
    const [state, action] = afterReplies({}, [reply(429, { "retry-after": "2" })]);
    expect(action.kind === "wait" ? action.ms : 0).toBeGreaterThanOrEqual(2000);
    expect(step(state, { kind: "timeUp", remainingMs: 27_000, chance: 0 })[1].kind).toBe("write");
  });
});

describe("the time", () => {
  const write = (totalMs: number) => {
    const [state] = begin(job(), totalMs);
    const [, action] = step(state, { kind: "read", reading: read(base), remainingMs: totalMs, chance: 0 });
    return action.kind === "write" ? action.limitMs : 0;
  };

  test("of a write is all but the last fifth, and but for five seconds at most", () => {
    expect([write(10_000), write(7000), write(60_000)]).toEqual([8000, 5600, 55_000]);
  });

  test("that one write used up is not enough for another", () => {
    const [state] = begin(job(), 7000);
    const [writing] = step(state, { kind: "read", reading: read(base), remainingMs: 6900, chance: 0 });
    const timedOut: Reply = { kind: "no-complete-reply", sent: true, cause: "timeout", detail: "" };
    const [looking, look] = step(writing, {
      kind: "replied",
      reply: timedOut,
      tookMs: 5500,
      remainingMs: 1400,
      chance: 0,
    });
    expect(look.kind).toBe("read");
    const [, end] = step(looking, { kind: "read", reading: read(base), remainingMs: 1300, chance: 0 });
    expect(end).toMatchObject({ kind: "end", outcome: { kind: "unknown-outcome", attempts: 1 } });
  });
});

describe("a reading", () => {
  const first = (over: Partial<WriteJob>, current: Customer) => {
    const [, action] = step(begin(job(over), 30_000)[0], { kind: "read", reading: read(current), ...soon });
    return action.kind === "end" ? action.outcome.kind : action.kind;
  };

  test.each<[string, Partial<WriteJob>, Customer, string]>([
    ["as wanted", {}, customer('"1"', { name: "Mine", email: "a@b" }), "unchanged"],
    ["otherwise", {}, base, "write"],
    ["pinned elsewhere, body to be completed", { ifMatch: '"0"' }, base, "conflict"],
    ["expectation unmet", { expect: [{ field: "email", value: "x" }] }, base, "expectation"],
    ["a deletion", { intent: deletionIntent("1", []) }, base, "write"],
    ["a weak tag", {}, customer('W/"1"', { name: "Ada", email: "a@b" }), "unusable-tag"],
  ])("first, %s", (_, over, current, ending) => {
    expect<string>(first(over, current)).toBe(ending);
  });

  const mine = theirs({ name: "Mine" });
  test.each<[string, Partial<WriteJob>, Reply[], Customer | "gone", string]>([
    ["412, as wanted", FAIL, [STALE], mine, "as-wanted"],
    ["a lost reply, as wanted", FAIL, [LOST], mine, "as-wanted"],
    [
      "a lost reply, as wanted but for blanks, tag unmoved: not there",
      { intent: changeIntent({ id: "1", change: new Map([["name", "Ada "]]) }) },
      [LOST],
      base,
      "write",
    ],
    ["a lost reply and a 412, as wanted", {}, [LOST, STALE], mine, "as-wanted"],
    ["412, as wanted, expected", NAMED_ADA, [STALE], mine, "expectation"],
    ["412, as wanted, expected, fail", { ...NAMED_ADA, ...FAIL }, [STALE], mine, "expectation"],
    ["412, as wanted, expected, merge", { ...NAMED_ADA, ...MERGE }, [STALE], mine, "expectation"],
    ["a lost reply, as wanted, expected", NAMED_ADA, [LOST], mine, "unknown-outcome"],
    ["503, as wanted, expected", NAMED_ADA, [NOT_NOW], mine, "unknown-outcome"],
    [
      "412, as wanted, another field expected",
      { expect: [{ field: "email", value: "a@b" }] },
      [STALE],
      mine,
      "as-wanted",
    ],
    ["a lost reply, pinned, as wanted", PINNED, [LOST], mine, "unknown-outcome"],
    ["a lost reply, pinned, gone", PINNED, [LOST], "gone", "unknown-outcome"],
    ["404, pinned, as wanted", PINNED, [GONE], mine, "write-not-found"],
    ["404, there", {}, [GONE], base, "write-not-found"],
    ["a lost reply, tag unmoved", FAIL, [LOST], base, "write"],
    ["503, pinned, tag unmoved", PINNED, [NOT_NOW], base, "write"],
    ["a lost reply, another field moved", MERGE, [LOST], theirs({ email: "c@d" }), "write"],
    ["a lost reply, the same field moved", MERGE, [LOST], theirs({ name: "Theirs" }), "unknown-outcome"],
    ["a lost reply, the same field moved, reapply", {}, [LOST], theirs({ name: "Theirs" }), "write"],
    ["a lost reply, pinned", PINNED, [LOST], base, "unknown-outcome"],
    ["412, reapply", {}, [STALE], theirs({ name: "Theirs" }), "write"],
    ["412, merge, same field", MERGE, [STALE], theirs({ name: "Theirs" }), "conflict"],
    ["412, merge, another field", MERGE, [STALE], theirs({ email: "c@d" }), "write"],
    ["412, fail", FAIL, [STALE], theirs({ email: "c@d" }), "conflict"],
    ["412, fail, the tag unmoved", FAIL, [STALE], base, "conflict"],
    ["412, gone", {}, [STALE], "gone", "deleted"],
    ["a lost deletion, gone", { intent: deletionIntent("1", []) }, [LOST], "gone", "as-wanted"],
    ["a refused deletion, gone", { intent: deletionIntent("1", []) }, [STALE], "gone", "as-wanted"],
    // Of two who claim the deletion, the second finds nothing to delete.
    [
      "a deletion that found nothing, expected",
      { intent: deletionIntent("1", []), ...NAMED_ADA },
      [GONE],
      "gone",
      "deleted",
    ],
    [
      "a deletion that found nothing, pinned",
      { intent: deletionIntent("1", []), ...PINNED },
      [GONE],
      "gone",
      "deleted",
    ],
  ])("after %s", (_, over, replies, current, ending) => {
    expect(onReading(afterReplies(over, replies), current)).toBe(ending);
  });

  test("of a write that went through says what it wrote over", () => {
    const at = afterReplies({}, [STALE]);
    const looked = step(step(at[0], { kind: "timeUp", ...soon })[0], {
      kind: "read",
      reading: read(theirs({ name: "Theirs" })),
      ...soon,
    });
    const [, action] = step(looked[0], { kind: "replied", reply: reply(204), tookMs: 1, ...soon });
    expect(action).toMatchObject({
      outcome: { kind: "written", overwritten: [{ field: "name", theirs: "Theirs", mine: "Mine" }] },
    });
  });
});

describe("the request", () => {
  const request = (change: Record<string, Json>, current = base) =>
    changeIntent({ id: "a/b", change: new Map(Object.entries(change)) }).request(current, '"1"');

  test.each([
    [{ name: "X" }, "PUT", '{"email":"a@b","name":"X"}'],
    [{ name: "X", email: "y@z" }, "PUT", '{"name":"X","email":"y@z"}'],
    [{ status: "closed" }, "PATCH", '{"status":"closed"}'],
    [{ name: "X", status: "closed" }, "PATCH", '{"name":"X","status":"closed"}'],
    [{ note: null }, "PATCH", '{"note":null}'],
  ])("for %j is %s %s", (change, method, body) => {
    expect(request(change as Record<string, Json>)).toMatchObject({
      method,
      body,
      path: "/customers/a%2Fb",
      headers: { "if-match": '"1"' },
    });
  });

  test("speaks the casing that was read", () => {
    const current = customer('"1"', { Name: "Ada", Email: "a@b" });
    expect(request({ name: "X" }, current)).toMatchObject({ body: '{"Email":"a@b","Name":"X"}' });
    expect(request({ status: "closed" }, current)).toMatchObject({ body: '{"Status":"closed"}' });
  });

  test("never sends a field that could not be read: a PATCH takes the place of the PUT", () => {
    for (const partly of [{ name: "Ada" }, { name: "Ada", email: null }]) {
      const current = customer('"1"', partly);
      expect(request({ name: "X" }, current)).toMatchObject({ method: "PATCH", body: '{"name":"X"}' });
    }
  });
});

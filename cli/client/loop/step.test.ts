import { describe, expect, test } from "bun:test";
import { Customer } from "../customer.ts";
import type { Json } from "../json.ts";
import type { Reading } from "../read-customer.ts";
import type { CompleteReply, NoCompleteReply, Reply } from "../wire/reply.ts";
import { changeIntent, deletionIntent } from "./intent.ts";
import type { Action, Event, State } from "./loop-state.ts";
import { begin, step } from "./step.ts";
import type { WriteJob } from "./write-job.ts";

const reply = (status: number, fields: Record<string, string> = {}, text = ""): Reply => ({
  kind: "complete",
  status,
  fields: new Map(Object.entries(fields)),
  text,
});
const none = (sent: boolean, cause: "reset" | "interrupted" = "reset"): Reply => ({
  kind: "no-complete-reply",
  sent,
  cause,
  detail: "",
});
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

/**
 * Where the machine stands after these replies to writes, with the first reading again between two of them.
 */
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
const PAGE = reply(200, {}, "<html>");
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
    ["a page", PAGE],
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

  test("of success under the tag that was sent is no success: the state decides", () => {
    for (const kept of [reply(204, { etag: '"1"' }), reply(204, { etag: 'W/"1"' })]) {
      for (const options of [{}, PINNED, NAMED_ADA, { intent: deletionIntent("1", []) }])
        expect(afterReplies(options, [kept])[1]).toMatchObject({ kind: "wait" });
      expect(onReading(afterReplies({}, [kept]), base)).toBe("write");
      expect(onReading(afterReplies({}, [kept]), theirs({ name: "Mine" }))).toBe("as-wanted");
      expect(endAfter({}, [kept, kept, kept])).toMatchObject({ kind: "not-a-service", attempts: 3 });
    }
  });

  test("of a deletion under the tag that was sent is a success where the customer is gone, with no tag after it", () => {
    const kept = reply(200, { etag: '"1"' });
    for (const options of [{}, PINNED, NAMED_ADA]) {
      const [state] = afterReplies({ ...options, intent: deletionIntent("1", []) }, [kept]);
      const [looking] = step(state, { kind: "timeUp", ...soon });
      const [, action] = step(looking, { kind: "read", reading: read("gone"), ...soon });
      expect(action).toMatchObject({ kind: "end", outcome: { kind: "written", after: undefined } });
    }
  });

  test.each([
    ["--if-match", { ifMatch: '"1"' }],
    ["fail", { onConflict: "fail" as const }],
    ["merge", { onConflict: "merge" as const }],
  ])("of 503 may arrive after an unmoved reading: a 412 then is no sure conflict (%s)", (_, over) => {
    const at = afterReplies(over, [NOT_NOW, STALE]);
    expect(onReading(at, theirs({ name: "Theirs" }))).toBe("unknown-outcome");
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

/** The end that these replies come to; undefined where it goes on. */
function endAfter(over: Partial<WriteJob>, replies: readonly Reply[]) {
  const [, action] = toNextWrite(afterReplies(over, replies));
  return action.kind === "end" ? action.outcome : undefined;
}

describe("what is not the service", () => {
  test("answers three writes in a row, and no more; a redirect or an operation that is not offered one", () => {
    expect(endAfter({}, [PAGE, PAGE])).toBeUndefined();
    expect(endAfter({}, [PAGE, PAGE, PAGE])).toMatchObject({ kind: "not-a-service", attempts: 3 });
    expect(endAfter({}, [PAGE, PAGE, STALE, PAGE])).toBeUndefined();
    expect(endAfter({}, [reply(303)])).toMatchObject({ kind: "redirected", attempts: 1 });
    expect(endAfter({}, [reply(501)])).toMatchObject({ kind: "not-offered", attempts: 1 });
  });

  test("is not reached three times in a row, and no attempt is counted", () => {
    const never = none(false);
    expect(endAfter({}, [never, never])).toBeUndefined();
    expect(endAfter({}, [never, never, never])).toMatchObject({ kind: "unreachable", attempts: 0 });
    expect(endAfter({}, [never, never, STALE, never])).toBeUndefined();
  });

  test("contradicts itself three times in a row, and no more", () => {
    const contradiction = reply(412, { etag: '"1"' });
    expect(endAfter({}, [contradiction, contradiction, STALE, contradiction])).toBeUndefined();
  });
});

test("a merge patch that is refused for its media type (415) is sent once more as plain JSON", () => {
  const closing = { intent: changeIntent({ id: "1", change: new Map([["status", "closed"]]) }) };
  const [, action] = afterReplies(closing, [reply(415)]);
  expect(action).toMatchObject({
    kind: "write",
    request: { headers: { "content-type": "application/json" } },
  });
  expect(endAfter(closing, [reply(415), reply(415)])).toMatchObject({ kind: "unexpected", attempts: 2 });
});

describe("the end", () => {
  test("names the tag that was replaced, the one that was made, and the request", () => {
    const at = afterReplies({}, [STALE]);
    const looked = step(step(at[0], { kind: "timeUp", ...soon })[0], {
      kind: "read",
      reading: read(theirs({ email: "c@d" })),
      ...soon,
    });
    expect(looked[1]).toMatchObject({
      request: { headers: { "if-match": '"2"' }, body: '{"email":"c@d","name":"Mine"}' },
    });
    const accepted = reply(204, { etag: '"3"', "x-request-id": "r" });
    const [, action] = step(looked[0], { kind: "replied", reply: accepted, tookMs: 1, ...soon });
    expect(action).toMatchObject({
      outcome: {
        kind: "written",
        before: '"1"',
        replacedTag: '"2"',
        after: '"3"',
        requestId: "r",
        attempts: 2,
      },
    });
  });

  test.each<[string, Partial<WriteJob>, Reply[], object]>([
    [
      "attempts used, the last refused",
      { maxAttempts: 1 },
      [STALE],
      { kind: "conflict", why: "attempts-used" },
    ],
    ["attempts used, the last too early", { maxAttempts: 1 }, [reply(429)], { kind: "busy" }],
    [
      "attempts used, one lost",
      { maxAttempts: 2 },
      [LOST, STALE],
      { kind: "unknown-outcome", obstacle: undefined },
    ],
    [
      "interrupted before it was sent",
      {},
      [none(false, "interrupted")],
      { kind: "interrupted", attempts: 0 },
    ],
    [
      "interrupted when it was sent",
      {},
      [none(true, "interrupted")],
      { kind: "unknown-outcome", obstacle: { kind: "interrupted" } },
    ],
  ])("after %s", (_, over, replies, ending) => {
    expect(endAfter(over, replies)).toMatchObject(ending);
  });

  const broken: Reading = { kind: "server-error", during: "reading", reply: reply(502) as CompleteReply };
  const interrupted: Reading = {
    kind: "interrupted",
    during: "reading",
    reply: none(true, "interrupted") as NoCompleteReply,
  };
  test.each<[string, Reply, Reading, object]>([
    [
      "a lost reply, unreadable",
      LOST,
      broken,
      { kind: "unknown-outcome", obstacle: { kind: "server-error" } },
    ],
    ["503, unreadable", NOT_NOW, broken, { kind: "unknown-outcome", obstacle: { kind: "server-error" } }],
    ["412, unreadable", STALE, broken, { kind: "conflict", why: "unreadable", unreadable: broken }],
    ["412, interrupted", STALE, interrupted, { kind: "interrupted", attempts: 1 }],
    [
      "503, interrupted",
      NOT_NOW,
      interrupted,
      { kind: "unknown-outcome", obstacle: { kind: "interrupted" } },
    ],
  ])("after %s", (_, unclear, reading, ending) => {
    const at = afterReplies({}, [unclear]);
    const [state] = at[1].kind === "wait" ? step(at[0], { kind: "timeUp", ...soon }) : at;
    const [, action] = step(state, { kind: "read", reading, ...soon });
    expect(action).toMatchObject({ kind: "end", outcome: ending });
  });
});

describe("the time", () => {
  test("of four answered writes must be left for another", () => {
    const [state] = afterReplies({}, []);
    const slow = { kind: "replied", reply: STALE, tookMs: 5000, remainingMs: 24_000, chance: 0.5 } as const;
    const [waiting] = step(state, slow);
    const [reading] = step(waiting, { kind: "timeUp", remainingMs: 24_000, chance: 0 });
    const look = (remainingMs: number) =>
      step(reading, { kind: "read", reading: read(theirs({})), remainingMs, chance: 0 })[1];
    expect(look(21_000).kind).toBe("write");
    expect(look(19_000)).toMatchObject({ outcome: { kind: "conflict", why: "time-up" } });
  });

  test("of a wait before a reading leaves enough for the reading", () => {
    const [state] = afterReplies(
      {},
      Array.from({ length: 9 }, () => STALE),
    );
    const late = { kind: "replied", reply: STALE, tookMs: 1, remainingMs: 400, chance: 0.9 } as const;
    const [writing] = toNextWrite([state, { kind: "wait", ms: 0 }]);
    const [, action] = step(writing, late);
    expect(action.kind === "wait" ? action.ms : Number.NaN).toBeLessThanOrEqual(100);
  });

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
    ["pinned elsewhere, as wanted", { ifMatch: '"0"' }, customer('"1"', { name: "Mine" }), "conflict"],
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
    const twice = { name: "Ada", Email: "c@d", email: "a@b" };
    for (const partly of [{ name: "Ada" }, { name: "Ada", email: null }, twice]) {
      const current = customer('"1"', partly);
      expect(request({ name: "X" }, current)).toMatchObject({ method: "PATCH", body: '{"name":"X"}' });
    }
  });
});

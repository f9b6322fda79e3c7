import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Customer } from "./customer.ts";
import { changeIntent, deletionIntent } from "./intent.ts";
import type { Json } from "./json.ts";
import type { Reply } from "./reply.ts";
import { afterReading, afterWrite, type History, type Job, NO_HISTORY, recorded } from "./step.ts";
import type { WriteVerdict } from "./verdict.ts";

const reply = (status: number, fields: Record<string, string> = {}): Reply => ({
  kind: "complete",
  status,
  fields: new Map(Object.entries(fields)),
  text: "",
});
const none = (sent: boolean): Reply => ({ kind: "no-complete-reply", sent, cause: "reset", detail: "" });
const customer = (etag: string, members: Record<string, Json>): Customer => ({
  etag,
  value: new Map(Object.entries(members)),
  text: "",
});
const job = (options: Partial<Job> = {}): Job => ({
  intent: changeIntent("1", new Map([["name", "Mine"]]), [], "lower"),
  onConflict: "reapply",
  expect: [],
  pin: undefined,
  ...options,
});
const history = (...verdicts: WriteVerdict[]): History =>
  verdicts.reduce<History>((before, verdict) => recorded(before, verdict), NO_HISTORY);
const FAIL = { onConflict: "fail" } as const;
const NAMED_ADA = { expect: [{ field: "name", value: "Ada" }] };
const base = customer('"1"', { name: "Ada", email: "a@b" });
const theirs = (members: Record<string, Json>) => customer('"2"', { name: "Ada", email: "a@b", ...members });

describe("a reply to a write", () => {
  test("of 202 is followed by readings alone until the tag moves", () => {
    const pending = history("pending");
    expect(pending.unknowns).toBe(1);
    expect(afterWrite(reply(202), pending, false).kind).toBe("read-again");
    for (const options of [{}, FAIL, NAMED_ADA, { pin: '"1"' }, { intent: deletionIntent("1", []) }]) {
      expect(afterReading(job(options), pending, base, base, '"1"').kind).toBe("pending");
    }
    expect(afterReading(job(), pending, base, theirs({ name: "Mine" }), '"1"').kind).toBe("as-wanted");
    expect(afterReading(job(), pending, base, theirs({}), '"1"').kind).toBe("send");
  });

  test("of unknown outcome is never followed by another write, whatever happened before", () => {
    const verdict = fc.constantFrom<WriteVerdict>("stale", "unknown", "busy", "not-sent");
    fc.assert(
      fc.property(fc.array(verdict, { maxLength: 6 }), fc.boolean(), (before, pinned) => {
        expect(afterWrite(none(true), history(...before, "unknown"), pinned).kind).toBe("read-again");
      }),
    );
  });

  test("of 412 ends a pinned write and is looked at otherwise", () => {
    expect(afterWrite(reply(412), history("stale"), true).kind).toBe("stop");
    expect(afterWrite(reply(412), history("stale"), false).kind).toBe("read-again");
  });

  test("of 412 that names the refused tag as the current one is not met for ever", () => {
    const contradicted = (times: number) =>
      Array.from({ length: times }).reduce<History>(
        (before) => recorded(before, "stale", { contradicts: true }),
        NO_HISTORY,
      );
    expect(afterWrite(reply(412), contradicted(1), false).kind).toBe("read-again");
    expect(afterWrite(reply(412), contradicted(3), false).kind).toBe("give-up");
    expect(afterWrite(reply(412), recorded(contradicted(9), "stale"), false).kind).toBe("read-again");
  });

  test("of 503 is followed by the same write, not before Retry-After", () => {
    const next = afterWrite(reply(503, { "retry-after": "2" }), history("busy"), false);
    expect(next.kind).toBe("send-again");
    expect("waitMs" in next ? next.waitMs : 0).toBeGreaterThanOrEqual(2000);
  });
});

describe("a reading", () => {
  const read = (over: Partial<Job>, before: History, current: Customer | "gone") =>
    afterReading(job(over), before, base, current, before.attempts === 0 ? undefined : '"1"').kind;

  test.each<[string, Partial<Job>, History, Customer | "gone", string]>([
    ["first, as wanted", {}, NO_HISTORY, customer('"1"', { name: "Mine", email: "a@b" }), "unchanged"],
    ["first, otherwise", {}, NO_HISTORY, base, "send"],
    ["first, pinned elsewhere, body to be completed", { pin: '"0"' }, NO_HISTORY, base, "conflict"],
    [
      "first, expectation unmet",
      { expect: [{ field: "email", value: "x" }] },
      NO_HISTORY,
      base,
      "expectation",
    ],
    ["after 412, as wanted", { onConflict: "fail" }, history("stale"), theirs({ name: "Mine" }), "as-wanted"],
    ["after a lost reply, as wanted", FAIL, history("unknown"), theirs({ name: "Mine" }), "as-wanted"],
    [
      "after a lost reply, as wanted but for blanks, tag unmoved: not there",
      { intent: changeIntent("1", new Map([["name", "Ada "]]), [], "lower") },
      history("unknown"),
      base,
      "send",
    ],
    [
      "after a lost reply and a 412, as wanted",
      {},
      history("unknown", "stale"),
      theirs({ name: "Mine" }),
      "as-wanted",
    ],
    ["after 412, as wanted, expected", NAMED_ADA, history("stale"), theirs({ name: "Mine" }), "expectation"],
    [
      "after 412, as wanted, expected, fail",
      { ...NAMED_ADA, ...FAIL },
      history("stale"),
      theirs({ name: "Mine" }),
      "expectation",
    ],
    [
      "after 412, as wanted, expected, merge",
      { ...NAMED_ADA, onConflict: "merge" },
      history("stale"),
      theirs({ name: "Mine" }),
      "expectation",
    ],
    [
      "after a lost reply, as wanted, expected",
      NAMED_ADA,
      history("unknown"),
      theirs({ name: "Mine" }),
      "expectation",
    ],
    [
      "after 412, as wanted, another field expected",
      { expect: [{ field: "email", value: "a@b" }] },
      history("stale"),
      theirs({ name: "Mine" }),
      "as-wanted",
    ],
    [
      "after a lost reply, pinned, as wanted",
      { pin: '"1"' },
      history("unknown"),
      theirs({ name: "Mine" }),
      "undecidable",
    ],
    ["after a lost reply, pinned, gone", { pin: '"1"' }, history("unknown"), "gone", "undecidable"],
    [
      "after 404, pinned, as wanted",
      { pin: '"1"' },
      history("gone"),
      theirs({ name: "Mine" }),
      "not-offered",
    ],
    ["after 404, there", {}, history("gone"), base, "not-offered"],
    ["after a lost reply, tag unmoved", { onConflict: "fail" }, history("unknown"), base, "send"],
    [
      "after a lost reply, another field moved",
      { onConflict: "merge" },
      history("unknown"),
      theirs({ email: "c@d" }),
      "send",
    ],
    [
      "after a lost reply, the same field moved",
      { onConflict: "merge" },
      history("unknown"),
      theirs({ name: "Theirs" }),
      "conflict",
    ],
    [
      "after a lost reply, the same field moved, reapply",
      {},
      history("unknown"),
      theirs({ name: "Theirs" }),
      "send",
    ],
    ["after a lost reply, pinned", { pin: '"1"' }, history("unknown"), base, "undecidable"],
    ["after 412, reapply", {}, history("stale"), theirs({ name: "Theirs" }), "send"],
    [
      "after 412, merge, same field",
      { onConflict: "merge" },
      history("stale"),
      theirs({ name: "Theirs" }),
      "conflict",
    ],
    [
      "after 412, merge, another field",
      { onConflict: "merge" },
      history("stale"),
      theirs({ email: "c@d" }),
      "send",
    ],
    ["after 412, fail", { onConflict: "fail" }, history("stale"), theirs({ email: "c@d" }), "conflict"],
    ["after 412, fail, the tag unmoved", { onConflict: "fail" }, history("stale"), base, "conflict"],
    ["after 412, gone", {}, history("stale"), "gone", "gone"],
  ])("%s", (_, over, before, current, step) => {
    expect(read(over, before, current)).toBe(step as ReturnType<typeof read>);
  });

  test("of a deletion: gone is as wanted", () => {
    const deletion = { intent: deletionIntent("1", []) };
    expect(read(deletion, history("unknown"), "gone")).toBe("as-wanted");
    expect(read(deletion, history("stale"), "gone")).toBe("as-wanted");
    expect(read(deletion, NO_HISTORY, base)).toBe("send");
    // Of two who claim the deletion, the second finds nothing to delete.
    expect(read({ ...deletion, ...NAMED_ADA }, history("gone"), "gone")).toBe("gone");
    expect(read({ ...deletion, pin: '"1"' }, history("gone"), "gone")).toBe("gone");
  });
});

describe("the request", () => {
  const request = (change: Record<string, Json>, current = base) =>
    changeIntent("a/b", new Map(Object.entries(change)), [], "lower").request(current, '"1"');

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

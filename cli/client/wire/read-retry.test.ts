import { describe, expect, test } from "bun:test";
import { serverWaitMs, waitBeforeRepeating } from "./read-retry.ts";
import type { NoReplyCause, Reply } from "./reply.ts";

const reply = (status: number, fields: Record<string, string> = {}): Reply => ({
  kind: "complete",
  status,
  fields: new Map(Object.entries(fields)),
  text: "",
});
const none = (cause: NoReplyCause): Reply => ({ kind: "no-complete-reply", sent: true, cause, detail: "" });

describe("a reading is repeated", () => {
  test.each<[string, Reply, number, boolean, boolean]>([
    ["200: never", reply(200), 1, true, false],
    ["404: never", reply(404), 1, true, false],
    ["401: never", reply(401), 1, true, false],
    ["429: always", reply(429), 99, false, true],
    ["503 with Retry-After: always", reply(503, { "retry-after": "1" }), 99, false, true],
    ["503 without: a few times", reply(503), 1, false, true],
    ["503 without: not forever", reply(503), 99, false, false],
    ["502: a few times", reply(502), 1, false, true],
    ["502: not forever", reply(502), 99, false, false],
    ["502 where it decides about a write: always", reply(502), 99, true, true],
    ["a broken connection: a few times", none("reset"), 1, false, true],
    ["a broken connection: not forever", none("reset"), 99, false, false],
    ["no connection: not for a mere reading", none("unreachable"), 1, false, false],
    ["no connection where it decides about a write: always", none("unreachable"), 99, true, true],
    ["a certificate that is not trusted: never", none("tls"), 1, true, false],
    ["an interruption: never", none("interrupted"), 1, true, false],
  ])("%s", (_, value, attempt, persistent, repeated) => {
    expect(waitBeforeRepeating(value, attempt, persistent) !== undefined).toBe(repeated);
  });
});

test("Retry-After as a date is measured by the server's own clock", () => {
  const fields = new Map([
    ["date", "Fri, 27 Nov 2020 22:00:00 GMT"],
    ["retry-after", "Fri, 27 Nov 2020 22:00:07 GMT"],
  ]);
  expect(serverWaitMs({ kind: "complete", status: 503, fields, text: "" })).toBe(7000);
});

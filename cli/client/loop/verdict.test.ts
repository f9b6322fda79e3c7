import { describe, expect, test } from "bun:test";
import type { CompleteReply, Reply } from "../wire/reply.ts";
import {
  type Confirms,
  confirmsChange,
  confirmsDeletion,
  judgeCreation,
  judgeWrite,
  type WriteVerdict,
} from "./verdict.ts";

const reply = (status: number, fields: Record<string, string> = {}, text = ""): CompleteReply => ({
  kind: "complete",
  status,
  fields: new Map(Object.entries(fields)),
  text,
});
const none = (sent: boolean): Reply => ({ kind: "no-complete-reply", sent, cause: "reset", detail: "" });

test.each<[Reply, WriteVerdict]>([
  [reply(204), "accepted"],
  [reply(202), "may-arrive"],
  [reply(202, { etag: '"2"' }), "may-arrive"],
  [reply(412), "stale"],
  [reply(404), "gone"],
  [reply(410), "gone"],
  [reply(429), "busy"],
  [reply(503), "reading-settles"],
  [reply(408), "may-arrive"],
  [reply(500), "may-arrive"],
  [reply(502), "may-arrive"],
  [reply(504), "may-arrive"],
  [reply(520), "may-arrive"],
  [none(true), "may-arrive"],
  [none(false), "not-sent"],
  [reply(501), "reading-settles"],
  [reply(505), "reading-settles"],
  [reply(301), "reading-settles"],
  [reply(499), "reading-settles"],
  [reply(409), "refused"],
  [reply(302), "reading-settles"],
  [reply(303), "reading-settles"],
  [reply(600), "may-arrive"],
  [reply(400), "refused"],
  [reply(403), "refused"],
  [reply(428), "refused"],
])("%j is judged %s", (value, verdict) => {
  expect(judgeWrite(value, () => false)).toBe(verdict === "accepted" ? "may-arrive" : verdict);
  expect(judgeWrite(value, () => true)).toBe(verdict);
});

const html = { "content-type": "text/html" };
const json = { "content-type": "application/json" };
const tag = { etag: '"2"' };
const page = "<!doctype html><title>Sign on</title>";

const ID = "0193aaaa-0000-7000-8000-000000000001";
const another = `{"id":"${ID.replace(/1$/, "2")}","name":"Mine"}`;
const weak = { etag: 'W/"2"' };
const problem = { "content-type": "application/problem+json" };

describe("a status of success is believed where a service says it, and not where a proxy shows a page", () => {
  const deletion = confirmsDeletion;
  const change = confirmsChange(ID, new Map([["name", "Mine"]]));
  test.each<[string, Confirms, CompleteReply, boolean]>([
    ["change: 204 with a tag", change, reply(204, tag), true],
    ["change: 204 whose tag a proxy strips", change, reply(204), true],
    ["change: 200 with a tag and nothing else", change, reply(200, tag), true],
    [
      "change: 200 with a tag and the customer",
      change,
      reply(200, { ...json, ...tag }, `{"Id":"${ID}"}`),
      true,
    ],
    ["change: 200 with a tag and a notice", change, reply(200, { ...json, ...tag }, '{"ok":true}'), false],
    ["change: 207", change, reply(207, tag, '{"Name":"Mine"}'), false],
    [
      "change: 200 without a tag that shows the change",
      change,
      reply(200, json, `{"Id":"${ID}","Name":"Mine"}`),
      true,
    ],
    ["change: 200 with a tag and an echo", change, reply(200, { ...json, ...tag }, '{"Name":"Mine"}'), false],
    [
      "change: 200 without a tag that shows another",
      change,
      reply(200, json, `{"Id":"${ID}","Name":"Ada"}`),
      false,
    ],
    [
      "change: 200 with a tag that shows another",
      change,
      reply(200, { ...json, ...tag }, `{"Id":"${ID}","Name":"Ada"}`),
      false,
    ],
    [
      "change: 200 with a tag that shows it in lower case, with blanks",
      change,
      reply(200, { ...json, ...tag }, `{"Id":"${ID}","Name":" mine"}`),
      true,
    ],
    ["change: 200 with nothing at all", change, reply(200), false],
    ["change: 200 with a page", change, reply(200, html, page), false],
    [
      "change: 200 with a page that has a tag of its own",
      change,
      reply(200, { ...html, ...tag }, page),
      false,
    ],
    ["change: 200 with a notice", change, reply(200, json, '{"message":"maintenance"}'), false],
    ["change: 200 with a notice under a weak tag", change, reply(200, { ...json, ...weak }, "{}"), false],
    ["change: 200 with a problem under a tag", change, reply(200, { ...problem, ...tag }, "{}"), false],
    ["change: 200 with another customer", change, reply(200, { ...json, ...tag }, another), false],
    ["deletion: 200 with another customer", deletion, reply(200, json, another), false],
    ["deletion: 200 with a problem", deletion, reply(200, problem, "{}"), false],
    ["deletion: 204", deletion, reply(204), true],
    ["deletion: 200 with nothing", deletion, reply(200), true],
    ["deletion: 200 with the customer", deletion, reply(200, json, `{"id":"${ID}"}`), false],
    ["deletion: 200 with a notice", deletion, reply(200, json, '{"ok":true}'), false],
    ["deletion: 207", deletion, reply(207), false],
    ["deletion: 200 with a page", deletion, reply(200, html, page), false],
  ])("%s", (_, confirms, value, believed) => {
    const unbelieved = value.text === page ? "reading-settles" : "may-arrive";
    expect(judgeWrite(value, confirms)).toBe(believed ? "accepted" : unbelieved);
  });

  test.each<[string, CompleteReply, WriteVerdict]>([
    ["201", reply(201), "accepted"],
    ["200 with the customer", reply(200, json, '{"Id":"1"}'), "accepted"],
    ["200 with its place", reply(200, { location: "/customers/1" }), "accepted"],
    [
      "201 with what was sent",
      reply(201, json, '{"id":"1","Name":"Ada","Email":"ADA@example.com "}'),
      "accepted",
    ],
    ["201 with another customer", reply(201, json, another), "may-arrive"],
    ["201 with another address", reply(201, json, '{"name":"Ada","email":"b@example.com"}'), "may-arrive"],
    ["201 with a page", reply(201, html, page), "may-arrive"],
    [
      "201 that replays what was changed since",
      reply(201, { ...json, "idempotency-replayed": "true" }, another),
      "accepted",
    ],
    ["202, whatever place it names", reply(202, { location: "/jobs/1" }, '{"id":"1"}'), "may-arrive"],
    ["200 with a page", reply(200, html, page), "may-arrive"],
    ["200 with a notice", reply(200, json, '{"message":"maintenance"}'), "may-arrive"],
    ["200 with a notice under a weak tag", reply(200, { ...json, ...weak }, "{}"), "may-arrive"],
    ["200 with a notice under a tag", reply(200, { ...json, ...tag }, '{"ok":true}'), "may-arrive"],
    ["207", reply(207, { location: "/customers/1" }), "may-arrive"],
    ["303, which may name what it made", reply(303), "may-arrive"],
    ["503 that says when", reply(503, { "retry-after": "1" }), "may-arrive"],
    ["503 that says nothing", reply(503), "may-arrive"],
  ])("creation: %s", (_, value, verdict) => {
    const sent = new Map([
      ["name", "Ada"],
      ["email", "ada@example.com"],
    ]);
    expect(judgeCreation(value, sent)).toBe(verdict);
  });
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import { WRITE_METHODS, type WriteMethod } from "../domain/policy/policy.ts";
import { firstDayKept } from "../domain/rollout/write-count.ts";
import { allCounts } from "../storage/write-counts/write-count-store.ts";
import { movedIn, requestSeries, scrape, writeSeries } from "./support/service/metric-series.ts";
import { TestService } from "./support/service/test-service.ts";

const UNTIL = "2027-03-31";
const UNTIL_MS = Date.UTC(2027, 2, 31);
const DAY_MS = 86_400_000;

const ROLES = BUILT_IN_POLICY.slice(0, BUILT_IN_POLICY.indexOf("[enforcement]"));
const observe = (more: string): string =>
  `${ROLES}[enforcement]\nmode = "observe"\nuntil = ${UNTIL}\n${more}\n`;

const POLICIES = [
  { title: "strict", policy: BUILT_IN_POLICY, clients: ["shop", "billing-sync"], methods: WRITE_METHODS },
  { title: "observe", policy: observe(""), clients: [], methods: [] },
  {
    title: "observe, a client enforced",
    policy: observe('enforced_clients = ["billing-sync"]'),
    clients: ["billing-sync"],
    methods: [],
  },
  {
    title: "observe, a method enforced",
    policy: observe('enforced_methods = ["DELETE"]'),
    clients: [],
    methods: ["DELETE"],
  },
  {
    title: "observe, a client and two methods enforced",
    policy: observe('enforced_clients = ["billing-sync", "other"]\nenforced_methods = ["PUT", "DELETE"]'),
    clients: ["billing-sync"],
    methods: ["PUT", "DELETE"],
  },
] as const satisfies readonly {
  title: string;
  policy: string;
  /** Those of the two clients, and the methods, that are held to If-Match before the end date. */
  clients: readonly string[];
  methods: readonly WriteMethod[];
}[];

const TIMES = [
  { when: "long before the end", nowMs: UNTIL_MS - 90 * DAY_MS, isOver: false },
  { when: "a millisecond before the end", nowMs: UNTIL_MS - 1, isOver: false },
  { when: "at 00:00 UTC of the end date", nowMs: UNTIL_MS, isOver: true },
  { when: "a year after the end", nowMs: UNTIL_MS + 365 * DAY_MS, isOver: true },
];

const BODIES: Readonly<Record<WriteMethod, object | undefined>> = {
  PUT: { name: "Grace", email: "grace@example.com" },
  PATCH: { name: "Grace" },
  DELETE: undefined,
};
const IF_MATCH: readonly { ifMatch: string; header: (etag: string) => Record<string, string> }[] = [
  { ifMatch: "no If-Match", header: () => ({}) },
  { ifMatch: "a blank If-Match", header: () => ({ "if-match": " \t " }) },
];
const PRESENT: readonly { ifMatch: string; value: (etag: string) => string; status: number }[] = [
  { ifMatch: "the current tag", value: (etag) => etag, status: 204 },
  { ifMatch: "a stale tag", value: () => '"AAAAAAAAAAAAAAAA"', status: 412 },
  { ifMatch: "a weakened tag", value: (etag) => `W/${etag}`, status: 412 },
  { ifMatch: "*", value: () => "*", status: 412 },
];

let nowMs = UNTIL_MS - DAY_MS;
const services: TestService[] = [];
const serviceOf = async (policy: string): Promise<TestService> => {
  const service = await TestService.start({ policy, now: () => nowMs });
  services.push(service);
  return service;
};
afterAll(async () => {
  for (const service of services) await service.stop();
});

describe.each([...POLICIES])("$title", ({ policy, clients, methods }) => {
  let service: TestService;
  beforeAll(async () => {
    service = await serviceOf(policy);
  });
  const cells = ["shop", "billing-sync"].flatMap((client) =>
    WRITE_METHODS.flatMap((method) => TIMES.map((time) => ({ client, method, ...time }))),
  );

  test.each(cells.flatMap((cell) => IF_MATCH.map((row) => ({ ...cell, ...row }))))(
    "$method by $client, $ifMatch, $when",
    async ({ client, method, header, isOver, ...cell }) => {
      nowMs = cell.nowMs;
      const { path, etag } = await service.customer();
      const isEnforced =
        isOver ||
        (clients as readonly string[]).includes(client) ||
        (methods as readonly string[]).includes(method);
      service.logLines.length = 0;
      const { reply, moved } = await movedIn(service, () =>
        service.send(method, path, {
          caller: { client },
          headers: { ...header(etag), "user-agent": client, "x-request-id": "the-request" },
          body: BODIES[method],
        }),
      );
      const log = service.logLines.find(({ requestId }) => requestId === "the-request");
      const after = await service.send("GET", path);

      expect(reply.status).toBe(isEnforced ? 428 : 204);
      expect(reply.headers.get("precondition-enforced-from")).toBe(isEnforced ? null : UNTIL);
      const counter = isEnforced
        ? "http_precondition_required_total"
        : "http_precondition_missing_allowed_total";
      expect(moved).toEqual({
        [writeSeries("http_write_attempts_total", method, { client })]: 1,
        [writeSeries(counter, method, { client })]: 1,
        [requestSeries(method, reply.status)]: 1,
      });
      expect(log).toMatchObject({ client, tenant: "acme", status: reply.status });
      expect(log?.["allowedWithoutIfMatch"]).toBe(isEnforced ? undefined : true);
      expect(log?.["level"]).toBe(isEnforced ? "info" : "warn");
      if (isEnforced) {
        expect(reply.headers.get("link")).toBeNull();
        expect([after.etag, after.json.name]).toEqual([etag, "Ada"]);
      } else {
        expect(reply.headers.get("link")).toMatch(/^<\/problems\/precondition-required>; rel="deprecation"/);
        if (method === "DELETE") expect(after.status).toBe(404);
        else {
          expect([after.etag, after.json.name]).toEqual([reply.etag, "Grace"]);
          expect(after.etag).not.toBe(etag);
        }
      }
    },
  );

  const aroundTheEnd = cells.filter(({ nowMs }) => Math.abs(UNTIL_MS - nowMs) <= 1);
  test.each(aroundTheEnd.flatMap((cell) => PRESENT.map((row) => ({ ...cell, ...row }))))(
    "$method by $client with $ifMatch, $when: $status as ever",
    async ({ client, method, value, status, ...cell }) => {
      nowMs = cell.nowMs;
      const { path, etag } = await service.customer();
      const { reply, moved } = await movedIn(service, () =>
        service.send(method, path, {
          caller: { client },
          headers: { "if-match": value(etag), "user-agent": client },
          body: BODIES[method],
        }),
      );
      expect(reply.status).toBe(status);
      expect([reply.headers.get("precondition-enforced-from"), reply.headers.get("link")]).toEqual([
        null,
        null,
      ]);
      expect(moved).toEqual({
        [writeSeries("http_write_attempts_total", method, { client })]: 1,
        ...(status === 412 ? { [writeSeries("http_precondition_failed_total", method, { client })]: 1 } : {}),
        [requestSeries(method, status)]: 1,
      });
      if (status === 412) expect((await service.send("GET", path)).etag).toBe(etag);
    },
  );
});

describe("while a rollout lets writes without If-Match pass", () => {
  let service: TestService;
  beforeAll(async () => {
    service = await serviceOf(observe(""));
  });
  const MISSING = "/customers/01a00000-0000-7000-8000-000000000000";

  test.each<[string, string, number, Parameters<TestService["send"]>[2]]>([
    ["no such customer", MISSING, 404, { body: BODIES.PUT }],
    ["a body that is refused", "", 422, { body: { name: "Grace" } }],
    ["an unknown field", "?fields=nmae", 400, { body: BODIES.PUT }],
    ["a role that may not write", "", 403, { body: BODIES.PUT, caller: { role: "viewer" } }],
    ["another tenant's customer", "", 404, { body: BODIES.PUT, caller: { tenant: "globex" } }],
    ["no token", "", 401, { body: BODIES.PUT, caller: null }],
  ])(
    "a PUT with %s is refused as ever, and is not counted or announced as let pass",
    async (_, target, status, send) => {
      nowMs = UNTIL_MS - DAY_MS;
      const { path, etag } = await service.customer();
      const before = await scrape(service);
      const reply = await service.send("PUT", target === MISSING ? target : `${path}${target}`, send);
      expect(reply.status).toBe(status);
      expect(reply.headers.get("precondition-enforced-from")).toBeNull();
      const allowed = (series: Map<string, number>) =>
        [...series].filter(
          ([name, value]) => name.startsWith("http_precondition_missing_allowed_total") && value > 0,
        );
      expect(allowed(await scrape(service))).toEqual(allowed(before));
      expect((await service.send("GET", path)).etag).toBe(etag);
    },
  );

  test.each(
    WRITE_METHODS.flatMap((method) =>
      [
        { noneMatch: "*", status: 412 },
        { noneMatch: "the current tag", status: 412 },
        { noneMatch: '"AAAAAAAAAAAAAAAA"', status: 204 },
      ].map((row) => ({ method, ...row })),
    ),
  )("If-None-Match $noneMatch of a $method alone is $status", async ({ method, noneMatch, status }) => {
    nowMs = UNTIL_MS - DAY_MS;
    const { path, etag } = await service.customer();
    const value = noneMatch === "the current tag" ? `W/${etag}` : noneMatch;
    const reply = await service.send(method, path, {
      headers: { "if-none-match": value },
      body: BODIES[method],
    });
    expect(reply.status).toBe(status);
    if (status === 412) {
      expect([reply.etag, reply.json.diagnosis]).toEqual([etag, "none-match"]);
      expect((await service.send("GET", path)).etag).toBe(etag);
    }
  });

  test("a write without If-Match can be repeated under its key until the rollout ends", async () => {
    nowMs = UNTIL_MS - 1;
    const { path } = await service.customer();
    const send = () =>
      service.send("PATCH", path, { body: BODIES.PATCH, headers: { "idempotency-key": "rollout" } });
    const first = await send();
    const again = await send();
    expect([first.status, again.status, again.etag]).toEqual([204, 204, first.etag]);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(again.headers.get("precondition-enforced-from")).toBe(UNTIL);
    nowMs = UNTIL_MS;
    expect((await send()).status).toBe(428);
  });

  test.each([
    { ifMatch: "none", isWithout: true },
    { ifMatch: "the current one", isWithout: false },
  ])(
    "a write is counted once, however often it is repeated under its key: If-Match $ifMatch",
    async ({ isWithout }) => {
      nowMs = UNTIL_MS - DAY_MS;
      const client = isWithout ? "repeats-without" : "repeats-with";
      const { path, etag } = await service.customer();
      const headers = {
        ...{ "idempotency-key": "counted-once", "user-agent": client },
        ...(isWithout ? {} : { "if-match": etag }),
      };
      const send = () => service.send("PUT", path, { caller: { client }, headers, body: BODIES.PUT });
      expect((await send()).status).toBe(204);
      const { reply, moved } = await movedIn(service, send);
      expect([reply.status, reply.headers.get("idempotency-replayed")]).toEqual([204, "true"]);
      expect(moved).toEqual({
        [writeSeries("http_write_attempts_total", "PUT", { client })]: 1,
        [requestSeries("PUT", 204)]: 1,
      });
      await service.writeCounter.flush();
      const counts = await allCounts(service.storage.writeCounts, firstDayKept(nowMs));
      expect(counts.filter((count) => count.client === client)).toMatchObject([
        { allowed: isWithout ? 1 : 0, withIfMatch: isWithout ? 0 : 1, refused: 0 },
      ]);
    },
  );

  test("the answer with a body carries the announcement too, and a read carries none", async () => {
    nowMs = UNTIL_MS - DAY_MS;
    const { path } = await service.customer();
    const reply = await service.send("PATCH", path, {
      headers: { prefer: "return=representation" },
      body: BODIES.PATCH,
    });
    expect([reply.status, reply.headers.get("precondition-enforced-from")]).toEqual([200, UNTIL]);
    const read = await service.send("GET", path);
    expect([read.headers.get("precondition-enforced-from"), read.headers.get("link")]).toEqual([null, null]);
  });

  test("the service becomes strict by itself: the same request passes before the end date and is refused from it", async () => {
    const { path } = await service.customer();
    const send = () => service.send("PATCH", path, { body: BODIES.PATCH });
    nowMs = UNTIL_MS - 1;
    expect((await send()).status).toBe(204);
    nowMs = UNTIL_MS;
    expect((await send()).status).toBe(428);
  });
});

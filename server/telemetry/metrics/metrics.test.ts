import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { WRITE_METHODS } from "../../domain/policy/policy.ts";
import type { StorageStats } from "../../storage/storage.ts";
import {
  movedIn,
  requestSeries,
  seriesOf,
  WRITE_COUNTERS,
  writeSeries,
} from "../../tests/support/service/metric-series.ts";
import { type Reply, TestService } from "../../tests/support/service/test-service.ts";
import { Metrics } from "./metrics.ts";

const CALLERS = { role: "admin", client: "shop", tenant: "acme" };
const GOOD = { name: "Ada", email: "ada@example.com" };

const storageStats = (): StorageStats => ({
  writesWaiting: 0,
  databaseBytes: 0,
  logBytes: 0,
  freeBytes: Number.NaN,
  connections: [],
});

const service = await TestService.start();
afterAll(() => service.stop());

type Send = Parameters<TestService["send"]>[2];

const movedBy = (act: () => Promise<Reply>) => movedIn(service, act);

describe("from the first scrape", () => {
  test("each write counter has a series at 0 for each method, with empty caller labels, and no other", async () => {
    const metrics = new Metrics({
      hasCallerLabels: true,
      version: "1.2.3",
      storageStats,
      tokensToRenew: { expiring: () => [], stillUsed: () => [] },
      issuerKeys: () => [],
      auditRetention: () => null,
      certificateExpiry: () => Number.NaN,
      rollout: { counts: async function* () {}, enforcement: () => ({ mode: "strict" }), now: Date.now },
      onWrite: () => {},
    });
    const series = [...seriesOf(await metrics.text())].filter(([key]) => key.startsWith("http_"));
    const empty = { client: "", tenant: "" };
    expect(new Map(series)).toEqual(
      new Map(
        WRITE_COUNTERS.flatMap((name) =>
          WRITE_METHODS.map((method): [string, number] => [writeSeries(name, method, empty), 0]),
        ),
      ),
    );
  });
});

test("scrapes that overlap show the same counts", async () => {
  await service.send("PUT", "/customers/x", { caller: CALLERS, body: GOOD });
  const scrapes = await Promise.all(Array.from({ length: 5 }, () => service.metrics.text()));
  const counts = scrapes.map((text) => [...seriesOf(text)].filter(([key]) => key.startsWith("http_")));
  expect(new Set(counts.map((series) => JSON.stringify(series))).size).toBe(1);
  expect(seriesOf(scrapes[0] ?? "").get(requestSeries("PUT", 428))).toBe(1);
});

describe("one write moves the series of its caller, and of what came of it, by one", () => {
  let path = "";
  let etag = "";
  beforeAll(async () => {
    ({ path, etag } = await service.customer());
  });

  const CASES: readonly {
    readonly title: string;
    readonly status: number;
    readonly send: () => Send;
    readonly moves?: "http_precondition_required_total" | "http_precondition_failed_total";
    readonly caller?: { client?: string; version?: string; tenant?: string };
    readonly methods?: readonly string[];
    readonly isMissing?: boolean;
  }[] = [
    {
      title: "no If-Match",
      status: 428,
      send: () => ({ body: GOOD }),
      moves: "http_precondition_required_total",
    },
    {
      title: "a blank If-Match",
      status: 428,
      send: () => ({ headers: { "if-match": " \t" }, body: GOOD }),
      moves: "http_precondition_required_total",
    },
    {
      title: "no If-Match, no such customer, a bad query and a bad body",
      status: 428,
      isMissing: true,
      send: () => ({ body: "{" }),
      moves: "http_precondition_required_total",
    },
    {
      title: "a stale If-Match",
      status: 412,
      send: () => ({ headers: { "if-match": '"AAAAAAAAAAAAAAAA"' }, body: GOOD }),
      moves: "http_precondition_failed_total",
    },
    {
      title: "a mangled If-Match and a version in the User-Agent",
      status: 412,
      send: () => ({ headers: { "if-match": `W/${etag}`, "user-agent": "shop/1.2.3 (linux)" }, body: GOOD }),
      moves: "http_precondition_failed_total",
      caller: { version: "1.2.3" },
    },
    {
      title: "no such customer",
      status: 404,
      isMissing: true,
      send: () => ({ headers: { "if-match": etag }, body: GOOD }),
    },
    {
      title: "an unknown field",
      status: 400,
      send: () => ({ headers: { "if-match": etag }, body: GOOD }),
    },
    {
      title: "a body that is none",
      status: 400,
      methods: ["PUT", "PATCH"],
      send: () => ({ headers: { "if-match": etag, "content-type": "application/json" }, body: "{" }),
    },
    {
      title: "a role that may not",
      status: 403,
      send: () => ({
        headers: { "if-match": etag },
        body: GOOD,
        caller: { role: "viewer", client: "reports", tenant: "acme" },
      }),
      caller: { client: "reports" },
    },
    {
      title: "a token for metrics, which belongs to no tenant",
      status: 403,
      send: () => ({
        headers: { "if-match": etag },
        body: GOOD,
        caller: { role: "monitor", client: "probe" },
      }),
      caller: { client: "probe", tenant: "" },
    },
    {
      title: "another tenant's customer",
      status: 404,
      send: () => ({ headers: { "if-match": etag }, body: GOOD, caller: { ...CALLERS, tenant: "globex" } }),
      caller: { tenant: "globex" },
    },
  ];

  test.each(CASES.flatMap((row) => (row.methods ?? WRITE_METHODS).map((method) => ({ ...row, method }))))(
    "$method, $title: $status",
    async ({ method, title, status, send, moves, caller, isMissing }) => {
      const target = isMissing ? "/customers/01a00000-0000-7000-8000-000000000000" : path;
      const query = title === "an unknown field" ? "?fields=nmae" : "";
      const sent = send();
      const headers = { "user-agent": "shop", ...sent?.headers };
      const { reply, moved } = await movedBy(() =>
        service.send(method, `${target}${query}`, { caller: CALLERS, ...sent, headers }),
      );
      expect(reply.status).toBe(status);
      expect(moved).toEqual({
        [writeSeries("http_write_attempts_total", method, caller)]: 1,
        ...(moves === undefined ? {} : { [writeSeries(moves, method, caller)]: 1 }),
        [requestSeries(method, status)]: 1,
      });
    },
  );

  test("an applied write is an attempt and nothing else", async () => {
    for (const method of ["PATCH", "PUT", "DELETE"]) {
      const { reply, moved } = await movedBy(() =>
        service.send(method, path, {
          caller: CALLERS,
          headers: { "if-match": etag, "user-agent": "shop" },
          body: GOOD,
        }),
      );
      expect(reply.status).toBe(204);
      etag = reply.etag;
      expect(moved).toEqual({
        [writeSeries("http_write_attempts_total", method)]: 1,
        [requestSeries(method, 204)]: 1,
      });
    }
  });
});

describe("what is no write attempt moves no write counter", () => {
  const ID = "01a00000-0000-7000-8000-000000000000";
  test.each<[string, string, string, number, Send, string]>([
    [
      "an unauthenticated PUT",
      "PUT",
      `/customers/${ID}`,
      401,
      { caller: null, body: GOOD },
      "/customers/{id}",
    ],
    ["an unauthenticated DELETE", "DELETE", `/customers/${ID}`, 401, { caller: null }, "/customers/{id}"],
    ["a GET", "GET", `/customers/${ID}`, 404, {}, "/customers/{id}"],
    [
      "a GET with If-Match",
      "GET",
      `/customers/${ID}`,
      404,
      { headers: { "if-match": '"x"' } },
      "/customers/{id}",
    ],
    ["a HEAD", "HEAD", `/customers/${ID}`, 404, {}, "/customers/{id}"],
    ["a POST to a customer", "POST", `/customers/${ID}`, 405, { body: GOOD }, "/customers/{id}"],
    ["an OPTIONS", "OPTIONS", `/customers/${ID}`, 204, {}, "/customers/{id}"],
    ["a list", "GET", "/customers", 200, {}, "/customers"],
    ["a creation", "POST", "/customers", 201, { body: GOOD }, "/customers"],
    ["a bad creation", "POST", "/customers", 422, { body: {} }, "/customers"],
    ["a PUT of the collection", "PUT", "/customers", 405, { body: GOOD }, "/customers"],
    ["a DELETE of the search", "DELETE", "/customers/search", 405, {}, "/customers/search"],
    ["a search", "POST", "/customers/search", 200, { body: {} }, "/customers/search"],
    ["a PUT elsewhere", "PUT", "/nowhere", 404, { body: GOOD }, "(none)"],
    ["a health check", "GET", "/healthz", 200, { caller: null }, "/healthz"],
    ["a problem page", "GET", "/problems/invalid-body", 200, { caller: null }, "/problems/{code}"],
  ])("%s", async (_, method, path, status, send, route) => {
    const { reply, moved } = await movedBy(() => service.send(method, path, send));
    expect(reply.status).toBe(status);
    expect(moved).toEqual({ [requestSeries(method, status, route)]: 1 });
  });

  test("a method that no label should multiply counts as `other`", async () => {
    const { moved } = await movedBy(() => service.send("PROPFIND", "/customers"));
    expect(moved).toEqual({ [requestSeries("other", 405, "/customers")]: 1 });
  });
});

import { afterAll, describe, expect, test } from "bun:test";
import { Registry } from "prom-client";
import { WRITE_METHODS } from "../../domain/policy/policy.ts";
import { scrape, seriesOf, WRITE_COUNTERS, writeSeries } from "../../tests/support/service/metric-series.ts";
import { TestService } from "../../tests/support/service/test-service.ts";
import type { AnsweredRequest } from "../answered-request.ts";
import { CLIENT_VERSIONS_MAX, versionOf } from "../client-versions.ts";
import { LimitMetrics } from "./limit-metrics.ts";
import { WriteMetrics } from "./write-metrics.ts";

const CALLERS = { role: "admin", client: "shop", tenant: "acme" };

const service = await TestService.start();
afterAll(() => service.stop());

describe("labels", () => {
  test(`past ${CLIENT_VERSIONS_MAX} versions of a client a new one takes the place of the one seen least recently, whose counts go on as \`other\``, async () => {
    const send = (client: string, minor: number) =>
      service.send("DELETE", "/customers/x", {
        caller: { client },
        headers: { "user-agent": `app/1.${minor}` },
      });
    for (let minor = 0; minor < CLIENT_VERSIONS_MAX; minor += 1) await send("many", minor);
    await send("many", 0); // seen again: 1.1 is now the least recent
    await send("many", CLIENT_VERSIONS_MAX);
    await send("many", CLIENT_VERSIONS_MAX + 1);
    await send("few", 1);
    const series = await scrape(service);
    const count = (client: string, version: string) =>
      series.get(writeSeries("http_precondition_required_total", "DELETE", { client, version }));
    const versions = ["0", "1", "2", "3", `${CLIENT_VERSIONS_MAX}`, `${CLIENT_VERSIONS_MAX + 1}`];
    expect(versions.map((minor) => count("many", `1.${minor}`))).toEqual([2, undefined, undefined, 1, 1, 1]);
    expect([count("many", "other"), count("few", "other")]).toEqual([2, undefined]);
    // What gave up its place may come back; no sum over versions falls by any of it.
    await send("many", 1);
    const later = [...(await scrape(service))].filter(
      ([key]) => key.startsWith("http_precondition_required_total") && key.includes('client="many"'),
    );
    expect(later).toHaveLength(CLIENT_VERSIONS_MAX + 1);
    expect(later.reduce((sum, [, value]) => sum + value, 0)).toBe(CLIENT_VERSIONS_MAX + 4);
  });

  test("of 10,000 clients those that wrote last are named, and the counts of the others go on as (other)", async () => {
    const registry = new Registry();
    const writes = new WriteMetrics(registry, true);
    const answered = { status: 428, isAllowedWithoutIfMatch: false } as AnsweredRequest;
    const write = (client: string) =>
      writes.record({ answered, method: "PUT", client, tenant: `of-${client}`, version: "1.0" });
    write("first");
    for (let client = 0; client < 10_000; client += 1) {
      write(`client-${client}`);
      if (client % 1_000 === 0) write("first");
    }
    const counts = [...seriesOf(await registry.metrics())].filter(([series]) =>
      series.startsWith("http_precondition_required_total{"),
    );
    expect(counts.reduce((sum, [, value]) => sum + value, 0)).toBe(10_011);
    const named = counts.map(([series]) => /client="([^"]*)"/.exec(series)?.[1] ?? "");
    const others = counts.filter(([series]) => series.includes('client="(other)"'));
    expect(named).toContain("first");
    expect(named).toContain("client-9999");
    expect([named.length, others.length]).toEqual([2_000 + WRITE_METHODS.length + 1, 1]);
    expect(others[0]?.[1]).toBe(10_000 - 1_999);
  });

  test("of 10,000 callers with limits those that were limited last are named, and the counts of the others go on as (other)", async () => {
    const registry = new Registry();
    const limits = new LimitMetrics(registry, true);
    for (let client = 0; client < 10_000; client += 1) {
      const limit = { name: "client-writes", client: `client-${client}`, tenant: "acme" } as const;
      limits.begin(limit);
      limits.refused(limit);
    }
    const counts = [...seriesOf(await registry.metrics())];
    expect(counts.reduce((sum, [, value]) => sum + value, 0)).toBe(10_000);
    // Beside them: wrong tokens, which name nobody, and the others.
    expect(counts).toHaveLength(2_000 + 2);
    const others = 'customers_requests_limited_total{limit="client-writes",client="(other)",tenant=""}';
    expect(new Map(counts).get(others)).toBe(8_000);
  });

  test.each([
    ["billing-sync/1.2.3", "1.2.3"],
    ["billing-sync/1.2.3 (linux; x64)", "1.2.3"],
    ["curl/8", "8"],
    ["app/2.0.0-rc.1", "2.0.0-rc.1"],
    ["app/2.0.0+build.7", "2.0.0+build.7"],
    ["Mozilla/5.0 (X11) Firefox/140.0", "5.0"],
    [null, ""],
    ["", ""],
    ["app", ""],
    ["app/", ""],
    ["app/v1", ""],
    ["app/1.2.3;x", ""],
    ["app/1.2.3.4.5", ""],
    ["app/01a21f14-a921-76c8-958d-96e3c6578e4e", ""],
    ["app/01a21f14a92176c8958d96e3c6578e4e", ""],
    ["app/12345678-1234-7234-8234-123456789012", ""],
    [`app/1.0-${"x".repeat(17)}`, ""],
    ["/1.0", ""],
  ])("the User-Agent %p has the version %p", (userAgent, version) => {
    expect(versionOf(userAgent)).toBe(version);
  });

  test("no label ever holds an id, a token or a name, whatever a client puts into its request", async () => {
    const { id, etag } = await service.customer({ name: "Grace" });
    const token = await service.token();
    for (const method of ["GET", "PUT", "DELETE", "POST", "TRACE"]) {
      for (const path of [`/customers/${id}`, `/${id}`, `/customers/search/${id}`, `/problems/${id}`]) {
        await service.send(method, path, {
          headers: { "user-agent": `app/${id}`, "x-request-id": id, "if-match": `${etag}x` },
        });
      }
    }
    const { text } = await service.send("GET", "/metrics", { caller: { role: "monitor" } });
    for (const secret of [id, id.replaceAll("-", ""), etag.slice(1, -1), token, "Grace"]) {
      expect(text.includes(secret)).toBe(false);
    }
  });

  test("public metrics name no client, version or tenant", async () => {
    const open = await TestService.start({ metricsArePublic: true });
    try {
      const { path } = await open.customer({}, CALLERS);
      await open.send("PUT", path, { caller: CALLERS, headers: { "user-agent": "shop/1.2.3" } });
      const { status, text } = await open.send("GET", "/metrics", { caller: null });
      expect(status).toBe(200);
      const written = [...seriesOf(text)].filter(([series]) =>
        WRITE_COUNTERS.some((name) => series.startsWith(name)),
      );
      expect(written).toEqual(
        WRITE_COUNTERS.flatMap((name) =>
          WRITE_METHODS.map((method): [string, number] => [
            `${name}{method="${method}",route="/customers/{id}"}`,
            method === "PUT" && /required|attempts/.test(name) ? 1 : 0,
          ]),
        ),
      );
      for (const word of ["shop", "1.2.3", "acme", "client=", "client_version=", "tenant="])
        expect(text.includes(word)).toBe(false);
    } finally {
      await open.stop();
    }
  });
});

import { afterAll, describe, expect, test } from "bun:test";
import { WRITE_METHODS } from "../domain/policy.ts";
import { scrape, seriesOf, WRITE_COUNTERS, writeSeries } from "../tests/support/metric-series.ts";
import { TestService } from "../tests/support/test-service.ts";
import { CLIENT_VERSIONS_MAX, versionOf } from "./client-versions.ts";

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

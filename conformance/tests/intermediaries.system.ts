/**
 * The kit through real proxies, before a sound service that lets them transform: as they come they conform,
 * compressing they break the tag, and the line of configuration that the finding names fixes it.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Report } from "../report/schema.ts";
import { runKit } from "../run/engine.ts";
import { profileFlags } from "../self/case.ts";
import { CREDENTIALS } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { type SoundServer, startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";
import { apache, haproxy, nginx, type Recipe, startProxy, varnish } from "./intermediary.ts";

let server: SoundServer;
beforeAll(async () => {
  server = await startSoundServer(PLAIN);
});
afterAll(() => server.close());

async function runThrough(recipe: Recipe): Promise<Report> {
  const proxy = await startProxy(recipe, Number(new URL(server.url).port));
  try {
    const profile = readProfile({ ...profileFlags(server, PLAIN), baseUrl: proxy.url, timeout: 15_000 }, {});
    return await runKit(profile, { ...defaultOptions, rounds: 6, exclusive: true });
  } finally {
    await proxy.stop();
  }
}

const failing = (report: Report) =>
  report.rules
    .filter(({ outcome }) => outcome !== "pass" && outcome !== "not-applicable")
    .map(({ id, reason }) => `${id}: ${reason}`);

const GZIP = "gzip on; gzip_types application/json; gzip_min_length 1;";
const COMPRESSION = "  compression algo gzip\n  compression type application/json";

test.each([
  ["nginx", nginx("")],
  ["nginx whose gzip is off for this location", nginx(`${GZIP} gzip off;`.replace("gzip on; ", ""))],
  ["HAProxy", haproxy("")],
  ["Varnish", varnish("")],
  ["Varnish that does not compress", varnish("set beresp.do_gzip = false;")],
  ["Apache", apache("")],
  [
    "Apache mod_deflate with DeflateAlterETag NoChange",
    apache("SetOutputFilter DEFLATE\nDeflateAlterETag NoChange"),
  ],
  [
    "Apache mod_deflate with no-gzip",
    apache("SetOutputFilter DEFLATE\nSetEnvIf Request_URI /customers no-gzip"),
  ],
] as [string, Recipe][])("through %s the service conforms", async (_name, recipe) => {
  const report = await runThrough(recipe);
  expect(failing(report)).toEqual([]);
  expect(report.exitCode).toBe(0);
});

test.each([
  ["nginx", nginx(GZIP), /nginx/, /gzip off;/],
  ["HAProxy", haproxy(COMPRESSION), /HAProxy/, /remove `compression algo`/],
  ["Varnish", varnish("set beresp.do_gzip = true;"), /Varnish/, /do_gzip = false/],
  [
    "Apache mod_deflate",
    apache("SetOutputFilter DEFLATE"),
    /Apache mod_deflate/,
    /DeflateAlterETag NoChange/,
  ],
] as [string, Recipe, RegExp, RegExp][])(
  "%s that compresses is a violation, with its name and the line that fixes it",
  async (_name, recipe, layer, fix) => {
    const report = await runThrough(recipe);
    expect(report.verdict).toBe("violates");
    const named = report.rules.filter((rule) => rule.outcome === "violation" && rule.layer !== null);
    expect(named.length).toBeGreaterThan(0);
    for (const rule of named) {
      expect(rule.layer?.name).toMatch(layer);
      expect(rule.layer?.fix).toMatch(fix);
    }
  },
);

test.each([
  ["nginx", nginx(GZIP), 'W/"'],
  ["HAProxy", haproxy(COMPRESSION), '"'],
  ["Varnish", varnish("set beresp.do_gzip = true;"), 'W/"'],
  ["Apache mod_deflate", apache("SetOutputFilter DEFLATE"), '-gzip"'],
] as [string, Recipe, string][])(
  "whether %s honours Cache-Control: no-transform: HAProxy alone does",
  async (name, recipe, sign) => {
    const cacheControl = "private, no-cache, no-transform";
    const careful = await startSoundServer({ ...PLAIN, cacheControl, seeded: 1 });
    const proxy = await startProxy(recipe, Number(new URL(careful.url).port));
    try {
      const headers = { authorization: `Bearer ${CREDENTIALS.main}`, "accept-encoding": "gzip" };
      const tag =
        (await fetch(`${proxy.url}/customers/${careful.seeded[0]}`, { headers })).headers.get("etag") ?? "";
      const bare = (await fetch(`${careful.url}/customers/${careful.seeded[0]}`, { headers })).headers.get(
        "etag",
      );
      expect(tag.startsWith(sign) || tag.endsWith(sign)).toBe(true);
      expect(tag === bare).toBe(name === "HAProxy");
    } finally {
      await proxy.stop();
      await careful.close();
    }
  },
);

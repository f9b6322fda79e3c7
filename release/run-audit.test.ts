import { afterAll, expect, test } from "bun:test";
import { runAudit } from "./run-audit.ts";

/** The registry of these tests. */
let answer: () => Response;
let asked = 0;
const registry = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: (request) => {
    asked += new URL(request.url).pathname === "/-/npm/v1/security/advisories/bulk" ? 1 : 0;
    return answer();
  },
});
afterAll(() => registry.stop(true));
const audit = (url = registry.url.href) => runAudit({ ...process.env, BUN_CONFIG_REGISTRY: url });

test("a registry without advisories for our packages: clean", async () => {
  answer = () => Response.json({});
  expect(await audit()).toEqual({ lines: ["no known vulnerability in bun.lock"], isClean: true });
  expect(asked).toBe(1);
});

test("an advisory for one of our packages fails the run, and is named", async () => {
  const advisory = {
    ...{ id: 1, url: "https://advisories.example/GHSA-1", title: "Forged tokens", severity: "high" },
    ...{ vulnerable_versions: "<99.0.0", cwe: [], cvss: { score: 0, vectorString: null } },
  };
  answer = () => Response.json({ jose: [advisory] });
  expect(await audit()).toEqual({
    lines: [
      "known vulnerabilities in bun.lock: 1",
      "jose <99.0.0: high: Forged tokens (https://advisories.example/GHSA-1)",
    ],
    isClean: false,
  });
});

test.each<[string, () => Response]>([
  ["has no advisories", () => new Response("", { status: 405 })],
  ["fails", () => new Response("", { status: 503 })],
  ["answers with a page", () => new Response("<html>")],
])("a registry that %s does not fail the run, and is reported", async (_, reply) => {
  answer = reply;
  const { lines, isClean } = await audit();
  expect([isClean, lines.length]).toEqual([true, 1]);
  expect(lines[0]).toStartWith("NOT AUDITED: the registry gave no advisories (error: ");
});

test("nor does one that can't be reached", async () => {
  const taken = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const url = taken.url.href;
  await taken.stop(true);
  const { lines, isClean } = await audit(url);
  expect([isClean, lines.length]).toEqual([true, 1]);
  expect(lines[0]).toStartWith("NOT AUDITED");
});

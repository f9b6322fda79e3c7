/** --gentle: nothing that looks like an attack or a flood reaches the deployment, and the report says what that costs. */
import { expect, test } from "bun:test";
import { caveats } from "../report/finding.ts";
import { runKit } from "../run/engine.ts";
import type { Request } from "../self/service/http-socket.ts";
import { CREDENTIALS } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";

/** What a firewall would stop, or an operator would ask about; undefined: nothing of it. */
function alarmingPart({ query, headers }: Request): string | undefined {
  const values = headers.filter(([name]) => name.toLowerCase() === "if-match").map(([, value]) => value);
  return [query, ...values]
    .map(decoded)
    .find(
      (text) => /' ?or\b|1=1|--|\.\.\/|\$\{|<script|\bunion\b|\bdrop\b/i.test(text) || text.length > 1500,
    );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function run(gentle: boolean, only: readonly string[] = []) {
  const alarming = new Set<string>();
  const server = await startSoundServer(PLAIN, () => ({
    around: (request, next) => {
      const part = alarmingPart(request);
      if (part !== undefined) alarming.add(part);
      return next(request);
    },
  }));
  const line = (key: keyof typeof CREDENTIALS) => [`Authorization: Bearer ${CREDENTIALS[key]}`];
  const profile = readProfile(
    {
      baseUrl: server.url,
      header: line("main"),
      limitedHeader: line("limited"),
      otherTenantHeader: line("other"),
      metricsUrl: server.metricsUrls,
      metricsHeader: line("metrics"),
    },
    {},
  );
  const report = await runKit(profile, {
    ...defaultOptions,
    mode: "quick",
    rounds: 2,
    exclusive: true,
    gentle,
    only,
  });
  await server.close();
  return { report, alarming };
}

test("a gentle run sends nothing alarming, says so, and reports what it leaves untested", async () => {
  const { report, alarming } = await run(true);
  expect([...alarming]).toEqual([]);
  expect(caveats(report).join(" ")).toContain("Left out by --gentle: a burst at once");
  const open = report.rules.filter(({ outcome }) => outcome !== "pass");
  expect(open.length).toBeGreaterThan(0);
  for (const { outcome, reason } of open)
    expect([outcome, reason]).toEqual(["could-not-run", expect.stringContaining("--gentle")]);
  expect(report.exitCode).toBe(3);
});

test("any other run sends it, and says nothing of it", async () => {
  const { report, alarming } = await run(false, ["FLD-08", "IFM-20"]);
  expect(alarming.size).toBeGreaterThan(5);
  expect(caveats(report).join(" ")).not.toContain("--gentle");
  expect(report.exitCode).toBe(0);
});

/** The kit against our own service, started as a program of its own with a fresh database. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runKit } from "../run/engine.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";

const folder = mkdtempSync(join(tmpdir(), "kit-own-service-"));
const { TEST_SERVER } = process.env;
/** The service of this project; a whole test run compiles it once. */
const SERVICE =
  TEST_SERVER === undefined
    ? [process.execPath, new URL("../../server/main.ts", import.meta.url).pathname]
    : [TEST_SERVER];
const env = {
  ...process.env,
  HOST: "127.0.0.1",
  PORT: "0",
  DATABASE_URL: `sqlite:${folder}/customers.db`,
  LOG_LEVEL: "silent",
  STOP_GRACE: "0",
};
let service: Bun.Subprocess<"ignore", "pipe", "inherit">;
let baseUrl = "";

function token(...flags: string[]): string {
  const { stdout, exitCode } = Bun.spawnSync([...SERVICE, "token", "create", ...flags], {
    env,
    cwd: folder,
  });
  if (exitCode !== 0) throw new Error(`token create ended with ${exitCode}`);
  return stdout.toString().trim();
}

beforeAll(async () => {
  service = Bun.spawn([...SERVICE, "serve", "--print-url", "--no-samples"], {
    env,
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const reader = service.stdout.getReader();
  const { value } = await reader.read();
  baseUrl = JSON.parse(new TextDecoder().decode(value)).url;
});

afterAll(async () => {
  service.kill();
  await service.exited;
  rmSync(folder, { recursive: true, force: true });
});

const ROUNDS = 8;

test("it conforms, and nothing is left unrun", async () => {
  const bearer = (value: string) => [`Authorization: Bearer ${value}`];
  const profile = readProfile(
    {
      baseUrl,
      header: bearer(readFileSync(join(folder, "admin.token"), "utf8").trim()),
      limitedHeader: bearer(token("--role", "support", "--client", "kit-limited", "--tenant", "default")),
      limitedDenied: "email",
      otherTenantHeader: bearer(token("--role", "editor", "--client", "kit-other", "--tenant", "other")),
      metricsUrl: [`${baseUrl}/metrics`],
      metricsHeader: bearer(token("--role", "monitor", "--client", "kit-metrics")),
    },
    {},
  );
  const report = await runKit(profile, { ...defaultOptions, rounds: ROUNDS, exclusive: true });
  const notPassed = report.rules
    .filter(({ outcome }) => outcome !== "pass")
    .map(({ id, outcome, reason }) => `${id} ${outcome}: ${reason}`);
  expect(notPassed).toEqual([]);
  expect(report.exitCode).toBe(0);
  expect(report.fixtures.left).toEqual([]);
  expect(report.fixtures.removed).toBe(report.fixtures.made);
});

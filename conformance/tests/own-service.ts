/** Runs the kit against our own service, started as a program of its own with a fresh database. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Report } from "../report/schema.ts";
import { runKit } from "../run/engine.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";

const { TEST_SERVER } = process.env;
/** The service of this project; a whole test run compiles it once. */
const SERVICE =
  TEST_SERVER === undefined
    ? [process.execPath, new URL("../../server/main.ts", import.meta.url).pathname]
    : [TEST_SERVER];

const ROUNDS = 8;

/** A full run with every caller and the metrics. */
export async function runAgainstOwnService(): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "kit-own-service-"));
  const env = {
    ...process.env,
    HOST: "127.0.0.1",
    PORT: "0",
    DATABASE_URL: `sqlite:${folder}/customers.db`,
    LOG_LEVEL: "silent",
    STOP_GRACE: "0",
  };
  const token = (...flags: string[]): string => {
    const words = [...SERVICE, "token", "create", ...flags];
    const { stdout, exitCode } = Bun.spawnSync(words, { env, cwd: folder });
    if (exitCode !== 0) throw new Error(`token create ended with ${exitCode}`);
    return stdout.toString().trim();
  };
  const service = Bun.spawn([...SERVICE, "serve", "--print-url", "--no-samples"], {
    env,
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const { value } = await service.stdout.getReader().read();
    const baseUrl: string = JSON.parse(new TextDecoder().decode(value)).url;
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
    return await runKit(profile, { ...defaultOptions, rounds: ROUNDS, exclusive: true });
  } finally {
    service.kill();
    await service.exited;
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What is not as it should be in the report of a service that conforms. */
export function complaintsAbout({ rules, exitCode, fixtures }: Report): string[] {
  return [
    ...rules
      .filter(({ outcome }) => outcome !== "pass")
      .map(({ id, outcome, reason }) => `${id} ${outcome}: ${reason}`),
    ...(exitCode === 0 ? [] : [`exit ${exitCode}`]),
    ...fixtures.left.map((id) => `${id} is left`),
    ...(fixtures.removed === fixtures.made ? [] : [`${fixtures.made} made, ${fixtures.removed} removed`]),
  ];
}

/**
 * 100,000 rows, sent for real: memory does not grow with the input, and every row arrives once. No Debian
 * package is needed; it is here because it takes longer than the other tests together.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { runClient, spawnClient, temporaryDirectory } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";
import { startService } from "./support/service.ts";

/** Room for what a collector has not got round to; a hundred bytes a row kept would be 10 MB. */
const GROWTH_BYTES_MAX = 64 * 1024 * 1024;

async function importRows(rows: number): Promise<{ stderr: string; peakBytes: number; created: number }> {
  const server = startCustomerServer();
  using directory = temporaryDirectory();
  const path = join(directory.path, "in.csv");
  const lines = Array.from({ length: rows }, (_, at) => `Customer ${at},c${at}@example.com`);
  await Bun.write(path, `name,email\n${lines.join("\n")}\n`);
  const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN };
  const child = spawnClient(["import", path], { env });
  const [stderr, exitCode] = await Promise.all([child.stderr.text(), child.exited]);
  expect(exitCode).toBe(0);
  const created = new Set(server.all().map(({ name }) => name)).size;
  expect(server.size).toBe(created);
  await server.stop();
  return { stderr, created, peakBytes: child.resourceUsage()?.maxRSS ?? 0 };
}

test("100,000 rows take the memory of 10,000", async () => {
  const small = await importRows(10_000);
  const large = await importRows(100_000);
  expect([small.created, large.created]).toEqual([10_000, 100_000]);
  expect(small.peakBytes).toBeGreaterThan(0);
  expect(large.peakBytes - small.peakBytes).toBeLessThan(GROWTH_BYTES_MAX);
  expect(large.stderr).toContain("100,000 rows: 100,000 created");
}, 300_000);

test("killed at any moment against our own service, and resumed: every row is one customer", async () => {
  const service = await startService(["editor"]);
  using directory = temporaryDirectory();
  const path = join(directory.path, "in.csv");
  const rows = 5000;
  const lines = Array.from({ length: rows }, (_, at) => `Customer ${at},c${at}@example.com`);
  await Bun.write(path, `name,email\n${lines.join("\n")}\n`);
  const env = { CUSTOMERS_URL: service.url, CUSTOMERS_TOKEN: service.tokens["editor"] ?? "" };
  const command = [await compiledClient()];
  let exitCode: number | undefined;
  let kills = -1;
  while (exitCode !== 0 && kills < 100) {
    kills += 1;
    const child = spawnClient(["import", path, "--resume", "--result", "--concurrency", "64"], {
      env,
      command,
    });
    const stderr = child.stderr.text();
    let bytes = 0;
    const killAt = 200_000 * Math.random();
    for await (const chunk of child.stdout) {
      bytes += chunk.length;
      if (bytes > killAt) child.kill("SIGKILL");
    }
    exitCode = await child.exited;
    expect([0, 137], await stderr).toContain(exitCode);
  }
  expect(kills).toBeGreaterThan(1);
  const listed = await runClient(["list", "--all", "--fields", "name", "--output", "value"], {
    env,
    command,
  });
  const names = listed.stdout.trimEnd().split("\n");
  await service.stop();
  expect([exitCode, listed.exitCode, names.length, new Set(names).size]).toEqual([0, 0, rows, rows]);
}, 300_000);

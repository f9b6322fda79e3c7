import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { SqliteConnections } from "./storage/sqlite-connections.ts";
import { MEMORY } from "./storage/sqlite-database.ts";
import { anyStep } from "./testing/arbitrary-steps.ts";
import { ModelRun, POLICY } from "./testing/model-run.ts";
import { RawConnection } from "./testing/raw-connection.ts";
import { TestService } from "./testing/test-service.ts";

const directory = mkdtempSync(join(tmpdir(), "customers-"));
afterAll(() => rmSync(directory, { recursive: true }));

// Two engines in one: in memory one connection reads and writes; on disk, as in production, writes have their own thread.
test.each([
  { where: "in memory", path: MEMORY, numRuns: 150 },
  { where: "on disk", path: join(directory, "model.db"), numRuns: 40 },
])(
  "every answer to random sequences of requests is the one that a model of the specification gives, $where",
  async ({ path, numRuns }) => {
    const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
    console.log(`model: SEED=${seed}`);
    const deaths: string[] = [];
    const clock = { nowMs: Date.UTC(2027, 0, 1) };
    const service = new TestService({
      policy: POLICY,
      now: () => clock.nowMs,
      connections: SqliteConnections.openAdaptive(
        path,
        (reason) => deaths.push(reason),
        () => true,
      ),
    });
    const connection = await RawConnection.open(service.port);
    let runs = 0;
    const law = fc.asyncProperty(fc.array(anyStep, { maxLength: 60, size: "max" }), async (steps) => {
      runs += 1;
      const run = new ModelRun(runs, service, connection, clock);
      await run.begin();
      for (const step of steps) await run.take(step);
      await run.audit();
    });
    try {
      await fc.assert(law, { seed, numRuns });
      const log = JSON.stringify(service.logLines);
      expect(log).not.toContain("@example.com");
      expect(log).not.toContain("cst_");
      expect(deaths).toEqual([]);
    } finally {
      connection.close();
      await service.stop();
    }
  },
);

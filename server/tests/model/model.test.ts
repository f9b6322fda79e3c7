import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import fc from "fast-check";
import { openStorage } from "../../storage/database-url/open-storage.ts";
import { STORAGE_WAYS } from "../support/database/storage-ways.ts";
import { RawConnection } from "../support/http/raw-connection.ts";
import { RUNS } from "../support/random.ts";
import { Workplace } from "../support/service/server-process.ts";
import { TestService } from "../support/service/test-service.ts";
import { anyStep } from "./arbitrary-steps.ts";
import { ModelRun, POLICY } from "./model-run.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  place.makeDirectory();
});
afterEach(() => place.clear());

const anySteps = fc.array(anyStep, { maxLength: 60, size: "max" });

function seeded(numRuns: number): { readonly seed: number; readonly numRuns: number } {
  const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
  console.log(`model: SEED=${seed}`);
  return { seed, numRuns: numRuns * RUNS };
}

test.each([...STORAGE_WAYS])(
  "every answer to random sequences of requests is the one that a model of the specification gives, $title",
  async ({ open }) => {
    const deaths: string[] = [];
    const clock = { nowMs: Date.UTC(2027, 0, 1) };
    const service = await TestService.start({
      policy: POLICY,
      now: () => clock.nowMs,
      storage: await open(place.database, { onFault: (reason) => deaths.push(reason) }),
    });
    const connection = await RawConnection.open(service.port);
    let runs = 0;
    const law = fc.asyncProperty(anySteps, async (steps) => {
      runs += 1;
      const run = new ModelRun(runs, service, connection, clock);
      await run.begin();
      for (const step of steps) await run.take(step);
      await run.audit();
    });
    try {
      await fc.assert(law, seeded(15));
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

test("the same over two services on one port, each request on a connection of its own, so that either may answer it", async () => {
  const policy = `${place.path}/policy.toml`;
  writeFileSync(policy, POLICY);
  const service = await place.start({
    services: 2,
    args: ["--no-samples", "--policy-file", policy],
  });
  const storage = await openStorage(place.databaseUrl, { lockWaitMs: 60_000 });
  const made = new Map<string, string>();
  const tokens = {
    async token({ role, tenant }: { role: string; tenant: string }): Promise<string> {
      const key = `${role} ${tenant}`;
      const token =
        made.get(key) ??
        (await storage.tokens.create({ client: "model", role, tenant }, Date.now(), null)).token;
      made.set(key, token);
      return token;
    },
  };
  const connection: Pick<RawConnection, "send"> = {
    async send(request) {
      const own = await RawConnection.open(service.port);
      const reply = await own.send(request);
      own.close();
      return reply;
    },
  };
  let runs = 0;
  // Real clocks: no step may let hours pass.
  const law = fc.asyncProperty(anySteps, async (steps) => {
    runs += 1;
    const run = new ModelRun(runs, tokens, connection, { nowMs: Date.now() });
    await run.begin();
    for (const step of steps) await run.take("hours" in step ? { ...step, hours: 0 } : step);
    await run.audit();
  });
  try {
    await fc.assert(law, { ...seeded(12), endOnFailure: true });
  } finally {
    await storage.close();
  }
});

/** Replies to writes that come, and do not say what a customer service says: a gateway's 503, a proxy's page. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startDeployment as deployment, stopDeployments } from "./testing/deployment.ts";
import { compiledClient } from "./testing/executable.ts";
import * as faults from "./testing/faults.ts";

beforeAll(async () => void (await compiledClient()), 120_000);
afterAll(stopDeployments);

const ALWAYS = Number.POSITIVE_INFINITY;

describe.concurrent("503 without Retry-After", () => {
  test("503 to every write, nothing applied: not served, and nothing was written", async () => {
    const { server, update } = await deployment(
      faults.answerInstead(503, { which: "writes", times: ALWAYS }),
    );
    const { exitCode } = await update("--name", "Mine", "--max-attempts", "3");
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 7, writes: 0 });
  });

  test("503 to a creation that was made: not sent again", async () => {
    const { server, run } = await deployment(faults.answerAfterWrites(503));
    const { exitCode } = await run("create", "--name", "Eve", "--email", "eve@example.com");
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 8, writes: 1 });
  });
});

describe.concurrent("a proxy's page", () => {
  const page = {
    status: 200,
    headers: { "content-type": "text/html" },
    body: new TextEncoder().encode("<!doctype html><title>Sign on</title>"),
  };

  test("a page with 200 in place of the service's answer: not believed, read, and sent again", async () => {
    const { server, update, remove } = await deployment(
      faults.firstWrite((exchange) => exchange.answer(page)),
    );
    const { exitCode, stderr } = await update("--name", "Eve");
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 0, writes: 1 });
    expect(stderr).toContain("2 attempts, 0 conflicts");
    expect((await remove()).exitCode).toBe(0);
    expect(server.writes).toHaveLength(2);
  });

  test("a page with 200, and the write applied all the same: as wanted, and not claimed", async () => {
    for (const [args, code] of [
      [[], 0],
      [["--expect", "name=Ada"], 8],
    ] as const) {
      const { server, update } = await deployment(
        faults.firstWrite(async (exchange) => {
          await exchange.forward();
          exchange.answer(page);
        }),
      );
      const { exitCode, stderr } = await update("--name", "Eve", ...args);
      expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: code, writes: 1 });
      expect(stderr).toContain("can't be told");
    }
  });

  test("a page with 200 to every write: nothing came of it, which is said, and soon", async () => {
    const { server, proxy, update, run } = await deployment((exchange) =>
      exchange.isWrite ? exchange.answer(page) : faults.slow(0)(exchange),
    );
    const { exitCode, stderr } = await update("--name", "Eve");
    expect({ exitCode, writes: server.writes.length, sent: proxy?.writesSeen }).toEqual({
      exitCode: 1,
      writes: 0,
      sent: 3,
    });
    expect(stderr).toContain("200 with text/html");
    const created = await run("create", "--name", "Eve", "--email", "eve@example.com");
    expect(created.exitCode).toBe(8);
    expect(created.stderr).toContain("--idempotency-key");
  });
});

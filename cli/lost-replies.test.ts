/** Writes whose replies do not come, through the real program: never twice, never guessed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startDeployment as deployment, stopDeployments } from "./testing/deployment.ts";
import { OURS, UNLIKE_OURS } from "./testing/dialect.ts";
import { compiledClient } from "./testing/executable.ts";
import * as faults from "./testing/faults.ts";
import type { Fault } from "./testing/faulty-proxy.ts";

beforeAll(async () => void (await compiledClient()), 120_000);
afterAll(stopDeployments);

describe.concurrent("replies that do not come", () => {
  const lost: [string, Fault, Partial<{ dialect: typeof OURS; timeout: string }>?][] = [
    ["(c) the write is applied and the reply dropped", faults.dropReplies()],
    ["the same on a deployment unlike ours", faults.dropReplies(), { dialect: UNLIKE_OURS }],
    ["the write is applied and the gateway answers 502", faults.answerAfterWrites(502)],
    ["the write is applied and the gateway answers 504", faults.answerAfterWrites(504)],
    ["the write is applied and the server answers 500", faults.answerAfterWrites(500)],
    ["the write is applied and nothing is ever answered", faults.hangAfterWrites(), { timeout: "10" }],
    ["the write never arrives and nothing is ever answered", faults.hang(1, "writes"), { timeout: "10" }],
    ["a retrying proxy repeats the write and answers 412 to its own success", retrying()],
    ["(d) the request is dropped", faults.dropRequests()],
    ["the request is dropped three times", faults.dropRequests(3)],
    ["the reply to a read breaks off", faults.resetMidBody(1, "reads")],
  ];
  test.each(lost)(
    "%s: exit 0, one write, no false conflict",
    async (_, fault, { dialect = OURS, timeout = "60" } = {}) => {
      const { server, state, update } = await deployment(fault, dialect);
      const { exitCode, stderr } = await update(
        "--name",
        "Eve",
        "--on-conflict",
        "fail",
        "--timeout",
        timeout,
      );
      expect({ exitCode, writes: server.writes.length, name: state()?.name, stderr }).toMatchObject({
        exitCode: 0,
        writes: 1,
        name: "Eve",
      });
    },
  );

  test("404 to a write, though the customer is there: not taken for a deletion", async () => {
    const { update } = await deployment(faults.answerInstead(404, { which: "writes" }));
    const { exitCode, stderr } = await update("--status", "closed");
    expect(exitCode).toBe(1);
    expect(stderr).toContain("though the customer exists");
  });

  test("deleted by someone else before the write arrives: exit 4, and a deletion is done", async () => {
    const overtaken = async () => {
      const place = await deployment(
        faults.interfere(() => place.server.change(place.customer.id, "delete")),
      );
      return place;
    };
    expect((await (await overtaken()).update("--name", "Eve")).exitCode).toBe(4);
    const { remove, server } = await overtaken();
    const { exitCode, stderr } = await remove();
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 0, writes: 0 });
    expect(stderr).toContain("unchanged by this command");
  });

  test("a deletion whose reply is dropped is done, once", async () => {
    const { server, remove, state } = await deployment(faults.dropReplies());
    const { exitCode, stderr } = await remove();
    expect({ exitCode, writes: server.writes.length, state: state() }).toEqual({
      exitCode: 0,
      writes: 1,
      state: undefined,
    });
    expect(stderr).toContain("the reply was lost; confirmed by reading");
  });

  test("applied, lost, and changed again by someone else: exit 8 with merge, and the last word with reapply", async () => {
    const overtaken = () => deployment(afterLostReply(() => server.change(customer.id, { name: "Theirs" })));
    let { server, customer, state, update } = await overtaken();
    const merge = await update("--name", "Mine", "--on-conflict", "merge");
    expect(merge.exitCode).toBe(8);
    expect(merge.stderr).toContain("Running it again is safe");
    expect(state()?.name).toBe("Theirs");
    ({ server, customer, state, update } = await overtaken());
    expect((await update("--name", "Mine")).exitCode).toBe(0);
    expect(state()?.name).toBe("Mine");
  });

  test("a write that is lost while the server can't be read any more: exit 8, and safe to repeat", async () => {
    let gone = false;
    const { server, update } = await deployment(async (exchange) => {
      if (exchange.isWrite && !gone) {
        gone = true;
        await exchange.forward();
      }
      if (gone) exchange.cut();
      else exchange.answer(await exchange.forward());
    });
    const { exitCode, stderr } = await update("--name", "Eve", "--timeout", "6");
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 8, writes: 1 });
    expect(stderr).toContain("unknown outcome");
    expect(stderr).toContain("Running it again is safe");
  });
});

describe.each(["reapply", "merge", "fail"])("many writers on a bad network, %s", (mode) => {
  test("what each says of its write is what the server did", async () => {
    const { server, state, customer, update } = await deployment(badNetwork());
    const names = Array.from({ length: 10 }, (_, at) => `Writer ${at}`);
    const runs = await Promise.all(names.map((name) => update("--name", name, "--on-conflict", mode)));
    for (const [at, { exitCode, stderr }] of runs.entries()) {
      const accepted = server.writes.filter(
        ({ body }) => (body as { name: string }).name === names[at],
      ).length;
      const reported = new RegExp(`^customer ${customer.id} updated`, "m").test(stderr);
      const told = { exitCode, reported, accepted, stderr };
      if (exitCode === 0) expect(told).toMatchObject({ reported: true, accepted: expect.any(Number) });
      if (exitCode === 0) expect(accepted).toBeGreaterThanOrEqual(1);
      // Only "unknown" leaves it open; every other ending says that nothing was written, and nothing was.
      else if (exitCode !== 8) expect(told).toMatchObject({ reported: false, accepted: 0 });
      if (mode !== "reapply") expect(accepted).toBeLessThanOrEqual(1);
      expect([0, 5, 7, 8]).toContain(exitCode);
    }
    const last = server.writes.at(-1)?.body as { name: string } | undefined;
    expect(state()?.name).toBe(last?.name ?? "Ada");
  });
});

/** Each exchange goes wrong in one of eight ways, or passes: about every second one. */
function badNetwork(): Fault {
  const ways: Fault[] = [
    faults.dropReplies(ALWAYS),
    faults.dropRequests(ALWAYS, "all"),
    faults.answerAfterWrites(500, ALWAYS),
    faults.answerAfterWrites(504, ALWAYS),
    faults.answerInstead(502, { times: ALWAYS }),
    faults.answerInstead(503, { times: ALWAYS, retryAfter: 0 }),
    faults.answerInstead(429, { times: ALWAYS }),
    faults.resetMidBody(ALWAYS),
  ];
  const pass = faults.slow(0);
  return (exchange) => (ways[Math.floor(Math.random() * 2 * ways.length)] ?? pass)(exchange);
}

const ALWAYS = Number.POSITIVE_INFINITY;

/** Sends a write twice, as a proxy does that retries, and hands on the second answer. */
function retrying(): Fault {
  return async (exchange) => {
    if (exchange.isWrite) await exchange.forward();
    exchange.answer(await exchange.forward());
  };
}

/** The first write is applied, its reply lost, and then someone else writes. */
function afterLostReply(change: () => void): Fault {
  let left = 1;
  return async (exchange) => {
    if (!exchange.isWrite || left === 0) return exchange.answer(await exchange.forward());
    left = 0;
    await exchange.forward();
    change();
    exchange.cut();
  };
}

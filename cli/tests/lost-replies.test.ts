/** Writes whose replies do not come, through the real program: never twice, never guessed. */
import { afterAll, describe, expect, test } from "bun:test";
import { OURS, UNLIKE_OURS } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";
import type { Fault } from "./support/faulty-proxy.ts";
import { startDeployment as deployment, stopDeployments } from "./support/other-deployment.ts";

afterAll(stopDeployments);

test("a write that never arrives and is never answered: exit 8, sent once, and safe to repeat", async () => {
  const { server, proxy, state, update } = await deployment(faults.hang(1, "writes"));
  const { exitCode, stderr } = await update("--name", "Eve", "--timeout", "2");
  expect({ exitCode, sent: proxy?.writesSeen, name: state()?.name }).toEqual({
    exitCode: 8,
    sent: 1,
    name: "Ada",
  });
  expect(stderr).toContain("Running it again is safe");
  expect((await update("--name", "Eve")).exitCode).toBe(0);
  expect(server.writes).toHaveLength(1);
});

describe.concurrent("replies that do not come", () => {
  const lost: [string, Fault, Partial<{ dialect: typeof OURS; timeout: string }>?][] = [
    ["(c) the write is applied and the reply dropped", faults.dropReplies()],
    ["the same on a deployment unlike ours", faults.dropReplies(), { dialect: UNLIKE_OURS }],
    ["the write is applied and the gateway answers 502", faults.answerAfterWrites(502)],
    ["the write is applied and the gateway answers 503", faults.answerAfterWrites(503)],
    ["the write is applied and the gateway answers 504", faults.answerAfterWrites(504)],
    ["the write is applied and the server answers 500", faults.answerAfterWrites(500)],
    ["the write is applied and nothing is ever answered", faults.hangAfterWrites(), { timeout: "8" }],
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

  describe("an address that the server stores in lower case is found as our own write:", () => {
    const lowerCase = { ...OURS, storedEmail: (email: string) => email.toLowerCase() };
    const faulty: [string, () => Fault][] = [
      ["its reply is lost", faults.dropReplies],
      ["a retrying proxy repeats it and answers 412 to its own success", retrying],
    ];
    const modes = ["reapply", "merge", "fail"];
    test.each(faulty.flatMap(([words, fault]) => modes.map((mode) => [words, mode, fault] as const)))(
      "%s, --on-conflict %s",
      async (_, mode, fault) => {
        const { server, state, update } = await deployment(fault(), lowerCase);
        const { exitCode, stderr } = await update("--email", "Eve@Example.com", "--on-conflict", mode);
        expect({ exitCode, writes: server.writes.length, email: state()?.email, stderr }).toMatchObject({
          exitCode: 0,
          writes: 1,
          email: "eve@example.com",
          stderr: expect.not.stringContaining("overwrote"),
        });
      },
    );
  });

  test.each(["reapply", "merge"])(
    "a change of case alone is made, also where someone else wrote in between (%s)",
    async (mode) => {
      const { server, customer, state, update } = await deployment((exchange) => wrong(exchange));
      const wrong = faults.interfere(() => server.change(customer.id, { status: "suspended" }));
      const { exitCode } = await update("--email", "ADA@example.com", "--on-conflict", mode);
      expect({ exitCode, email: state()?.email }).toEqual({ exitCode: 0, email: "ADA@example.com" });
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
    expect(stderr).toContain("is as wanted; a write had no clear reply");
  });

  describe("what can't be known is not claimed: the state is as wanted, and", () => {
    // Another has the same wish: our request is lost, or our reply; a reading looks the same.
    const lostRequest = (change: () => void) =>
      faults.firstWrite((exchange) => {
        change();
        exchange.cut();
      });
    const lostReply = () => faults.dropReplies();
    const cases: [string, (change: () => void) => Fault, string[], number][] = [
      ["the request was lost", lostRequest, [], 0],
      ["the request was lost, --on-conflict fail", lostRequest, ["--on-conflict", "fail"], 0],
      ["the reply was lost", lostReply, [], 0],
      ["the request was lost, --expect", lostRequest, ["--expect", "name=Ada"], 8],
      [
        "the request was lost, --expect with merge",
        lostRequest,
        ["--expect", "name=Ada", "--on-conflict", "merge"],
        8,
      ],
      ["the reply was lost, --expect", lostReply, ["--expect", "name=Ada"], 8],
      ["the reply was lost, --expect of another field", lostReply, ["--expect", "status=active"], 0],
    ];
    test.each(cases)("%s", async (_, fault, args, code) => {
      const { server, customer, state, update } = await deployment((exchange) => wrong(exchange));
      const wrong = fault(() => server.change(customer.id, { name: "Mine" }));
      const { exitCode, stderr } = await update("--name", "Mine", ...args);
      expect({ exitCode, name: state()?.name, stderr }).toMatchObject({ exitCode: code, name: "Mine" });
      expect(stderr).not.toMatch(/^customer \S+ (?:not )?updated\b/m);
      expect(stderr).not.toContain("was not updated");
      expect(stderr).toContain(code === 0 ? "is not known" : "unknown outcome");
    });

    test.each([
      ["the reply was lost", () => faults.dropReplies(), 8],
      ["the request was lost", lostRequest, 8],
      ["the gateway answered 503 to an applied write", () => faults.answerAfterWrites(503), 8],
      ["503, nothing applied", () => faults.answerInstead(503, { which: "writes" }), 0],
    ])("%s, --if-match", async (_, fault: (change: () => void) => Fault, code) => {
      const { server, customer, update } = await deployment((exchange) => wrong(exchange));
      const wrong = fault(() => server.change(customer.id, { name: "Mine" }));
      const { exitCode } = await update("--name", "Mine", "--if-match", customer.tag);
      expect({ exitCode, writes: server.writes.length <= 1 }).toEqual({ exitCode: code, writes: true });
    });

    test("a deletion under a condition: exit 8 where a reply was lost, exit 4 where another was first", async () => {
      for (const condition of [["--expect", "name=Ada"], undefined]) {
        const lost = await deployment(faults.dropReplies());
        const args = condition ?? ["--if-match", lost.customer.tag];
        expect((await lost.remove(...args)).exitCode).toBe(8);
        const late = await deployment((exchange) => overtaken(exchange));
        const overtaken = faults.interfere(() => late.server.change(late.customer.id, "delete"));
        expect((await late.remove(...(condition ?? ["--if-match", late.customer.tag]))).exitCode).toBe(4);
      }
    });
  });

  test("applied, its reply lost, and then unreadable or gone: no line says that nothing was written", async () => {
    const deleted = await deployment((exchange) => wrong(exchange));
    const wrong = afterLostReply(() => deleted.server.change(deleted.customer.id, "delete"));
    const { exitCode, stderr } = await deleted.update("--name", "Eve");
    expect(exitCode).toBe(8);
    expect(stderr).toContain("it was deleted meanwhile");
    expect(stderr).toContain("whether it was updated is unknown");
    expect(stderr).not.toMatch(/not updated/);
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
      const reported = new RegExp(`^customer ${customer.id} (?:updated|is as wanted)`, "m").test(stderr);
      const said = { exitCode, reported, accepted, stderr };
      if (exitCode === 0) expect(said).toMatchObject({ reported: true, accepted: expect.any(Number) });
      if (exitCode === 0) expect(accepted).toBeGreaterThanOrEqual(1);
      // Only "unknown" leaves it open; every other ending says that nothing was written, and nothing was.
      else if (exitCode !== 8) expect(said).toMatchObject({ reported: false, accepted: 0 });
      if (mode !== "reapply") expect(accepted).toBeLessThanOrEqual(1);
      expect([0, 5, 7, 8]).toContain(exitCode);
    }
    const last = server.writes.at(-1)?.body as { name: string } | undefined;
    expect(state()?.name).toBe(last?.name ?? "Ada");
  });
});

test("many who claim with --expect on a bad network: one write at most, and no two exits 0", async () => {
  const { server, update } = await deployment(badNetwork());
  const claim = ["--status", "closed", "--expect", "status=active"];
  const runs = await Promise.all(Array.from({ length: 12 }, () => update(...claim)));
  const winners = runs.filter(({ exitCode }) => exitCode === 0);
  expect(server.writes.length).toBeLessThanOrEqual(1);
  expect(winners.length).toBeLessThanOrEqual(server.writes.length);
  for (const { exitCode, stderr } of runs) {
    expect([0, 5, 7, 8]).toContain(exitCode);
    if (exitCode === 0) expect(stderr).toMatch(/^customer \S+ updated\b/m);
  }
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

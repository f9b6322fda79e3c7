/** The conflict loop through the real program: child processes, a sound server, and faults in between. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { runClient } from "./testing/client.ts";
import { startCustomerServer } from "./testing/customer-server.ts";
import { OURS, TOKEN, UNLIKE_OURS } from "./testing/dialect.ts";
import { compiledClient } from "./testing/executable.ts";
import * as faults from "./testing/faults.ts";
import { type Fault, startFaultyProxy } from "./testing/faulty-proxy.ts";

let command: string[];
beforeAll(async () => {
  command = [await compiledClient()];
}, 120_000);

const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

async function deployment(fault?: Fault, dialect = OURS) {
  const server = startCustomerServer(dialect);
  stops.push(server.stop);
  const customer = server.add({ name: "Ada", email: "ada@example.com", status: "active" });
  const proxy = fault === undefined ? undefined : await startFaultyProxy(server.url, fault);
  if (proxy !== undefined) stops.push(proxy.stop);
  const { header, value } = dialect.credentials;
  const credentials = header === "authorization" ? [] : ["--header-env", `${header}: $KEY`];
  const env = { CUSTOMERS_URL: proxy?.url ?? server.url, CUSTOMERS_TOKEN: TOKEN, KEY: value };
  const update = (...args: string[]) =>
    runClient([...credentials, "update", customer.id, ...args], { env, command });
  const remove = (...args: string[]) =>
    runClient([...credentials, "delete", customer.id, "--yes", ...args], { env, command });
  const state = () => server.read(customer.id);
  return { server, proxy, customer, env, update, remove, state };
}

/** What a run that reports a write says on stderr. */
const REPORTS_A_WRITE = /^customer \S+ updated\b/m;

describe("(a) writers of different fields", () => {
  test("all succeed and nobody's change is lost", async () => {
    const { server, state, update } = await deployment();
    const rounds = 20;
    const writer = async (value: (round: number) => string[]) => {
      const exits: number[] = [];
      for (let round = 1; round <= rounds; round += 1) exits.push((await update(...value(round))).exitCode);
      return exits;
    };
    const exits = await Promise.all([
      writer((round) => ["--name", `Name ${round}`]),
      writer((round) => ["--email", `round${round}@example.com`]),
      writer((round) => ["--status", round % 2 === 0 ? "closed" : "suspended"]),
    ]);
    expect(exits.flat()).toEqual(new Array(3 * rounds).fill(0));
    expect(state()).toMatchObject({
      name: `Name ${rounds}`,
      email: `round${rounds}@example.com`,
      status: "closed",
    });
    expect(server.writes).toHaveLength(3 * rounds);
  }, 120_000);
});

describe("(b) twenty writers of the same field", () => {
  test("reapply: all exit 0, and as many writes were accepted as were reported", async () => {
    const { server, state, update } = await deployment();
    const names = Array.from({ length: 20 }, (_, at) => `Writer ${at}`);
    const runs = await Promise.all(names.map((name) => update("--name", name, "--on-conflict", "reapply")));
    expect(runs.map(({ exitCode }) => exitCode)).toEqual(names.map(() => 0));
    expect(names).toContain(state()?.name ?? "");
    expect(runs.filter(({ stderr }) => REPORTS_A_WRITE.test(stderr))).toHaveLength(server.writes.length);
  });

  test("merge: who comes too late exits 5 and shows base, theirs and mine", async () => {
    const { server, state, update } = await deployment();
    const names = Array.from({ length: 8 }, (_, at) => `Writer ${at}`);
    const runs = await Promise.all(names.map((name) => update("--name", name, "--on-conflict", "merge")));
    const lost = runs.filter(({ exitCode }) => exitCode === 5);
    const won = runs.filter(({ exitCode }) => exitCode === 0);
    expect(won.length + lost.length).toBe(names.length);
    expect(server.writes).toHaveLength(won.length);
    expect(names).toContain(state()?.name ?? "");
    for (const { stderr } of lost) {
      expect(stderr).toMatch(/^ {2}name\n {4}base: {3}".+"\n {4}theirs: ".+"\n {4}mine: {3}"Writer \d"$/m);
    }
  });

  test("merge: a change of another field is kept and the write goes through", async () => {
    const { server, customer, state, update } = await deployment(
      faults.interfere(() => server.change(customer.id, { email: "new@example.com" })),
    );
    const { exitCode } = await update("--name", "Eve", "--on-conflict", "merge");
    expect({ exitCode, state: state() }).toMatchObject({
      exitCode: 0,
      state: { name: "Eve", email: "new@example.com" },
    });
  });

  test("fail: the first 412 is looked at once, then it stops", async () => {
    const { server, customer, proxy, update } = await deployment(
      faults.interfere(() => server.change(customer.id, { email: "new@example.com" })),
    );
    const { exitCode, stderr } = await update("--name", "Eve", "--on-conflict", "fail");
    expect({ exitCode, writes: server.writes.length, seen: proxy?.seen }).toEqual({
      exitCode: 5,
      writes: 0,
      seen: 3,
    });
    expect(stderr).toContain("--on-conflict fail");
  });
});

describe.concurrent("replies that do not come", () => {
  const lost: [string, Fault, Partial<{ dialect: typeof OURS }>?][] = [
    ["(c) the write is applied and the reply dropped", faults.dropReplies()],
    ["the same on a deployment unlike ours", faults.dropReplies(), { dialect: UNLIKE_OURS }],
    ["the write is applied and the gateway answers 502", faults.answerAfterWrites(502)],
    ["the write is applied and the gateway answers 504", faults.answerAfterWrites(504)],
    ["the write is applied and the server answers 500", faults.answerAfterWrites(500)],
    ["the write is applied and nothing is ever answered", faults.hangAfterWrites()],
    ["a retrying proxy repeats the write and answers 412 to its own success", retrying()],
    ["(d) the request is dropped", faults.dropRequests()],
    ["the request is dropped three times", faults.dropRequests(3)],
    ["the reply to a read breaks off", faults.resetMidBody(1, "reads")],
  ];
  test.each(lost)("%s: exit 0, one write, no false conflict", async (_, fault, { dialect = OURS } = {}) => {
    const { server, state, update } = await deployment(fault, dialect);
    const { exitCode, stderr } = await update("--name", "Eve", "--on-conflict", "fail", "--timeout", "4");
    expect({ exitCode, writes: server.writes.length, name: state()?.name, stderr }).toMatchObject({
      exitCode: 0,
      writes: 1,
      name: "Eve",
    });
  });

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
    const { exitCode, stderr } = await update("--name", "Eve", "--timeout", "3");
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 8, writes: 1 });
    expect(stderr).toContain("unknown outcome");
    expect(stderr).toContain("Running it again is safe");
  });
});

describe("tags", () => {
  test.each([
    ["(e) weakened", faults.weakenTags(), "weak"],
    ["stripped", faults.stripTags(), "without an entity-tag"],
    ["mangled", faults.changeTags((tag) => tag.replaceAll('"', "")), "no entity-tag"],
  ])("%s by a proxy: stops at once and explains", async (_, fault, words) => {
    const { server, proxy, update } = await deployment(fault);
    const { exitCode, stderr } = await update("--name", "Eve");
    expect({ exitCode, writes: server.writes.length, sent: proxy?.writesSeen, reads: proxy?.seen }).toEqual({
      exitCode: 1,
      writes: 0,
      sent: 0,
      reads: 1,
    });
    expect(stderr).toContain(words);
    expect(stderr).toMatch(/proxy/i);
  });

  test("a proxy that compresses for whoever accepts it leaves the tag of this client strong", async () => {
    const { update } = await deployment(faults.weakenTagsOfCompressed());
    expect((await update("--name", "Eve")).exitCode).toBe(0);
  });

  test("with commas, slashes and blanks inside the quotes are sent back byte for byte", async () => {
    const { server, customer, update } = await deployment(undefined, UNLIKE_OURS);
    const { exitCode, stderr } = await update("--name", "Eve", "--verbose");
    expect(exitCode).toBe(0);
    expect(server.writes).toMatchObject([{ method: "PUT", ifMatch: customer.tag }]);
    // In the deployment's own spelling, and nothing but what PUT takes.
    expect(stderr).toContain('{"Email":"ada@example.com","Name":"Eve"}');
  });
});

describe.concurrent("(f) 412 for ever", () => {
  test.each([
    ["gives up at its attempts", ["--max-attempts", "3"], 3],
    ["gives up at its time-out", ["--timeout", "2500ms"], undefined],
  ])("%s: exit 5, and says so", async (_, args, attempts) => {
    const { server, proxy, update } = await deployment(faults.staleForEver());
    const { exitCode, stderr } = await update("--name", "Eve", ...args);
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 5, writes: 0 });
    if (attempts !== undefined) expect(proxy?.writesSeen).toBe(attempts);
    expect(stderr).toMatch(/refused \(412\), and (?:--max-attempts 3 is reached|the time is up)/);
    expect(stderr).toContain("the very tag that it still shows");
  });
});

describe.concurrent("(g) 429 and 503", () => {
  const soon = () => new Date(Date.now() + 1000);
  test.each([
    ["429 in seconds", () => faults.answerInstead(429, { which: "writes", retryAfter: 1 })],
    ["503 in seconds", () => faults.answerInstead(503, { which: "writes", retryAfter: 1 })],
    ["429 as a date", () => faults.answerInstead(429, { which: "writes", retryAfter: soon() })],
    ["503 as a date", () => faults.answerInstead(503, { which: "writes", retryAfter: soon() })],
    ["503 to the read", () => faults.answerInstead(503, { which: "reads", retryAfter: 1 })],
    ["503 without Retry-After", () => faults.answerInstead(503, { times: 2, which: "writes" })],
  ])("%s: waits, then writes once", async (_, fault) => {
    const { server, update } = await deployment(fault());
    expect((await update("--name", "Eve")).exitCode).toBe(0);
    expect(server.writes).toHaveLength(1);
  });

  test("a wait beyond the time-out is not begun: exit 7, nothing written", async () => {
    const { server, proxy, update } = await deployment(
      faults.answerInstead(503, { which: "writes", retryAfter: 3600 }),
    );
    const { exitCode } = await update("--name", "Eve");
    expect({ exitCode, writes: server.writes.length, sent: proxy?.writesSeen }).toEqual({
      exitCode: 7,
      writes: 0,
      sent: 1,
    });
  });
});

describe("what the operator pins", () => {
  test("--if-match: one write with that tag, no second reading, no retry", async () => {
    const { server, customer, proxy, update } = await deployment(
      faults.interfere(() => server.change(customer.id, { status: "closed" })),
    );
    const { exitCode, stderr } = await update("--name", "Eve", "--if-match", customer.tag);
    expect({ exitCode, writes: server.writes.length, seen: proxy?.seen }).toEqual({
      exitCode: 5,
      writes: 0,
      seen: 2,
    });
    expect(stderr).toContain(customer.tag);
  });

  test("--if-match of an older version: exit 5, the newer one stays", async () => {
    const { server, customer, update, state } = await deployment();
    server.change(customer.id, { email: "new@example.com" });
    expect((await update("--name", "Eve", "--if-match", customer.tag)).exitCode).toBe(5);
    expect((await update("--status", "closed", "--if-match", customer.tag)).exitCode).toBe(5);
    expect(state()).toMatchObject({ name: "Ada", email: "new@example.com", status: "active" });
    expect(server.writes).toHaveLength(0);
  });

  test.each([
    ["", "empty"],
    ['W/"x"', "weak"],
    ["abc", "double quotes"],
  ])("--if-match %p is refused, not dropped", async (tag, words) => {
    const { server, update } = await deployment();
    const { exitCode, stderr } = await update("--name", "Eve", "--if-match", tag);
    expect({ exitCode, requests: server.requests.length }).toEqual({ exitCode: 2, requests: 0 });
    expect(stderr).toContain(words);
  });

  test("--expect is checked after every read: of many, one wins", async () => {
    const { server, update } = await deployment();
    const runs = await Promise.all(
      [1, 2, 3, 4, 5].map((at) => update("--name", `Writer ${at}`, "--expect", "name=Ada")),
    );
    expect(runs.map(({ exitCode }) => exitCode).sort()).toEqual([0, 5, 5, 5, 5]);
    expect(server.writes).toHaveLength(1);
  });

  test("nothing to change: nothing is sent, and it says so", async () => {
    const { server, proxy, update } = await deployment(faults.slow(0));
    const { exitCode, stderr } = await update("--name", "Ada");
    expect({ exitCode, seen: proxy?.seen, writes: server.writes.length }).toEqual({
      exitCode: 0,
      seen: 1,
      writes: 0,
    });
    expect(stderr).toContain("nothing was sent");
  });

  test("--dry-run shows the request and the change, and writes nothing", async () => {
    const { server, customer, update } = await deployment();
    const { exitCode, stdout } = await update("--name", "Eve", "--dry-run", "-o", "table");
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 0, writes: 0 });
    expect(stdout).toContain(`if-match: ${customer.tag}`);
    expect(stdout).toContain('name: "Ada" -> "Eve"');
    expect(stdout).not.toContain(TOKEN);
  });
});

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

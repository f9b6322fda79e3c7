/** The conflict loop through the real program: many processes, spoiled tags, refusals, pins. */
import { afterAll, describe, expect, test } from "bun:test";
import { TOKEN, UNLIKE_OURS } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";
import { startDeployment as deployment, stopDeployments } from "./support/other-deployment.ts";

afterAll(stopDeployments);

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
  });
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

  test("changed by a proxy on every reply: stops after a few refusals that contradict themselves", async () => {
    const { server, proxy, update } = await deployment(faults.suffixTags());
    const { exitCode, stderr } = await update("--name", "Eve");
    expect({ exitCode, writes: server.writes.length, sent: proxy?.writesSeen }).toEqual({
      exitCode: 5,
      writes: 0,
      sent: 3,
    });
    expect(stderr).toContain("the very tag that it still shows");
  });

  test("a proxy that compresses for clients that accept it leaves the tag of this client strong", async () => {
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

describe.concurrent("(f) 412 forever", () => {
  test.each([
    [
      "gives up at its attempts",
      ["--max-attempts", "3"],
      faults.staleForEver,
      3,
      /refused \(412\) in 3 of 3 attempts, and --max-attempts 3 is reached/,
      "the very tag that it still shows",
    ],
    // In a reading: a write that is under way when the time ends may have been applied, which is exit 8.
    [
      "gives up at its time-out",
      ["--timeout", "4"],
      faults.staleThenSilent,
      2,
      /refused \(412\) in 2 of 2 attempts, and .*could not be read/,
      // Nothing shows which tag it has now: the hint is about the reading.
      "Give it more time with --timeout, or see what holds the server up.",
    ],
  ] as const)("%s: exit 5, and says so", async (_, args, fault, attempts, says, hint) => {
    const { server, proxy, update } = await deployment(fault());
    const { exitCode, stderr } = await update("--name", "Eve", ...args);
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 5, writes: 0 });
    expect(proxy?.writesSeen).toBe(attempts);
    expect(stderr).toMatch(says);
    expect(stderr).toContain(hint);
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

test("a deployment that takes no merge-patch+json gets the same patch as plain JSON", async () => {
  const { server, state, update } = await deployment(async (exchange) => {
    const unknownType = exchange.headers["content-type"] === "application/merge-patch+json";
    exchange.answer(
      unknownType ? { status: 415, headers: {}, body: new Uint8Array() } : await exchange.forward(),
    );
  });
  const { exitCode, stderr } = await update("--status", "closed");
  expect({ exitCode, writes: server.writes.length, status: state()?.status, stderr }).toMatchObject({
    exitCode: 0,
    writes: 1,
    status: "closed",
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
    const { exitCode, stderr } = await update("--name", "Eve", "--if-match", customer.tag, "-o", "json");
    expect(exitCode).toBe(5);
    expect(stderr).toContain(`version ${JSON.stringify(customer.tag).slice(1, -1)} that --if-match names`);
    expect((await update("--status", "closed", "--if-match", customer.tag)).exitCode).toBe(5);
    expect(state()).toMatchObject({ name: "Ada", email: "new@example.com", status: "active" });
    expect(server.writes).toHaveLength(0);
  });

  test.each([
    ["", "empty"],
    ['W/"x"', "weak"],
    ["abc", "double quotes"],
    ['"a", "b"', "It is a list"],
  ])("--if-match %p is refused, not dropped", async (tag, words) => {
    const { server, update } = await deployment();
    const { exitCode, stderr } = await update("--name", "Eve", "--if-match", tag);
    expect({ exitCode, requests: server.requests.length }).toEqual({ exitCode: 2, requests: 0 });
    expect(stderr).toContain(words);
  });

  test.each(["reapply", "merge"])("--if-match with --on-conflict %s is refused", async (mode) => {
    const { server, customer, update, remove } = await deployment();
    const both = ["--if-match", customer.tag, "--on-conflict", mode];
    expect((await update("--name", "Eve", ...both)).exitCode).toBe(2);
    expect((await remove(...both)).exitCode).toBe(2);
    expect(server.requests).toHaveLength(0);
  });

  test("--expect is checked after every read: of many, one wins", async () => {
    const { server, update } = await deployment();
    const runs = await Promise.all(
      [1, 2, 3, 4, 5].map((at) => update("--name", `Writer ${at}`, "--expect", "name=Ada")),
    );
    expect(runs.map(({ exitCode }) => exitCode).sort()).toEqual([0, 5, 5, 5, 5]);
    expect(server.writes).toHaveLength(1);
  });

  test.each(["reapply", "merge", "fail"])(
    "--expect is a claim, %s: of many who want the same value, one alone exits 0",
    async (mode) => {
      const { server, update } = await deployment();
      const claim = ["--status", "closed", "--expect", "status=active", "--on-conflict", mode];
      const runs = await Promise.all(Array.from({ length: 12 }, () => update(...claim)));
      const exits = runs.map(({ exitCode }) => exitCode).sort((a, b) => a - b);
      expect(exits).toEqual([0, ...new Array(11).fill(5)]);
      expect(server.writes).toHaveLength(1);
    },
  );

  test.each(["reapply", "merge", "fail"])(
    "--expect, %s: refused, and the value set by someone else meanwhile is exit 5",
    async (mode) => {
      const { server, customer, proxy, update } = await deployment(
        faults.interfere(() => server.change(customer.id, { name: "Eve" })),
      );
      const { exitCode, stderr } = await update(
        "--name",
        "Eve",
        "--expect",
        "name=Ada",
        "--on-conflict",
        mode,
      );
      expect({ exitCode, writes: server.writes.length, sent: proxy?.writesSeen }).toEqual({
        exitCode: 5,
        writes: 0,
        sent: 1,
      });
      expect(stderr).toContain('expected to be "Ada" and is now "Eve"');
    },
  );

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

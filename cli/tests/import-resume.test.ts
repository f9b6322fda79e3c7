import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { bulkPlace, csv, namesOf, stopBulkPlaces } from "./support/bulk-place.ts";
import { NOBODY_THERE } from "./support/client.ts";
import { OURS } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";
import type { Fault } from "./support/faulty-proxy.ts";

afterAll(stopBulkPlaces);

describe("an import that stops", () => {
  test("by kill -9 half-way goes on by row: every row once, created ones too", async () => {
    const { server, directory, file, env, through, customers, start } = await bulkPlace();
    const updated = Array.from({ length: 100 }, (_, at) => server.add({ name: `Old ${at}` }));
    const rows = [
      ...updated.map(({ id }, at) => `${id},New ${at},`),
      ...Array.from({ length: 300 }, (_, at) => `,Created ${at},c${at}@example.com`),
    ];
    const path = file("in.csv", csv(["id,name,email", ...rows]));
    let child: ReturnType<typeof start> | undefined;
    let writes = 0;
    const forwarded: Promise<unknown>[] = [];
    const { env: killing } = await through(async (exchange) => {
      const forwarding = exchange.forward();
      forwarded.push(forwarding);
      const reply = await forwarding;
      if (exchange.isWrite) writes += 1;
      // Some of these were applied and not answered, as with every real death.
      if (writes >= 150) child?.kill("SIGKILL");
      else exchange.answer(reply);
    });
    child = start(["import", path, "--concurrency", "8"], { env: killing });
    expect(await child.exited).toBe(137);
    await Promise.all(forwarded);
    const before = server.writes.length;
    expect(before).toBeGreaterThanOrEqual(150);
    expect(before).toBeLessThan(400);

    const refused = await customers(["import", path], { env });
    expect([refused.exitCode, refused.stderr.includes("--resume"), server.writes.length]).toEqual([
      2,
      true,
      before,
    ]);
    const elsewhere = await customers(["import", path, "--resume"], { env });
    expect([elsewhere.exitCode, elsewhere.stderr.includes(killing.CUSTOMERS_URL)]).toEqual([2, true]);

    // The same address as before: the journal belongs to one deployment.
    const proxyEnv = killing;
    child = undefined;
    writes = Number.NEGATIVE_INFINITY;
    const resumed = await customers(["import", path, "--resume"], { env: proxyEnv });
    expect([resumed.exitCode, resumed.stderr]).toEqual([0, expect.stringContaining("400 rows: 300 created")]);
    expect(server.writes).toHaveLength(400);
    expect(new Set(namesOf(server.all())).size).toBe(400);
    expect(server.size).toBe(400);
    const again = await customers(["import", path, "--resume"], { env: proxyEnv });
    expect([again.exitCode, server.writes.length]).toEqual([0, 400]);
    expect(readdirSync(directory).toSorted()).toEqual(["in.csv", "in.csv.journal"]);
  });

  test("because a reply to a creation was lost says so, and --resume creates it once", async () => {
    const { server, file, through, customers } = await bulkPlace();
    const { env } = await through(faults.dropReplies());
    const path = file("in.csv", csv(["name,email", "A,a@example.com", "B,b@example.com"]));
    const url = env.CUSTOMERS_URL;
    const run = await customers(["import", path, "--url", url], { env });
    expect(run.exitCode).toBe(8);
    expect(run.stderr).toContain(`customers import ${path} --url ${url} --resume`);
    const resumed = await customers(["import", path, "--resume"], { env });
    expect([resumed.exitCode, resumed.stderr.includes("had been sent before")]).toEqual([0, false]);
    expect(namesOf(server.all()).toSorted()).toEqual(["A", "B"]);
  });

  test("tells which rows may exist twice where the deployment ignores Idempotency-Key", async () => {
    const { server, file, through, customers } = await bulkPlace({ ...OURS, idempotencyKeys: false });
    const { env } = await through(faults.dropReplies());
    const path = file("in.csv", csv(["name,email", "A,a@example.com", "B,b@example.com"]));
    await customers(["import", path, "--concurrency", "1"], { env });
    for (const _ of ["the next run", "and every later one"]) {
      const { exitCode, stdout, stderr } = await customers(["import", path, "--resume", "-o", "ndjson"], {
        env,
      });
      expect([exitCode, server.size]).toEqual([8, 3]);
      expect(JSON.parse(stdout)).toMatchObject({ created: 2, perhapsTwice: 1, failed: 0, left: 0 });
      expect(stderr).toContain("2 created (1 perhaps twice)");
      expect(JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({
        exitCode: 8,
        message: expect.stringContaining("1 row had been sent before without a reply"),
        hint: expect.stringContaining("may exist twice"),
      });
    }
  });

  test("tells so also where others failed, and keeps their file", async () => {
    const { server, directory, file, through, customers } = await bulkPlace({
      ...OURS,
      idempotencyKeys: false,
    });
    const { env } = await through(faults.dropReplies());
    const path = file("in.csv", csv(["name,email", "A,a@example.com", "Bad,no address"]));
    await customers(["import", path, "--concurrency", "1"], { env });
    const { exitCode, stderr } = await customers(["import", path, "--resume"], { env });
    expect([exitCode, server.size, existsSync(join(directory, "in.failed.csv"))]).toEqual([8, 2, true]);
    expect(stderr).toContain("Idempotency-Key: row 1\n");
    expect(stderr).toContain("1 of 2 rows failed");
  });

  test("does not say so of rows that the server refused", async () => {
    const { server, file, env, customers } = await bulkPlace({ ...OURS, idempotencyKeys: false });
    const path = file("in.csv", csv(["name,email", "A,a@example.com", "B,b@example.com"]));
    const refused = await customers(["import", path], { env: { ...env, CUSTOMERS_TOKEN: "cst_wrong" } });
    expect(refused.exitCode).toBe(3);
    const { exitCode, stderr } = await customers(["import", path, "--resume"], { env });
    expect([exitCode, server.size]).toEqual([0, 2]);
    expect(stderr).not.toContain("had been sent before");
  });

  test("by kill -9 with many rows in work: every row that was made twice is reported, where keys are ignored", async () => {
    const { server, file, through, customers, start } = await bulkPlace({ ...OURS, idempotencyKeys: false });
    const path = file(
      "in.csv",
      csv(["name,email", ...Array.from({ length: 300 }, (_, at) => `Row ${at + 1},c${at}@example.com`)]),
    );
    let child: ReturnType<typeof start> | undefined;
    const forwarded: Promise<unknown>[] = [];
    const { env } = await through(async (exchange) => {
      const forwarding = exchange.forward();
      forwarded.push(forwarding);
      const reply = await forwarding;
      if (forwarded.length >= 150) child?.kill("SIGKILL");
      exchange.answer(reply);
    });
    child = start(["import", path, "--concurrency", "64"], { env });
    expect(await child.exited).toBe(137);
    child = undefined;
    await Promise.all(forwarded);
    const { exitCode, stderr } = await customers(["import", path, "--resume"], { env });
    expect(exitCode).toBe(8);
    const names = namesOf(server.all());
    expect(new Set(names).size).toBe(300);
    const twice = names.filter((name, at) => names.indexOf(name) !== at).map((name) => Number(name.slice(4)));
    const told = (/Idempotency-Key: row (.*)/.exec(stderr)?.[1] ?? "").split(", ").map(Number);
    expect(twice.length).toBeGreaterThan(0);
    expect(twice.filter((row) => !told.includes(row))).toEqual([]);
  });

  test("because the journal can't grow sends nothing that it does not know of, and goes on by row", async () => {
    const { server, file, env, command, customers } = await bulkPlace();
    const rows = Array.from({ length: 500 }, (_, at) => `Row ${at},c${at}@example.com`);
    const path = file("in.csv", csv(["name,email", ...rows]));
    // A full disk, for this process: at most 40 KiB a file.
    const limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 80; exec "$@"', "sh", ...command];
    const broken = await customers(["import", path], { command: limited });
    expect([broken.exitCode, broken.stderr]).toEqual([8, expect.stringContaining("the import broke off")]);
    expect(broken.stderr).toMatch(/what became of \d+ rows? that (?:was|were) sent is not kept/);
    expect(broken.stderr).toContain(`customers import ${path} --resume`);
    expect(server.size).toBeLessThan(500);
    const resumed = await customers(["import", path, "--resume"], { env });
    expect([resumed.exitCode, resumed.stderr]).toEqual([0, expect.stringContaining("500 created")]);
    expect([server.size, new Set(namesOf(server.all())).size]).toEqual([500, 500]);
  });

  test("again and again: what earlier runs sent twice is named at the end, too", async () => {
    const { server, file, through, customers } = await bulkPlace({ ...OURS, idempotencyKeys: false });
    const { env } = await through(faults.dropReplies(2));
    const path = file("in.csv", csv(["name,email", "A,a@example.com", "B,b@example.com", "C,c@example.com"]));
    const run = (...more: string[]) => customers(["import", path, "--concurrency", "1", ...more], { env });
    // Both A and B are sent and not answered; then A is sent again before the import is interrupted at B.
    expect((await run()).exitCode).toBe(8);
    const { exitCode, stderr } = await run("--resume");
    expect([exitCode, server.size]).toEqual([8, 5]);
    expect(stderr).toContain("2 rows had been sent before");
    // The journal knows it from then on.
    expect((await run("--resume")).stderr).toContain("Idempotency-Key: row 1, 2\n");
  });

  test("because the server is gone leaves the rest for --resume, and no row failed", async () => {
    const { server, directory, file, env, customers } = await bulkPlace();
    const path = file(
      "in.csv",
      csv(["name,email", ...Array.from({ length: 50 }, (_, at) => `N${at},n@example.com`)]),
    );
    const run = await customers(["import", path, "--timeout", "1"], {
      env: { ...env, CUSTOMERS_URL: NOBODY_THERE },
    });
    expect([run.exitCode, server.size]).toEqual([7, 0]);
    expect(run.stderr).toContain("50 rows not done yet");
    expect(existsSync(join(directory, "in.failed.csv"))).toBe(false);
  });

  test("because the credentials are refused stops at once, with exit 3", async () => {
    const { server, file, env, customers } = await bulkPlace();
    const path = file(
      "in.csv",
      csv(["name,email", ...Array.from({ length: 500 }, (_, at) => `N${at},n@example.com`)]),
    );
    const run = await customers(["import", path], { env: { ...env, CUSTOMERS_TOKEN: "cst_wrong" } });
    expect(run.exitCode).toBe(3);
    expect(server.requests.length).toBeLessThan(100);
    expect((await customers(["import", path, "--resume"], { env })).exitCode).toBe(0);
    expect(server.size).toBe(500);
  });

  test("by Ctrl-C ends with 130 and goes on with --resume", async () => {
    const { server, file, through, customers, start } = await bulkPlace();
    const path = file(
      "in.csv",
      csv(["name,email", ...Array.from({ length: 200 }, (_, at) => `N${at},n@example.com`)]),
    );
    let child: ReturnType<typeof start> | undefined;
    const { env, proxy } = await through(async (exchange) => {
      if (proxy.writesSeen === 60) child?.kill("SIGINT");
      exchange.answer(await exchange.forward());
    });
    child = start(["import", path, "--concurrency", "4"], { env });
    const [stderr, exitCode] = [await child.stderr.text(), await child.exited];
    expect([exitCode, stderr.includes("--resume")]).toEqual([130, true]);
    expect(server.size).toBeLessThan(200);
    expect((await customers(["import", path, "--resume"], { env })).exitCode).toBe(0);
    expect([server.size, new Set(namesOf(server.all())).size]).toEqual([200, 200]);
  });

  test("does not go on with a file that has changed", async () => {
    const { server, file, env, customers } = await bulkPlace();
    const path = file("in.csv", csv(["name,email", "A,a@example.com", "B,b@example.com"]));
    await customers(["import", path], { env });
    file("in.csv", csv(["name,email", "A,a@example.com", "C,c@example.com"]));
    const run = await customers(["import", path, "--resume"], { env });
    expect([run.exitCode, server.size]).toEqual([2, 2]);
    expect(run.stderr).toContain("row 2 (line 3) differs");
    expect((await customers(["import", path, "--again"], { env })).exitCode).toBe(0);
    expect(server.size).toBe(4);
  });

  const begun = csv(["name,email", "A,a@example.com", "B,b@example.com", "C,c@example.com"]);
  test.each([
    ["a row that was not sent yet is changed", begun.replace("C,", "D,"), "not sent yet differs"],
    ["a row is added", `${begun}D,d@example.com\n`, "it had 3 rows and has 4 now"],
    ["a row is missing", begun.replace("C,c@example.com\n", ""), "it had 3 rows and has 2 now"],
    ["a row is put in", begun.replace("C,", "D,d@example.com\nC,"), "it had 3 rows and has 4 now"],
    ["a column has another name", begun.replace("name,email", "email,name"), "not sent yet differs"],
  ])("does not go on where %s", async (_, content, words) => {
    const { server, file, env, customers } = await bulkPlace();
    const path = file("in.csv", begun);
    const refused = await customers(["import", path, "--concurrency", "1"], {
      env: { ...env, CUSTOMERS_TOKEN: "cst_wrong" },
    });
    expect(refused.exitCode).toBe(3);
    file("in.csv", content);
    const changed = await customers(["import", path, "--resume"]);
    expect([changed.exitCode, server.size]).toEqual([2, 0]);
    expect(changed.stderr).toContain(words);
    expect(changed.stderr).toContain("--restart");
    // Other quotes and line ends are no other rows; neither does the journal know what stdin is called.
    const same = begun.replace("A,", '"A",').replaceAll("\n", "\r\n");
    const again = await customers(["import", "-", "--journal", `${path}.journal`, "--resume"], {
      stdin: same,
    });
    expect([again.exitCode, namesOf(server.all())]).toEqual([0, ["A", "B", "C"]]);
  });

  test("keeps a second import of the same file out while it runs", async () => {
    const { file, env, through, customers, start } = await bulkPlace();
    const path = file("in.csv", csv(["name,email", "A,a@example.com"]));
    const arrived = Promise.withResolvers<void>();
    const { env: hanging } = await through(() => arrived.resolve());
    const first = start(["import", path], { env: hanging });
    await arrived.promise;
    const second = await customers(["import", path], { env });
    first.kill("SIGKILL");
    await first.exited;
    expect([second.exitCode, second.stderr.includes("by another process")]).toEqual([2, true]);
  });
});

describe("a creation without an answer of the service is undecided until one comes, and never fails", () => {
  const page = { "content-type": "text/html" };
  const json = { "content-type": "application/json" };
  test.each<[string, number, Record<string, string>, string]>([
    ["500", 500, {}, ""],
    ["501", 501, {}, ""],
    ["505", 505, {}, ""],
    ["599", 599, {}, ""],
    ["a page with 200", 200, page, "<p>ok"],
    ["a notice with 200", 200, json, '{"ok":true}'],
    ["202", 202, {}, ""],
    ["207", 207, json, "{}"],
    ["301", 301, { location: "/login" }, ""],
    ["304", 304, {}, ""],
    ["499", 499, {}, ""],
    ["409 about the key", 409, json, '{"title":"A request is outstanding for this Idempotency-Key"}'],
  ])("%s to every sending, though it was applied", async (_, status, headers, text) => {
    const { server, directory, file, through, customers } = await bulkPlace();
    let lies = true;
    const { env } = await through(async (exchange) => {
      const reply = await exchange.forward();
      exchange.answer(exchange.isWrite && lies ? { status, headers, body: Buffer.from(text) } : reply);
    });
    const path = file("in.csv", csv(["name,email", "A,a@example.com", "Bad,no address"]));
    for (const more of [[], ["--resume"], ["--resume"]]) {
      const { exitCode, stderr } = await customers(["import", path, ...more], { env });
      expect([exitCode, stderr]).toEqual([8, expect.stringContaining("unknown outcome of 2 rows")]);
      expect(stderr).toContain("row 1 (line 2)");
      expect(stderr).toContain("--resume");
    }
    expect(readdirSync(directory).toSorted()).toEqual(["in.csv", "in.csv.journal"]);
    lies = false;
    expect((await customers(["import", path, "--resume"], { env })).exitCode).toBe(9);
    expect(namesOf(server.all())).toEqual(["A"]);
    expect(readFileSync(join(directory, "in.failed.csv"), "utf8")).not.toContain("a@example.com");
  });

  const problem = { "content-type": "application/problem+json" };
  test.each<[string, number, Record<string, string>, string, number]>([
    ["401", 401, problem, "{}", 3],
    ["403", 403, problem, "{}", 8],
    ["404", 404, problem, "{}", 8],
    ["409", 409, problem, "{}", 8],
    ["413", 413, {}, "", 8],
    ["429 that asks to wait too long", 429, { ...problem, "retry-after": "9999" }, "{}", 7],
    ["422 without a word of the service", 422, {}, "", 8],
    ["422 about the key", 422, problem, '{"code":"idempotency-key-reused"}', 8],
    ["422 about the values", 422, problem, '{"code":"invalid-fields"}', 9],
    ["400 about the values", 400, problem, '{"code":"invalid-fields"}', 9],
  ])(
    "%s after it: what decides is the service's word about the same values",
    async (_, status, headers, text, code) => {
      const { server, directory, file, through, customers } = await bulkPlace();
      const refuse: Fault = (exchange) => exchange.answer({ status, headers, body: Buffer.from(text) });
      const wrong = [faults.dropReplies(), faults.firstWrite(refuse)];
      const { env } = await through(
        (exchange) => wrong[0]?.(exchange) ?? exchange.forward().then(exchange.answer),
      );
      const path = file("in.csv", csv(["name,email", "A,a@example.com"]));
      expect((await customers(["import", path], { env })).exitCode).toBe(8);
      wrong.shift();
      const { exitCode, stderr } = await customers(["import", path, "--resume"], { env });
      expect([exitCode, server.size]).toEqual([code, 1]);
      expect(existsSync(join(directory, "in.failed.csv"))).toBe(code === 9);
      wrong.shift();
      if (code === 9) expect(stderr).toContain("may have been applied");
      else expect((await customers(["import", path, "--resume"], { env })).exitCode).toBe(0);
      expect(server.size).toBe(1);
    },
  );

  test("and exit 8 says so, also where the credentials are refused after it", async () => {
    const { server, file, through, customers } = await bulkPlace();
    const refuse: Fault = (exchange) => exchange.answer({ status: 401, headers: {}, body: new Uint8Array() });
    const wrong = [faults.answerAfterWrites(500), refuse];
    const { env } = await through((exchange) => (wrong.shift() ?? faults.dropReplies(0))(exchange));
    const path = file("in.csv", csv(["name,email", "A,a@example.com", "B,b@example.com"]));
    const { exitCode, stderr } = await customers(["import", path, "--concurrency", "1"], { env });
    expect([exitCode, stderr]).toEqual([
      8,
      expect.stringContaining("the server does not know the credentials"),
    ]);
    expect(stderr).toContain("2 rows not done yet, 1 of them sent without a clear reply");
    expect((await customers(["import", path, "--resume"], { env })).exitCode).toBe(0);
    expect(namesOf(server.all())).toEqual(["A", "B"]);
  });

  test("nor does an update: it is looked at, and is undecided where that fails", async () => {
    const { server, directory, file, through, customers } = await bulkPlace();
    const { id } = server.add({ name: "Old" });
    let silent = true;
    let written = false;
    const { env } = await through(async (exchange) => {
      const reply = await exchange.forward();
      if (silent && (exchange.isWrite || written)) {
        written = true;
        return exchange.answer({ status: 501, headers: {}, body: new Uint8Array() });
      }
      exchange.answer(reply);
    });
    const path = file("in.csv", csv(["id,name", `${id},New`, "none,X"]));
    const run = await customers(["import", path, "--concurrency", "1", "--timeout", "2"], { env });
    expect([run.exitCode, existsSync(join(directory, "in.failed.csv"))]).toEqual([8, false]);
    silent = false;
    expect((await customers(["import", path, "--resume"], { env })).exitCode).toBe(9);
    expect([server.read(id)?.name, server.writes.length]).toEqual(["New", 1]);
  });
});

describe("rows whose reply was lost, and that are found as they want it, perhaps by someone else", () => {
  const counts = { rows: 1, created: 0, perhapsTwice: 0, unchanged: 0, failed: 0, conflicts: 0 };

  test("of a pinned one the outcome is unknown; --resume counts it apart, from then on", async () => {
    const { server, file, through, customers } = await bulkPlace();
    const { id, tag } = server.add({ name: "Old" });
    // Another wrote the same, and the row's own write never arrived.
    const { env } = await through(
      faults.firstWrite((exchange) => {
        server.change(id, { name: "New" });
        exchange.cut();
      }),
    );
    const path = file("in.csv", csv(["id,name,etag", `${id},New,"${tag.replaceAll('"', '""')}"`]));
    const run = await customers(["import", path, "-o", "json"], { env });
    expect(run.exitCode).toBe(8);
    expect(JSON.parse(run.stdout)).toEqual({ ...counts, updated: 0, unclear: 0, left: 1 });
    for (const _ of ["the next run", "and every later one"]) {
      const resumed = await customers(["import", path, "--resume", "-o", "json"], { env });
      expect(resumed.exitCode).toBe(0);
      expect(JSON.parse(resumed.stdout)).toEqual({ ...counts, updated: 1, unclear: 1, left: 0 });
      expect(resumed.stderr).toContain("1 found so after a lost reply, perhaps by someone else");
    }
    expect(server.writes).toHaveLength(0);
  });

  test("one without an etag wants that state, whether or not another made it: updated, and counted apart", async () => {
    const { server, file, through, customers } = await bulkPlace();
    const { id } = server.add({ name: "Old" });
    const { env } = await through(faults.dropReplies());
    const path = file("in.csv", csv(["id,name", `${id},New`]));
    const run = await customers(["import", path, "-o", "json"], { env });
    expect([run.exitCode, server.writes.length]).toEqual([0, 1]);
    expect(JSON.parse(run.stdout)).toEqual({ ...counts, updated: 1, unclear: 1, left: 0 });
  });
});

test("whatever the network does, and however often it is killed: resumed until done, every row is there once", async () => {
  const { server, file, through, customers, start } = await bulkPlace();
  const updated = Array.from({ length: 30 }, (_, at) => server.add({ name: `Old ${at}` }));
  const rows = [
    ...updated.map(({ id }, at) => `${id},New ${at},`),
    ...Array.from({ length: 60 }, (_, at) => `,Created ${at},c${at}@example.com`),
  ];
  const path = file("in.csv", csv(["id,name,email", ...rows]));
  const bare = (status: number) => ({ status, headers: { "retry-after": "0" }, body: new Uint8Array() });
  let exchanges = 0;
  let child: ReturnType<typeof start> | undefined;
  // Every kind of fault at its own prime rhythm, so that they meet each other and every kind of request.
  const { env } = await through(async (exchange) => {
    exchanges += 1;
    if (exchanges % 97 === 0) child?.kill("SIGKILL");
    if (exchanges % 13 === 0) return exchange.cut();
    if (exchanges % 11 === 0) return exchange.answer(bare(503));
    const reply = await exchange.forward();
    if (exchanges % 17 === 0) return exchange.cut();
    if (exchanges % 19 === 0) return exchange.answer(bare(502));
    if (exchanges % 23 === 0) return exchange.answerHalf(reply);
    exchange.answer(reply);
  });
  const runs: string[] = [];
  let exitCode: number | undefined;
  while (exitCode !== 0 && runs.length < 30) {
    child = start(["import", path, "--resume", "--concurrency", "8"], { env });
    [exitCode] = await Promise.all([child.exited, child.stderr.text().then((stderr) => runs.push(stderr))]);
  }
  child = undefined;
  expect([exitCode, runs.at(-1)]).toEqual([0, expect.stringContaining("0 failed")]);
  expect(runs.length).toBeGreaterThan(1);
  expect(namesOf(server.all()).toSorted()).toEqual(
    [
      ...updated.map((_, at) => `New ${at}`),
      ...Array.from({ length: 60 }, (_, at) => `Created ${at}`),
    ].toSorted(),
  );
  expect((await customers(["import", path, "--resume"], { env })).exitCode).toBe(0);
  expect(server.size).toBe(90);
});

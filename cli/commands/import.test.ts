import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  runClient as runClientAs,
  runOnTerminal as runOnTerminalAs,
  spawnClient as spawnClientAs,
  temporaryDirectory,
} from "../testing/client.ts";
import { startCustomerServer } from "../testing/customer-server.ts";
import { OURS, TOKEN, UNLIKE_OURS } from "../testing/dialect.ts";
import { compiledClient } from "../testing/executable.ts";
import * as faults from "../testing/faults.ts";
import { type Fault, startFaultyProxy } from "../testing/faulty-proxy.ts";

const command = [await compiledClient()];
const runClient: typeof runClientAs = (args, options) => runClientAs(args, { command, ...options });
const runOnTerminal: typeof runOnTerminalAs = (args, options) =>
  runOnTerminalAs(args, { command, ...options });
const spawnClient: typeof spawnClientAs = (args, options) => spawnClientAs(args, { command, ...options });

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

function place(dialect = OURS) {
  const server = startCustomerServer(dialect);
  const directory = temporaryDirectory();
  stops.push(server.stop, directory[Symbol.dispose].bind(directory));
  const file = (name: string, content: string | Uint8Array) => {
    const path = join(directory.path, name);
    writeFileSync(path, content);
    return path;
  };
  const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN };
  const through = async (fault: Fault) => {
    const proxy = await startFaultyProxy(server.url, fault);
    stops.push(proxy.stop);
    return { proxy, env: { ...env, CUSTOMERS_URL: proxy.url } };
  };
  return { server, directory: directory.path, file, env, through };
}

const csv = (lines: string[]) => `${lines.join("\n")}\n`;
const names = (customers: { name: string }[]) => customers.map(({ name }) => name);

describe("what becomes of rows", () => {
  test("rows with an id update, rows without create, blank cells touch nothing, equal cells send nothing", async () => {
    const { server, file, env } = place();
    const [ada, bob] = [server.add({ name: "Ada" }), server.add({ name: "Bob", email: "bob@example.com" })];
    const path = file(
      "in.csv",
      csv([
        "id,name,email,status",
        `${ada.id},Ada L,,`,
        `${bob.id},Bob,,active`,
        ",New,new@example.com,suspended",
      ]),
    );
    const run = await runClient(["import", path], { env });
    expect([run.exitCode, run.stdout]).toEqual([0, ""]);
    expect(run.stderr).toContain("3 rows: 1 created, 1 updated, 1 unchanged, 0 failed; 0 conflicts");
    expect(server.writes.map(({ method, body }) => ({ method, body }))).toContainAllValues([
      { method: "PUT", body: { name: "Ada L", email: "ada@example.com" } },
      { method: "POST", body: { name: "New", email: "new@example.com", status: "suspended" } },
    ]);
    expect(server.writes).toHaveLength(2);
  });

  test("an etag column pins the version that the row was made from", async () => {
    const { server, directory, file, env } = place();
    const [fresh, stale] = [server.add({}), server.add({})];
    server.change(stale.id, { name: "Someone else" });
    const quoted = (tag: string) => `"${tag.replaceAll('"', '""')}"`;
    const path = file(
      "in.csv",
      csv(["id,name,etag", `${fresh.id},Mine,${quoted(fresh.tag)}`, `${stale.id},Mine,${quoted(stale.tag)}`]),
    );
    expect((await runClient(["import", path], { env })).exitCode).toBe(9);
    expect([server.read(fresh.id)?.name, server.read(stale.id)?.name]).toEqual(["Mine", "Someone else"]);
    expect(readFileSync(join(directory, "in.failed.csv"), "utf8")).toContain("is no longer the version");
  });

  test("a pinned row that is there already is unchanged: a second run, or a resumed one, meets its own writes", async () => {
    const { server, file, env } = place();
    const { id, tag } = server.add({ name: "Old" });
    const path = file("in.csv", csv(["id,name,etag", `${id},New,"${tag.replaceAll('"', '""')}"`]));
    expect((await runClient(["import", path], { env })).stderr).toContain("1 updated");
    const again = await runClient(["import", path], { env });
    expect([again.exitCode, server.writes.length]).toEqual([0, 1]);
    expect(again.stderr).toContain("1 unchanged");
  });

  test("rows for one customer are applied in the order of the file, however many are in work", async () => {
    const { server, file, env } = place();
    const { id } = server.add({});
    const path = file(
      "in.csv",
      csv(["id,name", ...Array.from({ length: 40 }, (_, at) => `${id},Name ${at}`)]),
    );
    expect((await runClient(["import", path, "--concurrency", "16"], { env })).exitCode).toBe(0);
    expect(server.writes.map(({ body }) => (body as { name: string }).name)).toEqual(
      Array.from({ length: 40 }, (_, at) => `Name ${at}`),
    );
  });

  test.each([
    ["reapply", 0, "Mine"],
    ["merge", 9, "Theirs"],
    ["fail", 9, "Theirs"],
  ])("a row meets --on-conflict %s", async (how, exitCode, name) => {
    const { server, file, through } = place();
    const { id } = server.add({ name: "Old" });
    const { env } = await through(faults.interfere(() => server.change(id, { name: "Theirs" })));
    const run = await runClient(
      ["import", file("in.csv", csv(["id,name", `${id},Mine`])), "--on-conflict", how],
      { env },
    );
    expect([run.exitCode, server.read(id)?.name]).toEqual([exitCode, name]);
    expect(run.stderr).toContain("; 1 conflict\n");
  });

  test("NDJSON rows, bare or with their etag around, import alike; stdin too", async () => {
    const { server, env } = place();
    const { id, tag } = server.add({});
    const rows = [
      JSON.stringify({ name: "New", email: "new@example.com" }),
      JSON.stringify({
        etag: tag,
        customer: { id, name: "Changed", email: "ada@example.com", status: "active" },
      }),
    ];
    const run = await runClient(["import", "-"], { env, stdin: rows.join("\n") });
    expect([run.exitCode, run.stderr]).toEqual([
      0,
      "import of stdin, 2 rows: 1 created, 1 updated, 0 unchanged, 0 failed; 0 conflicts\n",
    ]);
    expect(names(server.all())).toEqual(["Changed", "New"]);
  });

  test("against a deployment unlike ours an export imports unchanged, and a changed cell keeps the type of its member", async () => {
    const { server, directory, file } = place(UNLIKE_OURS);
    server.add({ name: "=1+1" });
    server.add({ name: '田中, "太郎"\nx' });
    const env = { CUSTOMERS_URL: server.url, KEY: server.dialect.credentials.value };
    const how = ["--header-env", "X-Api-Key: $KEY"];
    const path = join(directory, "all.csv");
    expect((await runClient(["export", path, "--with-etag", ...how], { env })).exitCode).toBe(0);
    const text = readFileSync(path, "utf8");
    expect(text).toStartWith("etag,Id,Name,Email,Status,Balance,Rate,10,2\n");
    expect(text).toContain(",'=1+1,");
    expect(text).toContain(',9007199254740993,1.10,ten,"[1E5,-0,{""__proto__"":null}]"');
    const run = await runClient(["import", path, ...how], { env });
    expect(run.stderr).toContain("2 unchanged");
    expect(server.writes).toHaveLength(0);
    const edited = file("edited.csv", text.replace("'=1+1", "Ada"));
    expect((await runClient(["import", edited, ...how], { env })).stderr).toContain("1 updated, 1 unchanged");
    expect(names(server.all())).toEqual(["Ada", '田中, "太郎"\nx']);
  });
});

describe("rows that fail", () => {
  test("land with a reason in a file that imports as it is, once mended", async () => {
    const { server, directory, file, env } = place();
    const { id } = server.add({});
    const input =
      '\uFEFFid,name,email\r\nnone,X,\r\n,Good,good@example.com\r\n,"Bad, ""quoted""",no address\r\n' +
      `${id},'=Formula,\r\n`;
    const run = await runClient(["import", file("in.csv", input)], { env });
    expect(run.exitCode).toBe(9);
    expect(run.stderr).toContain("row 1 (line 2): customer none");
    const failed = join(directory, "in.failed.csv");
    expect(run.stderr).toContain(failed);
    const text = readFileSync(failed, "utf8");
    expect(text.split("\n")[0]).toBe("id,name,email,reason");
    expect(text.split("\n")).toHaveLength(4);
    expect(statSync(failed).mode & 0o777).toBe(0o600);
    const mended = text.replace("no address", "bad@example.com").replace("none,X", `${id},X`);
    writeFileSync(failed, mended);
    expect((await runClient(["import", failed], { env })).exitCode).toBe(0);
    expect(names(server.all())).toEqual(["X", "Good", 'Bad, "quoted"']);
  });

  test("are shown five at most, and counted beyond", async () => {
    const { file, env, directory } = place();
    const path = file("in.csv", csv(["id,name", ...Array.from({ length: 12 }, (_, at) => `none-${at},X`)]));
    const { stderr } = await runClient(["import", path], { env });
    expect(stderr.match(/^row /gm)).toHaveLength(5);
    expect(stderr).toContain("… and 7 more");
    expect(readFileSync(join(directory, "in.failed.csv"), "utf8").split("\n")).toHaveLength(14);
  });

  test("never overwrite rows that failed before", async () => {
    const { directory, file, env } = place();
    const path = file("in.csv", csv(["id,name", "none,X"]));
    file("in.failed.csv", "somebody is mending this");
    await runClient(["import", path], { env });
    expect(readFileSync(join(directory, "in.failed.csv"), "utf8")).toBe("somebody is mending this");
    expect(readFileSync(join(directory, "in.failed-2.csv"), "utf8")).toContain("none,X");
  });
});

describe("nothing is sent", () => {
  test.each([
    ["a broken file", 'id,name\n1,a\n2,"b\n', 2, "Quote Not Closed"],
    ["a file that is not there", undefined, 2, "can't be read (ENOENT)"],
  ])("for %s", async (_, content, exitCode, message) => {
    const { server, directory, file, env } = place();
    const path = content === undefined ? join(directory, "none.csv") : file("in.csv", content);
    const run = await runClient(["import", path], { env });
    expect([run.exitCode, server.requests.length]).toEqual([exitCode, 0]);
    expect(run.stderr).toContain(message);
    expect(readdirSync(directory).filter((name) => name.includes("journal"))).toEqual([]);
  });

  test("that writes by --dry-run: it counts and shows changes", async () => {
    const { server, directory, file, env } = place();
    const { id } = server.add({ name: "Old" });
    const path = file(
      "in.csv",
      csv(["id,name,email", `${id},New,`, `${id},Old,`, "none,X,", ",New,new@example.com"]),
    );
    const run = await runClient(["import", path, "--dry-run"], { env });
    expect(run.exitCode).toBe(9);
    expect(run.stderr).toContain("1 would be created, 1 updated, 1 left unchanged, 1 would fail");
    expect(run.stdout).toContain(`row 1 (line 2): update customer ${id}\n  name: "Old" -> "New"`);
    expect(server.requests.every(({ method }) => method === "GET")).toBe(true);
    expect(readdirSync(directory)).toEqual(["in.csv"]);
  });

  test("to a protected profile without --yes", async () => {
    const { server, file, directory, env } = place();
    const home = directory;
    await runClient(["profile", "set", "prod", "--protected", "--url", server.url], { env, home });
    const path = file("in.csv", csv(["name,email", "New,new@example.com"]));
    const refused = await runClient(["import", path, "--profile", "prod"], { env, home });
    expect([refused.exitCode, server.writes.length]).toEqual([2, 0]);
    expect((await runClient(["import", path, "--profile", "prod", "--yes"], { env, home })).exitCode).toBe(0);
    expect(server.size).toBe(1);
  });
});

describe("an import that stops", () => {
  test("by kill -9 half-way goes on by row: every row once, created ones too", async () => {
    const { server, directory, file, env, through } = place();
    const updated = Array.from({ length: 100 }, (_, at) => server.add({ name: `Old ${at}` }));
    const rows = [
      ...updated.map(({ id }, at) => `${id},New ${at},`),
      ...Array.from({ length: 300 }, (_, at) => `,Created ${at},c${at}@example.com`),
    ];
    const path = file("in.csv", csv(["id,name,email", ...rows]));
    let child: ReturnType<typeof spawnClient> | undefined;
    let writes = 0;
    const { env: killing } = await through(async (exchange) => {
      const reply = await exchange.forward();
      if (exchange.isWrite) writes += 1;
      // Some of these were applied and not answered, as with every real death.
      if (writes >= 150) child?.kill("SIGKILL");
      else exchange.answer(reply);
    });
    child = spawnClient(["import", path, "--concurrency", "8"], { env: killing });
    expect(await child.exited).toBe(137);
    const before = server.writes.length;
    expect(before).toBeGreaterThanOrEqual(150);
    expect(before).toBeLessThan(400);

    const refused = await runClient(["import", path], { env });
    expect([refused.exitCode, refused.stderr.includes("--resume"), server.writes.length]).toEqual([
      2,
      true,
      before,
    ]);
    const elsewhere = await runClient(["import", path, "--resume"], { env });
    expect([elsewhere.exitCode, elsewhere.stderr.includes(killing.CUSTOMERS_URL)]).toEqual([2, true]);

    // The same address as before: the journal belongs to one deployment.
    const proxyEnv = killing;
    child = undefined;
    writes = Number.NEGATIVE_INFINITY;
    const resumed = await runClient(["import", path, "--resume"], { env: proxyEnv });
    expect([resumed.exitCode, resumed.stderr]).toEqual([0, expect.stringContaining("400 rows: 300 created")]);
    expect(server.writes).toHaveLength(400);
    expect(new Set(names(server.all())).size).toBe(400);
    expect(server.size).toBe(400);
    const again = await runClient(["import", path, "--resume"], { env: proxyEnv });
    expect([again.exitCode, server.writes.length]).toEqual([0, 400]);
    expect(readdirSync(directory).toSorted()).toEqual(["in.csv", "in.csv.journal"]);
  });

  test("because a reply to a creation was lost says so, and --resume creates it once", async () => {
    const { server, file, through } = place();
    const { env } = await through(faults.dropReplies());
    const path = file("in.csv", csv(["name,email", "A,a@example.com", "B,b@example.com"]));
    const run = await runClient(["import", path], { env });
    expect(run.exitCode).toBe(8);
    expect(run.stderr).toContain("--resume");
    const resumed = await runClient(["import", path, "--resume"], { env });
    expect([resumed.exitCode, resumed.stderr.includes("had been sent before")]).toEqual([0, false]);
    expect(names(server.all()).toSorted()).toEqual(["A", "B"]);
  });

  test("tells which rows may exist twice where the deployment ignores Idempotency-Key", async () => {
    const { server, file, through } = place({ ...OURS, idempotencyKeys: false });
    const { env } = await through(faults.dropReplies());
    const path = file("in.csv", csv(["name,email", "A,a@example.com", "B,b@example.com"]));
    await runClient(["import", path, "--concurrency", "1"], { env });
    const { exitCode, stderr } = await runClient(["import", path, "--resume"], { env });
    expect([exitCode, server.size]).toEqual([0, 3]);
    expect(stderr).toContain("1 row had been sent before without a reply");
    expect(stderr).toContain("row 1 (line 2)");
    expect(stderr).not.toContain("row 2 (line 3)");
  });

  test("because the server went away leaves the rest for --resume, and no row failed", async () => {
    const { server, directory, file, env } = place();
    const path = file(
      "in.csv",
      csv(["name,email", ...Array.from({ length: 50 }, (_, at) => `N${at},n@example.com`)]),
    );
    await server.stop();
    const run = await runClient(["import", path, "--timeout", "1"], { env });
    expect([run.exitCode, server.size]).toEqual([7, 0]);
    expect(run.stderr).toContain("50 rows not done yet");
    expect(existsSync(join(directory, "in.failed.csv"))).toBe(false);
  });

  test("because the credentials are refused stops at once, with exit 3", async () => {
    const { server, file, env } = place();
    const path = file(
      "in.csv",
      csv(["name,email", ...Array.from({ length: 500 }, (_, at) => `N${at},n@example.com`)]),
    );
    const run = await runClient(["import", path], { env: { ...env, CUSTOMERS_TOKEN: "cst_wrong" } });
    expect(run.exitCode).toBe(3);
    expect(server.requests.length).toBeLessThan(100);
    expect((await runClient(["import", path, "--resume"], { env })).exitCode).toBe(0);
    expect(server.size).toBe(500);
  });

  test("by Ctrl-C ends with 130 and goes on with --resume", async () => {
    const { server, file, through } = place();
    const path = file(
      "in.csv",
      csv(["name,email", ...Array.from({ length: 200 }, (_, at) => `N${at},n@example.com`)]),
    );
    let child: ReturnType<typeof spawnClient> | undefined;
    const { env, proxy } = await through(async (exchange) => {
      if (proxy.writesSeen === 60) child?.kill("SIGINT");
      exchange.answer(await exchange.forward());
    });
    child = spawnClient(["import", path, "--concurrency", "4"], { env });
    const [stderr, exitCode] = [await child.stderr.text(), await child.exited];
    expect([exitCode, stderr.includes("--resume")]).toEqual([130, true]);
    expect(server.size).toBeLessThan(200);
    expect((await runClient(["import", path, "--resume"], { env })).exitCode).toBe(0);
    expect([server.size, new Set(names(server.all())).size]).toEqual([200, 200]);
  });

  test("does not go on with a file that has changed", async () => {
    const { server, file, env } = place();
    const path = file("in.csv", csv(["name,email", "A,a@example.com", "B,b@example.com"]));
    await runClient(["import", path], { env });
    file("in.csv", csv(["name,email", "A,a@example.com", "C,c@example.com"]));
    const run = await runClient(["import", path, "--resume"], { env });
    expect([run.exitCode, server.size]).toEqual([2, 2]);
    expect(run.stderr).toContain("row 2 (line 3) differs");
    expect((await runClient(["import", path], { env })).exitCode).toBe(0);
    expect(server.size).toBe(4);
  });

  test("keeps a second import of the same file out while it runs", async () => {
    const { file, env, through } = place();
    const path = file("in.csv", csv(["name,email", "A,a@example.com"]));
    const arrived = Promise.withResolvers<void>();
    const { env: hanging } = await through(() => arrived.resolve());
    const first = spawnClient(["import", path], { env: hanging });
    await arrived.promise;
    const second = await runClient(["import", path], { env });
    first.kill("SIGKILL");
    await first.exited;
    expect([second.exitCode, second.stderr.includes("by another process")]).toEqual([2, true]);
  });
});

test("a restarting server is waited for", async () => {
  const { server, file, through } = place();
  const { env, proxy } = await through(faults.dropRequests(5, "reads"));
  const { id } = server.add({});
  const path = file("in.csv", csv(["id,name", `${id},New`]));
  const run = await runClient(["import", path], { env });
  expect([run.exitCode, server.read(id)?.name, proxy.seen >= 6]).toEqual([0, "New", true]);
});

test("429 with Retry-After slows the import down and fails no row", async () => {
  const { server, file, through } = place();
  const { env } = await through(faults.answerInstead(429, { times: 20, retryAfter: 0 }));
  const path = file(
    "in.csv",
    csv(["name,email", ...Array.from({ length: 40 }, (_, at) => `N${at},n@example.com`)]),
  );
  expect((await runClient(["import", path], { env })).exitCode).toBe(0);
  expect(server.size).toBe(40);
});

test("a terminal shows a bar, which is gone at the end; a pipe shows none", async () => {
  const { server, file, through } = place();
  const { env } = await through(faults.slow(150));
  const path = file(
    "in.csv",
    csv(["name,email", ...Array.from({ length: 8 }, (_, at) => `N${at},n@example.com`)]),
  );
  const { screen, exitCode } = await runOnTerminal(["import", path, "--concurrency", "2"], { env });
  expect([exitCode, server.size]).toEqual([0, 8]);
  expect(screen).toMatch(/\[#+-+\] \d of 8 · \d+\/s · \d+ s left/);
  expect(screen).toContain("\r\u001b[2Kimport of ");
  const piped = await runClient(["import", path], { env });
  expect(piped.stderr).not.toContain("\u001b");
});

test("no file that an import leaves behind holds the token", async () => {
  const { directory, file, env } = place();
  const path = file("in.csv", csv(["id,name", "none,X"]));
  await runClient(["import", path, "--verbose"], { env });
  const files = readdirSync(directory);
  expect(files).toContain("in.csv.journal");
  for (const name of files) expect(readFileSync(join(directory, name)).includes(TOKEN)).toBe(false);
});

import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bulkPlace, csv, namesOf, stopBulkPlaces } from "./support/bulk-place.ts";
import { runOnTerminal } from "./support/client.ts";
import { TOKEN, UNLIKE_OURS } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";

afterAll(stopBulkPlaces);

describe("what becomes of rows", () => {
  test("rows with an id update, rows without create, blank cells touch nothing, equal cells send nothing", async () => {
    const { server, file, env, customers } = await bulkPlace();
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
    const run = await customers(["import", path], { env });
    expect([run.exitCode, run.stdout]).toEqual([0, ""]);
    expect(run.stderr).toContain("3 rows: 1 created, 1 updated, 1 unchanged, 0 failed; 0 conflicts");
    expect(server.writes.map(({ method, body }) => ({ method, body }))).toContainAllValues([
      { method: "PUT", body: { name: "Ada L", email: "ada@example.com" } },
      { method: "POST", body: { name: "New", email: "new@example.com", status: "suspended" } },
    ]);
    expect(server.writes).toHaveLength(2);
  });

  test("an etag column pins the version that the row was made from", async () => {
    const { server, directory, file, env, customers } = await bulkPlace();
    const [fresh, stale] = [server.add({}), server.add({})];
    server.change(stale.id, { name: "Someone else" });
    const quoted = (tag: string) => `"${tag.replaceAll('"', '""')}"`;
    const path = file(
      "in.csv",
      csv(["id,name,etag", `${fresh.id},Mine,${quoted(fresh.tag)}`, `${stale.id},Mine,${quoted(stale.tag)}`]),
    );
    expect((await customers(["import", path], { env })).exitCode).toBe(9);
    expect([server.read(fresh.id)?.name, server.read(stale.id)?.name]).toEqual(["Mine", "Someone else"]);
    expect(readFileSync(join(directory, "in.failed.csv"), "utf8")).toContain("is no longer the version");
  });

  test("a pinned row that is there already is unchanged: a second run, or a resumed one, meets its own writes", async () => {
    const { server, file, env, customers } = await bulkPlace();
    const { id, tag } = server.add({ name: "Old" });
    const path = file("in.csv", csv(["id,name,etag", `${id},New,"${tag.replaceAll('"', '""')}"`]));
    expect((await customers(["import", path], { env })).stderr).toContain("1 updated");
    const again = await customers(["import", path], { env });
    expect([again.exitCode, server.writes.length]).toEqual([0, 1]);
    expect(again.stderr).toContain("1 unchanged");
  });

  test("rows for one customer are applied in the order of the file, however many are in work", async () => {
    const { server, file, env, customers } = await bulkPlace();
    const { id } = server.add({});
    const path = file(
      "in.csv",
      csv(["id,name", ...Array.from({ length: 40 }, (_, at) => `${id},Name ${at}`)]),
    );
    expect((await customers(["import", path, "--concurrency", "16"], { env })).exitCode).toBe(0);
    expect(server.writes.map(({ body }) => (body as { name: string }).name)).toEqual(
      Array.from({ length: 40 }, (_, at) => `Name ${at}`),
    );
  });

  test.each([
    ["reapply", 0, "Mine"],
    ["merge", 9, "Theirs"],
    ["fail", 9, "Theirs"],
  ])("a row meets --on-conflict %s", async (how, exitCode, name) => {
    const { server, file, through, customers } = await bulkPlace();
    const { id } = server.add({ name: "Old" });
    const { env } = await through(faults.interfere(() => server.change(id, { name: "Theirs" })));
    const run = await customers(
      ["import", file("in.csv", csv(["id,name", `${id},Mine`])), "--on-conflict", how],
      {
        env,
      },
    );
    expect([run.exitCode, server.read(id)?.name]).toEqual([exitCode, name]);
    expect(run.stderr).toContain("; 1 conflict\n");
  });

  test("NDJSON rows, bare or with their etag around, import alike; stdin too", async () => {
    const { server, env, customers } = await bulkPlace();
    const { id, tag } = server.add({});
    const rows = [
      JSON.stringify({ name: "New", email: "new@example.com" }),
      JSON.stringify({
        etag: tag,
        customer: { id, name: "Changed", email: "ada@example.com", status: "active" },
      }),
    ];
    const run = await customers(["import", "-"], { env, stdin: rows.join("\n") });
    expect([run.exitCode, run.stderr]).toEqual([
      0,
      "import of stdin, 2 rows: 1 created, 1 updated, 0 unchanged, 0 failed; 0 conflicts\n",
    ]);
    expect(namesOf(server.all())).toEqual(["Changed", "New"]);
  });

  test("against a deployment unlike ours an export imports unchanged, and a changed cell keeps the type of its member", async () => {
    const { server, directory, file, customers } = await bulkPlace(UNLIKE_OURS);
    server.add({ name: "=1+1" });
    server.add({ name: '田中, "太郎"\nx' });
    const env = { CUSTOMERS_URL: server.url, KEY: server.dialect.credentials.value };
    const how = ["--header-env", "X-Api-Key: $KEY"];
    const path = join(directory, "all.csv");
    expect((await customers(["export", path, "--with-etag", ...how], { env })).exitCode).toBe(0);
    const text = readFileSync(path, "utf8");
    expect(text).toStartWith("etag,Id,Name,Email,Status,Balance,Rate,10,2\n");
    expect(text).toContain(",'=1+1,");
    expect(text).toContain(',9007199254740993,1.10,ten,"[1E5,-0,{""__proto__"":null}]"');
    const run = await customers(["import", path, ...how], { env });
    expect(run.stderr).toContain("2 unchanged");
    expect(server.writes).toHaveLength(0);
    const edited = file("edited.csv", text.replace("'=1+1", "Ada"));
    expect((await customers(["import", edited, ...how], { env })).stderr).toContain("1 updated, 1 unchanged");
    expect(namesOf(server.all())).toEqual(["Ada", '田中, "太郎"\nx']);
  });
});

describe("rows that fail", () => {
  test("land with a reason in a file that imports as it is, once corrected", async () => {
    const { server, directory, file, env, customers } = await bulkPlace();
    const { id } = server.add({});
    const input =
      '\uFEFFid,name,email\r\nnone,X,\r\n,Good,good@example.com\r\n,"Bad, ""quoted""",no address\r\n' +
      `${id},'=Formula,\r\n`;
    const run = await customers(["import", file("in.csv", input)], { env });
    expect(run.exitCode).toBe(9);
    expect(run.stderr).toContain("row 1 (line 2): customer none");
    const failed = join(directory, "in.failed.csv");
    expect(run.stderr).toContain(failed);
    const text = readFileSync(failed, "utf8");
    expect(text.split("\n")[0]).toBe("id,name,email,reason");
    expect(text.split("\n")).toHaveLength(4);
    expect(statSync(failed).mode & 0o777).toBe(0o600);
    const corrected = text.replace("no address", "bad@example.com").replace("none,X", `${id},X`);
    writeFileSync(failed, corrected);
    expect((await customers(["import", failed], { env })).exitCode).toBe(0);
    expect(namesOf(server.all())).toEqual(["X", "Good", 'Bad, "quoted"']);
  });

  test("are shown five at most, and counted beyond", async () => {
    const { file, env, directory, customers } = await bulkPlace();
    const path = file("in.csv", csv(["id,name", ...Array.from({ length: 12 }, (_, at) => `none-${at},X`)]));
    const { stderr } = await customers(["import", path], { env });
    expect(stderr.match(/^row /gm)).toHaveLength(5);
    expect(stderr).toContain("… and 7 more");
    expect(readFileSync(join(directory, "in.failed.csv"), "utf8").split("\n")).toHaveLength(14);
  });

  test("are those that concern one row: 403, and 500 to a reading; 500 to a creation leaves it undecided", async () => {
    const { server, directory, file, through, customers } = await bulkPlace();
    const [refused, broken] = [server.add({}), server.add({})];
    let fails = true;
    const { env } = await through(async (exchange) => {
      const status = exchange.path.includes(refused.id)
        ? 403
        : exchange.path.includes(broken.id)
          ? 500
          : undefined;
      const creation = exchange.method === "POST" && fails ? 500 : undefined;
      const wrong = status ?? creation;
      exchange.answer(
        wrong === undefined
          ? await exchange.forward()
          : { status: wrong, headers: {}, body: new Uint8Array() },
      );
    });
    const good = server.add({});
    const rows = [`${refused.id},X,`, `${broken.id},X,`, `${good.id},X,`, ",New,new@example.com"];
    const path = file("in.csv", csv(["id,name,email", ...rows]));
    const first = await customers(["import", path], { env });
    expect([first.exitCode, server.read(good.id)?.name]).toEqual([8, "X"]);
    expect(first.stderr).toContain("unknown outcome of 1 row");
    expect(existsSync(join(directory, "in.failed.csv"))).toBe(false);
    fails = false;
    const second = await customers(["import", path, "--resume", "--output", "json"], { env });
    expect([second.exitCode, JSON.parse(second.stdout)]).toEqual([
      8, // this server did not show that it knows keys
      {
        rows: 4,
        created: 1,
        perhapsTwice: 1,
        updated: 1,
        unclear: 0,
        unchanged: 0,
        failed: 2,
        left: 0,
        conflicts: 0,
      },
    ]);
    expect(readFileSync(join(directory, "in.failed.csv"), "utf8")).not.toContain("New");
  });

  test("never overwrite rows that failed before", async () => {
    const { directory, file, env, customers } = await bulkPlace();
    const path = file("in.csv", csv(["id,name", "none,X"]));
    file("in.failed.csv", "somebody is correcting this");
    await customers(["import", path], { env });
    expect(readFileSync(join(directory, "in.failed.csv"), "utf8")).toBe("somebody is correcting this");
    expect(readFileSync(join(directory, "in.failed-2.csv"), "utf8")).toContain("none,X");
  });
});

describe("nothing is sent", () => {
  test.each([
    ["a broken file", "in.csv", 'id,name\n1,a\n2,"b\n', 2, "a quote that opens in this row is not closed"],
    ["a file that is not there and has no ending", "in", undefined, 2, "can't be read (ENOENT)"],
    ["a directory", ".", undefined, 2, "can't be read (EISDIR)"],
    ["a file that is not there", "in.csv", undefined, 2, "can't be read (ENOENT)"],
    ["a JSON array", "in.json", '[{"name":"A"}]', 2, "jq -c"],
  ])("for %s", async (_, name, content, exitCode, message) => {
    const { server, directory, file, env, customers } = await bulkPlace();
    const path = content === undefined ? join(directory, name) : file(name, content);
    const run = await customers(["import", path], { env });
    expect([run.exitCode, server.requests.length]).toEqual([exitCode, 0]);
    expect(run.stderr).toContain(message);
    expect(readdirSync(directory).filter((name) => name.includes("journal"))).toEqual([]);
  });

  test("that writes by --dry-run: it counts and shows changes", async () => {
    const { server, directory, file, env, customers } = await bulkPlace();
    const { id } = server.add({ name: "Old" });
    const path = file(
      "in.csv",
      csv(["id,name,email", `${id},New,`, `${id},Old,`, "none,X,", ",New,new@example.com"]),
    );
    const run = await customers(["import", path, "--dry-run"], { env });
    expect(run.exitCode).toBe(9);
    expect(run.stderr).toContain("1 would be created, 1 updated, 1 left unchanged, 1 would fail");
    expect(run.stdout).toContain(`row 1 (line 2): update customer ${id}\n  name: "Old" -> "New"`);
    expect(server.requests.every(({ method }) => method === "GET")).toBe(true);
    expect(readdirSync(directory)).toEqual(["in.csv"]);
  });

  test("to a protected profile without --yes", async () => {
    const { server, file, directory, env, customers } = await bulkPlace();
    const home = directory;
    await customers(["profile", "set", "prod", "--protected", "--url", server.url], { env, home });
    const path = file("in.csv", csv(["name,email", "New,new@example.com"]));
    const refused = await customers(["import", path, "--profile", "prod"], { env, home });
    expect([refused.exitCode, server.writes.length]).toEqual([2, 0]);
    expect((await customers(["import", path, "--profile", "prod", "--yes"], { env, home })).exitCode).toBe(0);
    expect(server.size).toBe(1);
  });
});

test("a restarting server is waited for", async () => {
  const { server, file, through, customers } = await bulkPlace();
  const { env, proxy } = await through(faults.dropRequests(5, "reads"));
  const { id } = server.add({});
  const path = file("in.csv", csv(["id,name", `${id},New`]));
  const run = await customers(["import", path], { env });
  expect([run.exitCode, server.read(id)?.name, proxy.seen >= 6]).toEqual([0, "New", true]);
});

test("429 with Retry-After slows the import down and fails no row", async () => {
  const { server, file, through, customers } = await bulkPlace();
  const { env } = await through(faults.answerInstead(429, { times: 20, retryAfter: 0 }));
  const path = file(
    "in.csv",
    csv(["name,email", ...Array.from({ length: 40 }, (_, at) => `N${at},n@example.com`)]),
  );
  expect((await customers(["import", path], { env })).exitCode).toBe(0);
  expect(server.size).toBe(40);
});

test("a terminal shows a bar, which is gone at the end; a pipe shows none", async () => {
  const { server, file, through, customers, command } = await bulkPlace();
  const { env } = await through(faults.slow(150));
  const path = file(
    "in.csv",
    csv(["name,email", ...Array.from({ length: 8 }, (_, at) => `N${at},n@example.com`)]),
  );
  const { screen, exitCode } = await runOnTerminal(["import", path, "--concurrency", "2"], { command, env });
  expect([exitCode, server.size]).toEqual([0, 8]);
  expect(screen).toMatch(/\[#+-+\] \d of 8 · \d+\/s · \d+ s left/);
  expect(screen).toContain("\r\u001b[2Kimport of ");
  const piped = await customers(["import", path], { env });
  expect(piped.stderr).not.toContain("\u001b");
});

test("no file that an import leaves behind holds the token, not even where the server echoes it", async () => {
  const { server, directory, file, customers, through } = await bulkPlace();
  const { id } = server.add({});
  const { env } = await through((exchange) => {
    const detail = `who is ${exchange.headers.authorization}?`;
    const headers = { "content-type": "application/problem+json" };
    exchange.answer({ status: 403, headers, body: Buffer.from(JSON.stringify({ status: 403, detail })) });
  });
  const path = file("in.csv", csv(["id,name", `${id},X`]));
  const { exitCode, stderr } = await customers(["import", path, "--verbose"], { env });
  expect([exitCode, stderr.includes("***?"), stderr.includes(TOKEN)]).toEqual([9, true, false]);
  const files = readdirSync(directory).toSorted();
  expect(files).toEqual(["in.csv", "in.csv.journal", "in.failed.csv"]);
  for (const name of files) expect(readFileSync(join(directory, name)).includes(TOKEN)).toBe(false);
});

/** No import creates a customer twice by accident: importing again, and matching by e-mail address. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bulkPlace, csv, namesOf, stopBulkPlaces } from "./support/bulk-place.ts";
import { OURS } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";

afterAll(stopBulkPlaces);

const ROWS = ["name,email", "A,a@example.com", "B,b@example.com"];

describe("a file that was imported to its end", () => {
  test("is refused before anything is sent, also with rows added or moved; --again creates them again", async () => {
    const { server, file, env, customers } = await bulkPlace();
    const path = file("in.csv", csv(ROWS));
    expect(await customers(["import", path], { env })).toMatchObject({ exitCode: 0 });
    for (const rows of [
      ROWS,
      [...ROWS, "C,c@example.com"],
      ["name,email", "C,c@example.com", ...ROWS.slice(1)],
    ]) {
      writeFileSync(path, csv(rows));
      for (const more of [[], ["--dry-run"], ["--restart"]]) {
        const refused = await customers(["import", path, ...more], { env });
        expect([refused.exitCode, server.size]).toEqual([2, 2]);
        expect(refused.stderr).toContain(`2 of its ${rows.length - 1} rows created customers`);
        expect(refused.stderr).toContain("--match email");
      }
    }
    writeFileSync(path, csv(ROWS));
    expect(await customers(["import", path, "--again"], { env })).toMatchObject({ exitCode: 0 });
    expect(server.size).toBe(4);
  });

  test("is imported again where its rows update, where they are others, and at another deployment", async () => {
    const { server, file, env, customers } = await bulkPlace();
    const { id } = server.add({ name: "Old" });
    const path = file("in.csv", csv(["id,name", `${id},New`]));
    expect((await customers(["import", path], { env })).exitCode).toBe(0);
    expect((await customers(["import", path], { env })).exitCode).toBe(0);
    writeFileSync(path, csv(ROWS));
    expect((await customers(["import", path], { env })).exitCode).toBe(0);
    writeFileSync(path, csv(["name,email", "Z,z@example.com"]));
    expect((await customers(["import", path], { env })).exitCode).toBe(0);
    const elsewhere = await bulkPlace();
    expect((await customers(["import", path], { env: elsewhere.env })).exitCode).toBe(0);
    expect([server.size, elsewhere.server.size]).toEqual([4, 1]);
  });
});

describe("--match email", () => {
  test("updates the one that exists, creates where none does, fails where several do; again it changes nothing", async () => {
    const { server, directory, file, env, customers } = await bulkPlace();
    server.add({ name: "Old A", email: "a@example.com" });
    for (const name of ["C1", "C2"]) server.add({ name, email: "c@example.com" });
    const path = file("in.csv", csv([...ROWS, "C,c@example.com", "Nobody,"]));
    const dry = await customers(["import", path, "--match", "email", "--dry-run"], { env });
    expect(dry.exitCode).toBe(9);
    expect(dry.stderr).toContain("1 would be created, 1 updated, 0 left unchanged, 2 would fail");
    const run = await customers(["import", path, "--match", "email"], { env });
    expect(run.exitCode).toBe(9);
    expect(run.stderr).toContain("1 created, 1 updated, 0 unchanged, 2 failed");
    expect(namesOf(server.all()).toSorted()).toEqual(["A", "B", "C1", "C2"]);
    const failed = await Bun.file(join(directory, "in.failed.csv")).text();
    expect(failed).toContain("several customers have the email c@example.com");
    expect(failed).toContain("no email to match");
    const writes = server.writes.length;
    const again = await customers(["import", path, "--match", "email"], { env });
    expect(again.stderr).toContain("0 created, 0 updated, 2 unchanged, 2 failed");
    expect(server.writes).toHaveLength(writes);
  });

  test("of two rows for one new address the first creates and the second updates", async () => {
    const { server, file, env, customers } = await bulkPlace();
    const rows = Array.from({ length: 20 }, (_, at) => `N${at},same@example.com`);
    const path = file("in.csv", csv(["name,email", ...rows]));
    const { stderr } = await customers(["import", path, "--match", "email"], { env });
    expect(stderr).toContain("1 created, 19 updated");
    expect(namesOf(server.all())).toEqual(["N19"]);
  });

  test("updates a customer whose address is stored in another case, also where the reply is lost", async () => {
    const { server, file, env, through, customers } = await bulkPlace();
    const { id } = server.add({ name: "Old", email: "a@example.com" });
    const path = file("in.csv", csv(["name,email", "A,A@Example.com"]));
    const { env: losing } = await through(faults.dropReplies());
    const run = await customers(["import", path, "--match", "email"], { env: losing });
    expect([run.exitCode, run.stderr]).toEqual([0, expect.stringContaining("1 updated")]);
    expect([server.size, server.read(id)]).toMatchObject([1, { name: "A", email: "A@Example.com" }]);
    const again = await customers(["import", path, "--match", "email"], { env });
    expect([again.exitCode, again.stderr]).toEqual([0, expect.stringContaining("1 unchanged")]);
  });

  test("leaves a customer alone whose address becomes another one after it was found", async () => {
    const { server, directory, file, through, customers } = await bulkPlace();
    const { id } = server.add({ name: "Old", email: "a@example.com" });
    const { env } = await through(faults.interfere(() => server.change(id, { email: "other@example.com" })));
    const path = file("in.csv", csv(["name,email", "A,A@Example.com"]));
    const run = await customers(["import", path, "--match", "email"], { env });
    expect([run.exitCode, server.size, server.read(id)?.name]).toEqual([9, 1, "Old"]);
    expect(readFileSync(join(directory, "in.failed.csv"), "utf8")).toContain("other@example.com");
  });

  test("after lost replies --resume creates none twice, even where the server ignores Idempotency-Key", async () => {
    const { server, file, through, customers } = await bulkPlace({ ...OURS, idempotencyKeys: false });
    const { env } = await through(faults.dropReplies(2));
    const path = file("in.csv", csv(ROWS));
    const run = (...more: string[]) => customers(["import", path, "--match", "email", ...more], { env });
    expect((await run()).exitCode).toBe(8);
    expect((await run("--resume")).exitCode).toBe(0);
    expect(namesOf(server.all()).toSorted()).toEqual(["A", "B"]);
  });

  test("a row that never left is not called perhaps twice, where the search before its second try stops", async () => {
    const { server, file, through, customers } = await bulkPlace({ ...OURS, idempotencyKeys: false });
    const refusing = (status: number) => ({ status, headers: {}, body: new Uint8Array() });
    let isDown = true;
    let creations = 0;
    const { env } = await through(async (exchange) => {
      if (!isDown) return exchange.answer(await exchange.forward());
      if (exchange.isWrite) creations += 1;
      // A proxy on the way refuses the creation; then the credentials end.
      if (exchange.isWrite) exchange.answer(refusing(407));
      else exchange.answer(creations > 0 ? refusing(401) : await exchange.forward());
    });
    const path = file("in.csv", csv(ROWS.slice(0, 2)));
    const run = (...more: string[]) => customers(["import", path, "--match", "email", ...more], { env });
    expect([(await run()).exitCode, creations]).toEqual([3, 1]);
    isDown = false;
    const { exitCode, stderr } = await run("--resume");
    expect([exitCode, stderr, server.size]).toEqual([0, expect.stringContaining("1 created"), 1]);
    expect(stderr).not.toContain("perhaps twice");
  });

  test("where the server has no search nothing is created, and the import stops", async () => {
    const { server, file, env, customers } = await bulkPlace();
    const bare = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: (request) => new Response(null, { status: request.url.endsWith("/search") ? 404 : 201 }),
    });
    const path = file("in.csv", csv(ROWS));
    const url = `http://127.0.0.1:${bare.port}`;
    const run = await customers(["import", path, "--match", "email"], {
      env: { ...env, CUSTOMERS_URL: url },
    });
    await bare.stop(true);
    expect([run.exitCode, server.size]).toEqual([1, 0]);
    expect(run.stderr).toContain("2 rows not done yet");
  });
});

describe("the rehearsal and the import agree", () => {
  test("on rows without any value: unchanged, and no request", async () => {
    const { server, file, env, customers } = await bulkPlace();
    const path = file(
      "in.csv",
      csv(["id,name", "00000000-0000-4000-8000-000000000000,", ` ${server.add({}).id} ,`]),
    );
    const dry = await customers(["import", path, "--dry-run"], { env });
    expect([dry.exitCode, dry.stderr]).toEqual([
      0,
      expect.stringContaining("2 left unchanged, 0 would fail"),
    ]);
    server.requests.length = 0;
    const run = await customers(["import", path], { env });
    expect([run.exitCode, run.stderr]).toEqual([0, expect.stringContaining("2 unchanged, 0 failed")]);
    expect(server.requests).toEqual([]);
  });

  test("on a column that the server does not know: the rehearsal names it", async () => {
    const { server, file, env, customers } = await bulkPlace();
    const path = file("in.csv", csv(["name,email,shoesize", "A,a@example.com,43"]));
    const { exitCode, stderr } = await customers(["import", path, "--dry-run"], { env });
    expect([exitCode, server.writes.length]).toEqual([6, 0]);
    expect(stderr).toContain("shoesize");
  });

  test("on a missing header: both refuse it", async () => {
    const { server, file, env, customers } = await bulkPlace();
    const path = file("in.csv", csv(["Ada,ada@example.com", "Bea,bea@example.com"]));
    for (const more of [[], ["--dry-run"]]) {
      const { exitCode, stderr } = await customers(["import", path, ...more], { env });
      expect([exitCode, server.requests.length]).toEqual([2, 0]);
      expect(stderr).toContain("line 1 names none of the columns id, name, email, status");
    }
  });
});

test("--failed that exists is refused before anything is sent", async () => {
  const { server, file, env, customers } = await bulkPlace();
  const failed = file("mine.csv", "kept\n");
  const { exitCode } = await customers(["import", file("in.csv", csv(ROWS)), "--failed", failed], { env });
  expect([exitCode, server.requests.length, existsSync(failed)]).toEqual([2, 0, true]);
});

test("a pipe is not told to --resume", async () => {
  const { env, customers, directory } = await bulkPlace();
  const stdin = csv(["name,email", "A,not an address"]);
  const failed = join(directory, "failed.csv");
  const run = await customers(["import", "-", "--failed", failed], { env, stdin });
  expect(run.exitCode).toBe(9);
  expect(run.stderr).not.toContain("--resume");
});

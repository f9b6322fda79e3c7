import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { damageRows, writeDatabase } from "../../../tests/support/database/database-files.ts";
import { type ServerProcess, Workplace } from "../../../tests/support/service/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

const backupFile = () => `${place.path}/backup.db`;

async function add(service: ServerProcess, name: string): Promise<number> {
  const body = { name, email: "x@example.com" };
  return (await service.send(place.adminToken, "POST", "/customers", { body })).status;
}

describe("backup", () => {
  test("of a service that is writing is one moment of it: whole, sound, its owner's alone", async () => {
    const service = await place.start({ args: ["--no-samples"] });
    const acknowledged: string[] = [];
    let isOver = false;
    const writing = Array.from({ length: 4 }, async (_, writer) => {
      for (let n = 0; !isOver; n += 1) {
        const name = `w${writer} n${n}`;
        expect(await add(service, name)).toBe(201);
        acknowledged.push(name);
      }
    });
    while (acknowledged.length < 20) await Bun.sleep(1);
    const before = [...acknowledged];
    const outcome = await place.run(["backup", backupFile()]);
    isOver = true;
    await Promise.all(writing);
    expect(outcome.code).toBe(0);
    expect(outcome.stdout).toContain(backupFile());
    expect(statSync(backupFile()).mode & 0o777).toBe(0o600);
    expect(readdirSync(place.path).sort()).toEqual(["backup.db", "data"]);

    const { adminToken } = place;
    const checked = await place.run(["check"], {
      DATABASE_URL: `sqlite:${backupFile()}`,
    });
    expect(checked).toMatchObject({ code: 0, stderr: "" });
    await service.end();
    expect((await place.run(["restore", backupFile(), "--force"])).code).toBe(0);
    const restored = await place.start();
    const names = new Set(
      (await restored.send(adminToken, "GET", "/customers?limit=500&fields=name")).json.items.map(
        (item: { customer: { name: string } }) => item.customer.name,
      ),
    );
    // All that was acknowledged before it began; of each writer's later ones a beginning without a gap.
    for (const name of before) expect(names).toContain(name);
    for (let writer = 0; writer < 4; writer += 1) {
      const mine = [...names].filter((name) => String(name).startsWith(`w${writer} `)).length;
      for (let n = 0; n < mine; n += 1) expect(names).toContain(`w${writer} n${n}`);
    }
  });

  test("never overwrites, and leaves nothing behind where it fails", async () => {
    await writeDatabase(place.database, "Ada");
    writeFileSync(backupFile(), "mine");
    const outcome = await place.command(["backup", backupFile()]);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain("exists already; a backup never overwrites");
    expect(readFileSync(backupFile(), "utf8")).toBe("mine");

    const nowhere = await place.command(["backup", `${place.path}/no/such/directory/backup.db`]);
    expect(nowhere.code).toBe(1);
    expect(nowhere.stderr).toBe(
      `The directory ${place.path}/no/such/directory does not exist. Create it, or name another file.\n`,
    );
    const missing = await place.command(["backup", "b.db"], { DATABASE_URL: "sqlite:missing.db" });
    expect(missing).toMatchObject({
      code: 1,
      stderr: "missing.db does not exist. Name a database that does.\n",
    });
    expect(readdirSync(place.path).sort()).toEqual(["backup.db", "data"]);
    expect(readdirSync(`${place.path}/data`).sort()).toEqual(["customers.db"]);
  });

  test("of a damaged database says that this one is damaged, not the copy", async () => {
    await writeDatabase(place.database, ...Array.from({ length: 200 }, (_, n) => `n${n}`));
    damageRows(place.database);
    const outcome = await place.command(["backup", backupFile()]);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toStartWith(`${place.database} is damaged: `);
    expect(readdirSync(place.path)).toEqual(["data"]);
  });

  test("two at once to one name: one is made, the other is refused", async () => {
    await writeDatabase(place.database, "Ada");
    const outcomes = await Promise.all([0, 1, 2].map(() => place.run(["backup", backupFile()])));
    expect(outcomes.map((outcome) => outcome.code).sort()).toEqual([0, 1, 1]);
    expect((await place.run(["check"], { DATABASE_URL: `sqlite:${backupFile()}` })).code).toBe(0);
    expect(readdirSync(place.path).sort()).toEqual(["backup.db", "data"]);
  });
});

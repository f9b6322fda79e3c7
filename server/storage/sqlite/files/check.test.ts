import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { damage, writeDatabase } from "../../../tests/support/database/database-files.ts";
import { Workplace } from "../../../tests/support/service/server-process.ts";
import { SCHEMA_VERSION } from "./schema.ts";

const PAGE_BYTES = 4096;

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

describe("check", () => {
  test("says that the structure of a sound database is sound, with its contents counted, and leaves no file behind", async () => {
    await writeDatabase(place.database, "Ada");
    const outcome = await place.run(["check"]);
    expect(outcome).toEqual({
      code: 0,
      stderr: "",
      stdout: `${place.database}: the structure is sound (schema ${SCHEMA_VERSION}, 1 customers, 0 tokens)\n`,
    });
    expect(readdirSync(`${place.path}/data`).sort()).toEqual(["customers.db"]);
  });

  test("can be asked while the service runs", async () => {
    const service = await place.start();
    expect(await place.run(["check"])).toMatchObject({ code: 0, stderr: "" });
    expect((await service.send(null, "GET", "/readyz")).status).toBe(200);
  });

  test.each([
    ["rubbish over its pages", () => damage(place.database), "damaged"],
    ["pages cut away", () => truncateSync(place.database, 8192), "damaged"],
    ["a broken rule", breakRule, "CHECK constraint failed in customers"],
    ["no database at all", () => writeFileSync(place.database, "x".repeat(9000)), "not a SQLite database"],
  ])("exits with 1 and says what it found: %s", async (_, ruin, says) => {
    await writeDatabase(place.database, "Ada");
    ruin();
    const outcome = await place.command(["check"]);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain(says);
    expect(outcome.stderr).not.toContain("    at ");
  });
});

test("a command that meets damage says so, wherever it is", async () => {
  await place.prepare();
  const whole = readFileSync(place.database);
  const said = new Set<string>();
  for (let at = PAGE_BYTES; at < whole.length; at += PAGE_BYTES) {
    writeFileSync(place.database, Buffer.from(whole).fill(0xff, at, at + PAGE_BYTES));
    const { code, stderr } = await place.command(["token", "list"]);
    if (code === 1) said.add(stderr);
  }
  expect(said.size).toBeGreaterThan(0);
  for (const text of said) expect(text).toContain("damaged");
  for (const text of said) expect(text).toContain("Run `check`");
});

/** A row that no statement of the service could write. */
function breakRule(): void {
  const db = new Database(place.database);
  db.run("PRAGMA ignore_check_constraints = ON");
  db.run("UPDATE customers SET status = 'unheard-of' WHERE name = 'Ada'");
  db.close();
}

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { projectionOf } from "../../../domain/projection.ts";
import { openDatabase } from "../../../storage/sqlite/files/sqlite-database.ts";
import { MEMORY } from "../../../storage/sqlite/files/sqlite-url.ts";
import { SqliteStorage } from "../../../storage/sqlite/sqlite-storage.ts";
import { TEST_ORIGIN } from "../service/test-origin.ts";

const TENANT = "default";
const PAGE_BYTES = 4096;

/** Makes a database with customers of these names, without a process, which would cost a second each time. */
export async function writeDatabase(file: string, ...names: string[]): Promise<void> {
  mkdirSync(dirname(file), { recursive: true });
  const storage = SqliteStorage.open(file);
  for (const name of names) {
    await storage.customers.create(
      TENANT,
      { name, email: "x@example.com", status: "active" },
      0,
      null,
      TEST_ORIGIN,
    );
  }
  await storage.close();
}

/** The names of the customers in a file that no process has open. */
export async function namesIn(file: string): Promise<string[]> {
  const storage = SqliteStorage.open(file);
  const filter = { tenant: TENANT, after: null, limit: 500, status: null, email: null };
  const { items } = storage.customers.page(filter, projectionOf(["name"]));
  await storage.close();
  return items.map((item) => item.fields.name ?? "");
}

/** Writes rubbish over most of a file, or of a copy of another, its header left as it is. */
export function damage(file: string, from = file): void {
  const bytes = readFileSync(from);
  bytes.fill(0x5a, PAGE_BYTES + 8);
  writeFileSync(file, bytes);
}

/** Writes rubbish over the pages that rows have added: the schema, which is read first, stays as it is. */
export function damageRows(file: string): void {
  const empty = openDatabase(MEMORY);
  const schemaPages = empty.query<{ page_count: number }, []>("PRAGMA page_count").get()?.page_count ?? 0;
  empty.close();
  const bytes = readFileSync(file);
  bytes.fill(0x5a, schemaPages * PAGE_BYTES);
  writeFileSync(file, bytes);
}

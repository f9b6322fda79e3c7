import { Database } from "bun:sqlite";
import { copyFileSync, writeFileSync } from "node:fs";
import { drawRowVersion } from "../domain/entity-tag.ts";
import { openDatabase } from "../storage/sqlite/files/sqlite-database.ts";
import { SqliteStorage } from "../storage/sqlite/sqlite-storage.ts";

export type SeededDatabase = {
  readonly path: string;
  readonly idsFile: string;
  readonly ids: readonly string[];
};

/** How many ids the load asks for: drawn from all customers, so that reads are spread over the whole file. */
const SAMPLE_MAX = 100_000;

/**
 * A database of this many customers of the tenant `default`, and a file with the ids that the load asks for.
 */
export function seedDatabase(path: string, customers: number): SeededDatabase {
  const db = openDatabase(path);
  const insert = db.prepare(
    "INSERT INTO customers (tenant, id, name, email, email_folded, status, row_version, created_at) VALUES ('default', ?1, ?2, ?3, ?3, 'active', ?4, 0)",
  );
  const ids: string[] = [];
  db.transaction(() => {
    for (let index = 0; index < customers; index += 1) {
      const id = Bun.randomUUIDv7();
      const digits = String(index).padStart(7, "0");
      insert.run(id, `Customer ${digits}`, `customer${digits}@example.com`, drawRowVersion());
      ids.push(id);
    }
  })();
  insert.finalize();
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
  for (let index = ids.length - 1; index > 0; index -= 1) {
    const other = Math.floor(Math.random() * (index + 1));
    [ids[index], ids[other]] = [ids[other] as string, ids[index] as string];
  }
  const sample = ids.slice(0, SAMPLE_MAX);
  const idsFile = `${path}.ids`;
  writeFileSync(idsFile, sample.join("\n"));
  return { path, idsFile, ids: sample };
}

/** @returns a token that may read and write all of its customers */
export async function benchToken({ path }: SeededDatabase): Promise<string> {
  const storage = SqliteStorage.open(path);
  const holder = { client: "bench", role: "admin", tenant: "default" };
  const { token } = await storage.tokens.create(holder, Date.now(), null);
  await storage.close();
  return token;
}

/** A peer gets a copy of its own, so that nobody's lock is another's delay. */
export function copyDatabase({ path, idsFile, ids }: SeededDatabase, name: string): SeededDatabase {
  const copy = `${path}.${name}`;
  copyFileSync(path, copy);
  return { path: copy, idsFile, ids };
}

export function integrity(path: string): string {
  const db = new Database(path, { readonly: true });
  try {
    return db.query<{ integrity_check: string }, []>("PRAGMA integrity_check").get()?.integrity_check ?? "";
  } finally {
    db.close();
  }
}

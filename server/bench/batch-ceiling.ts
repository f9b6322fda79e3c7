import { Database } from "bun:sqlite";
import { drawRowVersion } from "../domain/entity-tag.ts";
import type { SeededDatabase } from "./seeded-database.ts";

/**
 * The ceiling of durable writes: the same conditional UPDATE in batches, without HTTP.
 *
 * @returns writes a second
 */
export function batchCeiling({ path, ids }: SeededDatabase, batch: number, seconds: number): number {
  const db = new Database(path);
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  const update = db.prepare(
    "UPDATE customers SET name = ?, email = ?, row_version = ? WHERE tenant = 'default' AND id = ? AND row_version = ?",
  );
  const customers = ids.slice(0, batch * 2).map((id) => ({
    id,
    version: (db.query("SELECT row_version FROM customers WHERE id = ?").get(id) as { row_version: string })
      .row_version,
  }));
  const endsAt = performance.now() + seconds * 1000;
  const startedAt = performance.now();
  let writes = 0;
  for (let round = 0; performance.now() < endsAt; round += 1) {
    db.run("BEGIN IMMEDIATE");
    for (let index = 0; index < batch; index += 1) {
      const customer = customers[(round * batch + index) % customers.length];
      if (customer === undefined) throw new Error("no customers");
      const next = drawRowVersion();
      const { changes } = update.run(
        `Writer ${round}`,
        "writer@example.com",
        next,
        customer.id,
        customer.version,
      );
      if (changes !== 1) throw new Error("a conditional update did not apply");
      customer.version = next;
    }
    db.run("COMMIT");
    writes += batch;
  }
  const elapsed = (performance.now() - startedAt) / 1000;
  update.finalize();
  db.close();
  return writes / elapsed;
}

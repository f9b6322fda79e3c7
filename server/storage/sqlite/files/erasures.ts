import type { Database } from "bun:sqlite";
import { openExistingDatabase } from "./sqlite-database.ts";

/** A customer who was erased, by an operator. */
export type Erasure = { readonly tenant: string; readonly customerId: string };

/**
 * What a database that is about to be replaced says of erasures.
 *
 * @returns null where it can't be read, as when it is damaged
 */
export function erasuresIn(path: string, lockWaitMs?: number): readonly Erasure[] | null {
  try {
    const db = openExistingDatabase(path, lockWaitMs);
    try {
      if (!hasTable(db, "audit_values")) return [];
      const sql = "SELECT DISTINCT tenant, customer_id AS customerId FROM audit WHERE operation = 'erase'";
      return db.query<Erasure, []>(sql).all();
    } finally {
      db.close();
    }
  } catch {
    return null;
  }
}

/** @returns those of the erasures whose customer a database still holds, itself or in values of its audit trail */
export function heldIn(path: string, erasures: readonly Erasure[], lockWaitMs?: number): readonly Erasure[] {
  if (erasures.length === 0) return [];
  const db = openExistingDatabase(path, lockWaitMs);
  try {
    const sources = ["SELECT tenant, id AS customer_id FROM customers"];
    if (hasTable(db, "audit_values"))
      sources.push("SELECT tenant, customer_id FROM audit_values JOIN audit USING (tenant, number)");
    // All of them in one look at the values, which have no index by customer.
    const sql = `SELECT DISTINCT tenant, customer_id AS customerId FROM (${sources.join(" UNION ALL ")})
      WHERE (tenant, customer_id) IN (SELECT value ->> 'tenant', value ->> 'customerId' FROM json_each(?))`;
    return db.query<Erasure, [string]>(sql).all(JSON.stringify(erasures));
  } finally {
    db.close();
  }
}

function hasTable(db: Database, name: string): boolean {
  return db.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== null;
}

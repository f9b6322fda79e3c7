import { CHAIN_START, type ChainLink, linkAfter } from "../../domain/audit/audit-chain.ts";
import { auditEntry } from "../audit-row.ts";
import { SEALED_MAX } from "../audit-store.ts";
import type { LaneConnection } from "./connection/lane.ts";
import { arrayLiteral, columnsOf } from "./rows/array-literal.ts";
import {
  AWAIT_SEALING_TURN_TEXT,
  CHAIN_ENDS_TEXT,
  type PostgresAuditRow,
  SEAL_TEXT,
  SEALING_TURN_TEXT,
  UNSEALED_TEXT,
} from "./rows/audit-sql.ts";

/**
 * Gives rows of the audit trail their place, the oldest first, inside a transaction.
 *
 * @param isWaiting whether to wait while another service does it
 * @returns how many; without waiting 0 as well while another service does it
 */
export async function sealRows(transaction: LaneConnection, isWaiting: boolean): Promise<number> {
  const turn = isWaiting ? AWAIT_SEALING_TURN_TEXT : SEALING_TURN_TEXT;
  if ((await transaction.run(turn, [])).length === 0) return 0;
  const rows = await transaction.run<PostgresAuditRow>(UNSEALED_TEXT, [String(SEALED_MAX)]);
  if (rows.length === 0) return 0;
  const tenants = arrayLiteral([...new Set(rows.map(({ tenant }) => tenant))]);
  const found = await transaction.run<{ tenant: string; number: string; hash: string }>(CHAIN_ENDS_TEXT, [
    tenants,
  ]);
  const ends = new Map(found.map(({ tenant, number, hash }) => [tenant, { number: Number(number), hash }]));
  const places = rows.map((row) => {
    const link: ChainLink = linkAfter(ends.get(row.tenant) ?? CHAIN_START, auditEntry(row));
    ends.set(row.tenant, link);
    return [row.tenant, row.customer_id, row.id, String(link.number), link.hash];
  });
  await transaction.run(SEAL_TEXT, columnsOf(places));
  return rows.length;
}

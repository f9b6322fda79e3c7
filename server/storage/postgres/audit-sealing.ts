import { CHAIN_START, type ChainLink, linkAfter } from "../../domain/audit/audit-chain.ts";
import { auditEntry } from "../audit/audit-row.ts";
import { SEALED_MAX } from "../audit/audit-store.ts";
import type { LaneConnection } from "./connection/lane.ts";
import { arrayLiteral, columnsOf } from "./rows/array-literal.ts";
import { type PostgresAuditRow, SELECT_AUDIT_ALONE } from "./rows/audit-sql.ts";

/**
 * Gives rows of the audit trail their place, the oldest first, inside a transaction.
 *
 * @param isWaiting whether to wait while another service does it
 * @returns how many; without waiting 0 as well while another service does it
 */
export async function sealRows(transaction: LaneConnection, isWaiting: boolean): Promise<number> {
  // One service seals at a time; the others get no row. Without rows to seal none takes the lock, which would cost
  // each service a commit a second. Readers of `meta` are not held up.
  const turn = `SELECT only_row FROM meta
    WHERE EXISTS (SELECT FROM audit WHERE number IS NULL) FOR UPDATE ${isWaiting ? "" : "SKIP LOCKED"}`;
  if ((await transaction.run(turn, [])).length === 0) return 0;
  // In the order of writing: no row of a customer becomes visible before its earlier ones.
  const unsealed = `${SELECT_AUDIT_ALONE} WHERE a.number IS NULL ORDER BY a.id LIMIT $1::int`;
  const rows = await transaction.run<PostgresAuditRow>(unsealed, [String(SEALED_MAX)]);
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
  await transaction.run(
    `UPDATE audit a SET number = i.number, hash = decode(i.hash, 'hex')
      FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[]) AS i(tenant, customer_id, id, number, hash)
      WHERE a.tenant = i.tenant AND a.customer_id = i.customer_id AND a.id = i.id AND a.number IS NULL`,
    columnsOf(places),
  );
  return rows.length;
}

/** $1 tenants. The last row of each that has a place, or what the first one is to follow; none for a new tenant. */
const CHAIN_ENDS_TEXT = `SELECT i.tenant, coalesce(a.number, s.number) AS number, encode(coalesce(a.hash, s.hash), 'hex') AS hash
  FROM unnest($1::text[]) AS i(tenant)
  LEFT JOIN LATERAL (SELECT number, hash FROM audit
    WHERE audit.tenant = i.tenant AND number IS NOT NULL ORDER BY number DESC LIMIT 1) AS a ON true
  LEFT JOIN audit_anchors s ON s.tenant = i.tenant
  WHERE a.number IS NOT NULL OR s.number IS NOT NULL`;

import { boundVersions, type KnownVersion, type WriteCount } from "../../../domain/rollout/write-count.ts";
import { WRITE_COUNT_COLUMNS } from "../../write-counts/write-count-columns.ts";
import { COUNTS_MAX } from "../../write-counts/write-count-store.ts";
import type { StatementCache } from "./statement-cache.ts";

/** The writes on counts, on the writer's connection inside its transaction. */
export const COUNT_WRITES = { addWriteCounts, purgeWriteCounts };

const ADD = `INSERT INTO write_counts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET
    with_if_match = with_if_match + excluded.with_if_match,
    allowed = allowed + excluded.allowed,
    refused = refused + excluded.refused,
    first_at = min(first_at, excluded.first_at),
    last_with_at = coalesce(max(last_with_at, excluded.last_with_at), last_with_at, excluded.last_with_at),
    first_without_at = coalesce(min(first_without_at, excluded.first_without_at), first_without_at, excluded.first_without_at),
    last_without_at = coalesce(max(last_without_at, excluded.last_without_at), last_without_at, excluded.last_without_at)`;

function addWriteCounts(
  statements: StatementCache,
  { counts }: { readonly counts: readonly WriteCount[] },
): void {
  const clientDays = new Map(
    counts.map(({ tenant, client, day }) => [`${tenant} ${client} ${day}`, { tenant, client, day }]),
  );
  const known = [...clientDays.values()].flatMap(({ tenant, client, day }) =>
    statements.all<KnownVersion>(
      "SELECT DISTINCT tenant, client, day, client_version AS version FROM write_counts WHERE tenant = ? AND client = ? AND day = ?",
      ...[tenant, client, day],
    ),
  );
  for (const count of boundVersions(counts, known)) {
    statements.run(
      ADD,
      ...[count.tenant, count.client, count.day, count.version, count.method],
      ...[count.withIfMatch, count.allowed, count.refused],
      ...[count.firstAtMs, count.lastWithAtMs, count.firstWithoutAtMs, count.lastWithoutAtMs],
    );
  }
}

/** @returns how many counts were deleted */
function purgeWriteCounts(statements: StatementCache, { beforeDay }: { readonly beforeDay: string }): number {
  return statements.run(
    `DELETE FROM write_counts WHERE (tenant, client, day, client_version, method) IN
      (SELECT tenant, client, day, client_version, method FROM write_counts WHERE day < ? ORDER BY day LIMIT ?)`,
    ...[beforeDay, COUNTS_MAX],
  );
}

export const PAGE_OF_COUNTS = `SELECT ${WRITE_COUNT_COLUMNS} FROM write_counts
  WHERE (tenant, client, day, client_version, method) > (?, ?, ?, ?, ?) AND day >= ?
  ORDER BY tenant, client, day, client_version, method LIMIT ?`;

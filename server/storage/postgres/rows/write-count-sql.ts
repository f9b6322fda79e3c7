import type { WriteCount } from "../../../domain/rollout/write-count.ts";

/** $1 tenants, $2 clients, $3 days. */
export const KNOWN_VERSIONS_TEXT = `SELECT DISTINCT w.tenant, w.client, w.day, w.client_version AS version
  FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::text[], $3::text[]) AS u(tenant, client, day)) AS i
  JOIN write_counts w ON w.tenant = i.tenant AND w.client = i.client AND w.day = i.day`;

/** A parameter for each column. Sorted, so that two services that add the same rows do not lock each other. */
export const ADD_COUNTS_TEXT = `INSERT INTO write_counts AS w
    (tenant, client, day, client_version, method, with_if_match, allowed, refused, first_at, last_with_at, first_without_at, last_without_at)
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
      $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
    AS i(tenant, client, day, client_version, method, with_if_match, allowed, refused, first_at, last_with_at, first_without_at, last_without_at)
  ORDER BY tenant COLLATE "C", client COLLATE "C", day COLLATE "C", client_version COLLATE "C", method COLLATE "C"
  ON CONFLICT (tenant, client, day, client_version, method) DO UPDATE SET
    with_if_match = w.with_if_match + EXCLUDED.with_if_match,
    allowed = w.allowed + EXCLUDED.allowed,
    refused = w.refused + EXCLUDED.refused,
    first_at = least(w.first_at, EXCLUDED.first_at),
    last_with_at = greatest(w.last_with_at, EXCLUDED.last_with_at),
    first_without_at = least(w.first_without_at, EXCLUDED.first_without_at),
    last_without_at = greatest(w.last_without_at, EXCLUDED.last_without_at)`;

/** The parameters of {@link ADD_COUNTS_TEXT}, before they become columns. */
export function countParams(count: WriteCount): (string | null)[] {
  const time = (timeMs: number | null): string | null => (timeMs === null ? null : String(timeMs));
  return [
    ...[count.tenant, count.client, count.day, count.version, count.method],
    ...[String(count.withIfMatch), String(count.allowed), String(count.refused), String(count.firstAtMs)],
    ...[time(count.lastWithAtMs), time(count.firstWithoutAtMs), time(count.lastWithoutAtMs)],
  ];
}

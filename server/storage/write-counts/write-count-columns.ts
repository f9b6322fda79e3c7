/**
 * The columns of the table `write_counts` as a WriteCount has them, in every engine. Counts and times are read as
 * doubles, which hold them exactly: PostgreSQL's driver gives a bigint as text.
 */
export const WRITE_COUNT_COLUMNS = `tenant, client, day, client_version AS version, method,
  CAST(with_if_match AS double precision) AS "withIfMatch",
  CAST(allowed AS double precision) AS allowed,
  CAST(refused AS double precision) AS refused,
  CAST(first_at AS double precision) AS "firstAtMs",
  CAST(last_with_at AS double precision) AS "lastWithAtMs",
  CAST(first_without_at AS double precision) AS "firstWithoutAtMs",
  CAST(last_without_at AS double precision) AS "lastWithoutAtMs"`;

import { afterAll, expect, test } from "bun:test";
import { withPostgresSource } from "../../../storage/postgres/postgres-copy.ts";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import { PostgresCluster } from "../../support/postgres-cluster.ts";

const cluster = await PostgresCluster.start();
afterAll(() => cluster.stop());

test("a copy reads each row of the audit trail once, not once a page", async () => {
  const url = await cluster.createDatabase();
  await (await PostgresStorage.open(url)).close();
  const rows = 6_000;
  await cluster.query(
    url,
    `INSERT INTO customers.audit (tenant, customer_id, number, time, client, token_prefix, request_id, operation, changed,
      without_if_match, with_key, hash)
    SELECT 't' || n % 2, gen_random_uuid(), n / 2 + 1, 0, 'c', 'p', 'r', 'patch', '', 0, 0, decode(repeat('00', 32), 'hex')
    FROM generate_series(0, ${rows - 1}) AS n;
    ANALYZE customers.audit;
    SELECT pg_stat_reset()`,
  );
  let read = 0;
  await withPostgresSource(url, {}, async (source) => {
    for (let after: readonly (string | null)[] | null = null; ; ) {
      const page = await source.page("audit", after, 300);
      read += page.length;
      if (page.length === 0) break;
      after = page.at(-1) ?? null;
    }
  });
  const text = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'audit'";
  const counted = async () => Number(await cluster.query(url, text));
  // A session hands over its counts when it ends.
  while ((await counted()) < rows) await Bun.sleep(20);
  expect(read).toBe(rows);
  expect(await counted()).toBeLessThan(2 * rows);
}, 30_000);

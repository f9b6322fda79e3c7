import { afterAll, expect, test } from "bun:test";
import type { RowVersion } from "../../../domain/entity-tag.ts";
import { projectionOf } from "../../../domain/projection.ts";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";
import { TEST_ORIGIN } from "../../support/service/test-origin.ts";

const WORKERS = 16;
const ALL = projectionOf(["id", "name", "email", "status"]);

const cluster = await PostgresCluster.start();
afterAll(() => cluster.stop());

// What a newer version's migration does while this one still runs. The
// second changes what a prepared statement returns, which PostgreSQL refuses.
test.each([
  ["rewrites the table", ["ADD COLUMN extra text DEFAULT md5(random()::text)", "DROP COLUMN extra"]],
  [
    "changes the type of a column and back",
    ["ALTER COLUMN email TYPE varchar(400)", "ALTER COLUMN email TYPE text"],
  ],
])(
  "a migration that %s under load costs no request its answer, and no customer its history",
  async (_, changes) => {
    const url = await cluster.createDatabase();
    const servers = [await PostgresStorage.open(url), await PostgresStorage.open(url)];
    const store = (index: number) => {
      const server = servers[index % servers.length];
      if (server === undefined) throw new Error("no server");
      return server.customers;
    };
    let isOver = false;
    let turns = 0;
    const working = Promise.all(
      Array.from({ length: WORKERS }, async (_worker, worker) => {
        const fields = { name: "0", email: `${worker}@example.com`, status: "active" } as const;
        const made = await store(worker).create("t", fields, Date.now(), null, TEST_ORIGIN);
        if (made.kind !== "created") throw new Error(made.kind);
        let expected: RowVersion = made.rowVersion;
        for (let turn = 1; !isOver; turn += 1) {
          const target = { tenant: "t", id: made.id, expected };
          const outcome = await store(worker + turn).update(
            target,
            { name: `${turn}` },
            ALL,
            null,
            TEST_ORIGIN,
          );
          if (outcome.kind !== "applied") throw new Error(outcome.kind);
          expected = outcome.rowVersion;
          const wanted = { id: made.id, ...fields, name: `${turn}` };
          expect(outcome.fields).toEqual(wanted);
          expect(await store(turn).read("t", made.id, ALL)).toEqual({ rowVersion: expected, fields: wanted });
          const page = { tenant: "t", after: null, limit: 2, status: null, email: fields.email };
          expect((await store(turn).page(page, ALL)).items).toHaveLength(1);
          turns += 1;
        }
      }),
    );
    try {
      for (let round = 0; round < 3; round += 1) {
        for (const change of changes) {
          const before = turns;
          await cluster.query(url, `SET lock_timeout = '3s'; ALTER TABLE customers.customers ${change}`);
          while (turns < before + WORKERS) await Promise.race([working, Bun.sleep(5)]);
        }
      }
    } finally {
      isOver = true;
    }
    await working;
    await Promise.all(servers.map((server) => server.close()));
  },
);

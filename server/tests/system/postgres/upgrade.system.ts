import { afterAll, beforeEach, expect, test } from "bun:test";
import { projectionOf } from "../../../domain/projection.ts";
import { migratePostgres } from "../../../storage/postgres/migrate-postgres.ts";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import { grantsFor } from "../../../storage/postgres/schema/grants.ts";
import { POSTGRES_SCHEMA_1 } from "../../support/database/former-schemas.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";

const cluster = await PostgresCluster.start();
afterAll(() => cluster.stop());

const ID = "01890000-0000-7000-8000-000000000000";

let url: string;
/** As schema 1 was left by its version, with rows. */
beforeEach(async () => {
  url = await cluster.createDatabase();
  await cluster.query(
    url,
    `SET search_path = customers; ${POSTGRES_SCHEMA_1.join(";\n")};
     INSERT INTO meta VALUES (1, 'customers-server', 1, 1, decode(repeat('ab', 32), 'hex'));
     INSERT INTO tenants VALUES ('t', '${ID}', NULL);
     INSERT INTO customers VALUES ('t', '${ID}', 'Ada', 'A@b', 'a@b', 'active', 'AAAAAAAAAAAAAAAA', 7)`,
  );
});

/** All that a dump says of the schema. */
async function schemaOf(database: string): Promise<string> {
  return await cluster.query(
    database,
    `SELECT table_name, ordinal_position, column_name, data_type, is_nullable, column_default, is_identity
       FROM information_schema.columns WHERE table_schema = 'customers' ORDER BY 1, 2;
     SELECT indexdef FROM pg_indexes WHERE schemaname = 'customers' ORDER BY 1;
     SELECT conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint
       WHERE connamespace = 'customers'::regnamespace ORDER BY 1, 2;
     SELECT pg_get_triggerdef(oid) FROM pg_trigger
       WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'customers.%' ORDER BY 1;
     SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'customers'::regnamespace ORDER BY proname`,
  );
}

test("a service does not start on the schema of the version before: `migrate` is the owner's", async () => {
  await expect(PostgresStorage.open(url)).rejects.toThrow("Run `customers-server migrate`");
});

test("`migrate` carries it over, to the very schema of a new database, and keeps its rows", async () => {
  const fresh = await cluster.createDatabase();
  expect(await migratePostgres(fresh, {})).toBe("made");
  expect(await migratePostgres(url, {})).toBe("carried-over");
  expect(await migratePostgres(url, {})).toBe("up-to-date");
  expect(await schemaOf(url)).toBe(await schemaOf(fresh));
  const storage = await PostgresStorage.open(url);
  expect(await storage.customers.read("t", ID, projectionOf(["name"]))).toMatchObject({
    fields: { name: "Ada" },
  });
  await storage.close();
});

test("several migrations at the same moment carry it over once", async () => {
  const outcomes = await Promise.all(Array.from({ length: 6 }, () => migratePostgres(url, {})));
  expect(outcomes.filter((outcome) => outcome === "carried-over")).toHaveLength(1);
});

test("a role that ran the version before runs this one after `grants`", async () => {
  await cluster.query(url, "CREATE ROLE runner LOGIN");
  await migratePostgres(url, {});
  await cluster.query(url, grantsFor("runner"));
  const storage = await PostgresStorage.open(url.replace("postgres@", "runner@"));
  expect(await storage.customers.read("t", ID, projectionOf(["name"]))).toMatchObject({
    fields: { name: "Ada" },
  });
  await storage.close();
});

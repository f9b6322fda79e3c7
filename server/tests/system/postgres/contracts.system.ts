import { afterAll } from "bun:test";
import { auditStoreContract } from "../../../storage/audit/audit-store.contract.ts";
import { customerStoreContract } from "../../../storage/customers/customer-store.contract.ts";
import { personStoreContract } from "../../../storage/person-store.contract.ts";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import { grantsFor } from "../../../storage/postgres/schema/grants.ts";
import { tokenStoreContract } from "../../../storage/tokens/token-store.contract.ts";
import { writeCountStoreContract } from "../../../storage/write-counts/write-count-store.contract.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";

const cluster = await PostgresCluster.start();
afterAll(() => cluster.stop());

await cluster.query("postgres", "CREATE ROLE runner LOGIN");

/** A database with the schema, for a role that may run the service and nothing more. */
async function databaseOfRunner(level: string): Promise<string> {
  const url = await cluster.createDatabase({ default_transaction_isolation: level });
  await (await PostgresStorage.open(url)).close();
  await cluster.query(url, grantsFor("runner", { hasAuditRetention: true, mayErase: true }));
  return url.replace("postgres@", "runner@");
}

for (const level of ["read committed", "repeatable read", "serializable"]) {
  const [customers, tokens] = [await databaseOfRunner(level), await databaseOfRunner(level)];
  const [counts, audit] = [await databaseOfRunner(level), await databaseOfRunner(level)];
  const persons = await databaseOfRunner(level);
  await customerStoreContract(`PostgreSQL, ${level}`, () => PostgresStorage.open(customers));
  await tokenStoreContract(`PostgreSQL, ${level}`, () => PostgresStorage.open(tokens));
  await writeCountStoreContract(`PostgreSQL, ${level}`, () => PostgresStorage.open(counts));
  await personStoreContract(`PostgreSQL, ${level}`, () => PostgresStorage.open(persons));
  await auditStoreContract(
    `PostgreSQL, ${level}`,
    () => PostgresStorage.open(audit),
    async (sql) => (await cluster.query(audit, `SET search_path = customers; ${sql}`)).split("\n").at(-1),
  );
}

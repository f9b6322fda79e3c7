import { afterAll } from "bun:test";
import { customerStoreContract } from "../../../storage/customer-store.contract.ts";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import { tokenStoreContract } from "../../../storage/token-store.contract.ts";
import { PostgresCluster } from "../../support/postgres-cluster.ts";

const cluster = await PostgresCluster.start();
afterAll(() => cluster.stop());

for (const level of ["read committed", "repeatable read", "serializable"]) {
  const url = await cluster.createDatabase({ default_transaction_isolation: level });
  await customerStoreContract(`PostgreSQL, ${level}`, () => PostgresStorage.open(url));
  const other = await cluster.createDatabase({ default_transaction_isolation: level });
  await tokenStoreContract(`PostgreSQL, ${level}`, () => PostgresStorage.open(other));
}

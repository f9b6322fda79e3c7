import type { CreateOutcome } from "../customer-store.ts";
import { type Creation, createCustomer } from "./customer-writes.ts";
import type { StatementCache } from "./statement-cache.ts";
import { insertToken, type NewToken } from "./token-writes.ts";

/** What a first start makes, as one write: cut off, it is whole or never was. */
export const FIRST_WRITES = { makeFirstRows };

function makeFirstRows(
  statements: StatementCache,
  { token, customers }: { readonly token: NewToken; readonly customers: readonly Creation[] },
): CreateOutcome[] {
  insertToken(statements, token);
  return customers.map((customer) => createCustomer(statements, customer));
}

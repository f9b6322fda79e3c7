import type { CustomerFields } from "../../../domain/customer/customer.ts";
import type { RowVersion } from "../../../domain/entity-tag.ts";
import { pick } from "../../../domain/pick.ts";
import type { Projection } from "../../../domain/projection.ts";
import type { StoredCustomer } from "../../customers/customer-store.ts";
import type { StatementCache } from "./statement-cache.ts";

export type CustomerRow = CustomerFields & { readonly row_version: RowVersion };

/** Exactly the columns of a projection, and the version of the whole. */
export function columns(projection: Projection): string {
  return [...projection.fields, "row_version"].join(", ");
}

export function stored(row: CustomerRow, projection: Projection): StoredCustomer {
  return { rowVersion: row.row_version, fields: pick(row, projection) };
}

export function readRowVersion(
  statements: Pick<StatementCache, "get">,
  tenant: string,
  id: string,
): RowVersion | null {
  const sql = "SELECT row_version FROM customers WHERE tenant = ? AND id = ?";
  return statements.get<CustomerRow>(sql, tenant, id)?.row_version ?? null;
}

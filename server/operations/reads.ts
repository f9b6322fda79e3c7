import { PAGE_LIMIT_DEFAULT, SEARCH_BODY } from "../domain/customer.ts";
import { parseCustomerId } from "../domain/customer-id.ts";
import type { RowVersion } from "../domain/entity-tag.ts";
import type { CustomerStatus, FieldName } from "../domain/field-registry.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { matchesIfNoneMatch } from "../domain/precondition.ts";
import { flatMap, ok, type Result } from "../domain/problem.ts";
import type { CustomerStore, StoredCustomer } from "../storage/customer-store.ts";
import { BodySchema } from "./body-schema.ts";
import {
  type Call,
  customerNotFound,
  JSON_TYPES,
  projectionOfQuery,
  requireOperation,
  requireProjection,
  requireReadable,
  stillAllowed,
} from "./checks.ts";
import { openCursor, sealCursor } from "./page-cursor.ts";
import { invalidParameter, parseLimit, parseStatus, readQuery, singleValue } from "./query.ts";

export type Read =
  | { readonly kind: "customer"; readonly customer: StoredCustomer }
  | { readonly kind: "not-modified"; readonly rowVersion: RowVersion };

export type Listed = {
  readonly kind: "page";
  readonly items: readonly StoredCustomer[];
  readonly next: string | null;
};

const searchBody = new BodySchema(SEARCH_BODY);

export function read(store: CustomerStore, call: Call, id: string): MaybePromise<Result<Read>> {
  const permitted = requireOperation(call, "get");
  if (!permitted.ok) return permitted;
  const projection = projectionOfQuery(call);
  if (!projection.ok) return projection;
  const storedId = parseCustomerId(id);
  if (storedId === null) return customerNotFound();
  return andThen(store.read(call.tenant, storedId, projection.value), (customer) => {
    if (customer === null) return customerNotFound();
    return matchesIfNoneMatch(call.headers.get("if-none-match"), customer.rowVersion)
      ? ok({ kind: "not-modified", rowVersion: customer.rowVersion })
      : ok({ kind: "customer", customer });
  });
}

export function list(store: CustomerStore, call: Call): MaybePromise<Result<Listed>> {
  const permitted = requireOperation(call, "list");
  if (!permitted.ok) return permitted;
  const query = readQuery(call.search, ["fields", "limit", "cursor", "status"]);
  if (!query.ok) return query;
  const limit = flatMap(singleValue(query.value, "limit"), parseLimit);
  if (!limit.ok) return limit;
  const status = flatMap(singleValue(query.value, "status"), parseStatus);
  if (!status.ok) return status;
  const cursor = singleValue(query.value, "cursor");
  if (!cursor.ok) return cursor;
  return page(store, call, {
    fields: query.value.getAll("fields"),
    limit: limit.value,
    status: status.value,
    email: null,
    cursor: cursor.value,
  });
}

/** The same as {@link list}, with the filter in the body: personal data stays out of URLs and their logs. */
export async function search(store: CustomerStore, call: Call): Promise<Result<Listed>> {
  const permitted = requireOperation(call, "list");
  if (!permitted.ok) return permitted;
  const query = readQuery(call.search, ["fields"]);
  if (!query.ok) return query;
  const inQuery = query.value.getAll("fields");
  // The query is judged before the body, though the body may name the fields too.
  const queried = requireProjection(call, inQuery);
  if (!queried.ok) return queried;
  const body = flatMap(await call.readJson(JSON_TYPES), (json) => searchBody.read(json));
  const allowed = await stillAllowed(call, "list", queried.value);
  if (!allowed.ok) return allowed;
  if (!body.ok) return body;
  const { fields, limit, status, email, cursor } = body.value;
  if (inQuery.length > 0 && fields !== undefined) {
    return invalidParameter("fields", "is given in the query and in the body; give it once");
  }
  return page(store, call, {
    // An empty array is an empty list, as `fields=` is.
    fields: fields === undefined ? inQuery : [[fields].flat().join(",")],
    limit: limit ?? PAGE_LIMIT_DEFAULT,
    status: status ?? null,
    email: email ?? null,
    cursor: cursor ?? null,
  });
}

type PageRequest = {
  readonly fields: readonly string[];
  readonly limit: number;
  readonly status: CustomerStatus | null;
  readonly email: string | null;
  readonly cursor: string | null;
};

function page(store: CustomerStore, call: Call, wanted: PageRequest): MaybePromise<Result<Listed>> {
  const { limit, status, email, cursor } = wanted;
  const filter = { tenant: call.tenant, status, email };
  const after = cursor === null ? null : openCursor(store.cursorKey, cursor, filter);
  if (cursor !== null && after === null) {
    return invalidParameter("cursor", "is not one of this service for this filter; begin without it");
  }
  const projection = requireProjection(call, wanted.fields);
  if (!projection.ok) return projection;
  // Whoever filters by a field learns it.
  const filtered: FieldName[] = [
    ...(status === null ? [] : ["status" as const]),
    ...(email === null ? [] : ["email" as const]),
  ];
  const readable = requireReadable(call, filtered);
  if (!readable.ok) return readable;
  return andThen(store.page({ ...filter, after, limit }, projection.value), ({ items, lastId }) =>
    ok({ kind: "page", items, next: lastId === null ? null : sealCursor(store.cursorKey, lastId, filter) }),
  );
}

import type { MaybePromise } from "../domain/maybe-promise.ts";
import { flatMap, type Result } from "../domain/problem.ts";
import type { Call } from "./call.ts";
import { requireOperation } from "./checks.ts";
import { type CustomerPage, type PageStore, readPage } from "./page.ts";
import { parseLimit, parseStatus, readQuery, singleValue } from "./request/query.ts";

/** GET /customers. */
export function list(store: PageStore, call: Call): MaybePromise<Result<CustomerPage>> {
  const permitted = requireOperation(call.authority, "list");
  if (!permitted.ok) return permitted;
  const query = readQuery(call.search, ["fields", "limit", "cursor", "status"]);
  if (!query.ok) return query;
  const limit = flatMap(singleValue(query.value, "limit"), parseLimit);
  if (!limit.ok) return limit;
  const status = flatMap(singleValue(query.value, "status"), parseStatus);
  if (!status.ok) return status;
  const cursor = singleValue(query.value, "cursor");
  if (!cursor.ok) return cursor;
  return readPage(store, call.authority, {
    fields: query.value.getAll("fields"),
    limit: limit.value,
    status: status.value,
    email: null,
    cursor: cursor.value,
  });
}

import type { CustomerStatus, FieldName } from "../domain/customer/field-registry.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { ok, type Result } from "../domain/problem.ts";
import type { CustomerStore, StoredCustomer } from "../storage/customers/customer-store.ts";
import type { Authority } from "./call.ts";
import { projectionOfLists, requireReadable } from "./checks.ts";
import { decryptCursor, encryptCursor } from "./request/page-cursor.ts";
import { invalidParameter } from "./request/query.ts";

export type CustomerPage = {
  readonly items: readonly StoredCustomer[];
  /** The cursor of the next page, or null after the last. */
  readonly next: string | null;
};

/** What pages are read from. */
export type PageStore = Pick<CustomerStore, "cursorKey" | "page">;

type PageRequest = {
  /** The values of `fields`; none for the default set. */
  readonly fields: readonly string[];
  readonly limit: number;
  readonly status: CustomerStatus | null;
  readonly email: string | null;
  /** Null for the first page. */
  readonly cursor: string | null;
};

/** The checks that list and search share, and one page. */
export function readPage(
  store: PageStore,
  { tenant, rights }: Authority,
  request: PageRequest,
): MaybePromise<Result<CustomerPage>> {
  const { limit, status, email } = request;
  const filter = { tenant, status, email };
  const cursorFilter = [tenant, status, email];
  const after = request.cursor === null ? null : decryptCursor(store.cursorKey, request.cursor, cursorFilter);
  if (request.cursor !== null && after === null) {
    return invalidParameter("cursor", "was not made by this service for this filter; start without it");
  }
  const projection = projectionOfLists(request.fields, rights);
  if (!projection.ok) return projection;
  // A filter reveals its field: the caller learns which customers match.
  const filtered: FieldName[] = [
    ...(status === null ? [] : ["status" as const]),
    ...(email === null ? [] : ["email" as const]),
  ];
  const readable = requireReadable(filtered, rights);
  if (!readable.ok) return readable;
  return andThen(store.page({ ...filter, after, limit }, projection.value), ({ items, lastId }) =>
    ok({ items, next: lastId === null ? null : encryptCursor(store.cursorKey, lastId, cursorFilter) }),
  );
}

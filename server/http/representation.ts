import { formatEntityTag, type RowVersion } from "../domain/entity-tag.ts";
import type { Created, Listed, Read, Written } from "../operations.ts";
import type { Answer } from "./exchange.ts";

/** `no-transform`: a proxy that compresses would weaken the entity-tag (RFC 9110, section 8.8.1). */
const CUSTOMER_HEADERS = new Headers({
  "cache-control": "private, no-cache, no-transform",
  vary: "Authorization",
});
const CUSTOMER_JSON_HEADERS = new Headers(CUSTOMER_HEADERS);
CUSTOMER_JSON_HEADERS.set("content-type", "application/json");

/** @param rowVersion null where the answer is of no one version: a page, a customer that is gone */
function customerHeaders(rowVersion: RowVersion | null, base = CUSTOMER_JSON_HEADERS): Headers {
  const headers = new Headers(base);
  if (rowVersion !== null) headers.set("etag", formatEntityTag(rowVersion));
  return headers;
}

/** A customer as it was read, or 304. */
export function readAnswer(outcome: Read): Answer {
  if (outcome.kind === "not-modified") {
    return { status: 304, headers: customerHeaders(outcome.rowVersion, CUSTOMER_HEADERS), body: null };
  }
  const { rowVersion, fields } = outcome.customer;
  return { status: 200, headers: customerHeaders(rowVersion), body: JSON.stringify(fields) };
}

/** @param nextUrl makes the address of the next page from its cursor; null where a page has no address (search) */
export function pageAnswer({ items, next }: Listed, nextUrl: ((cursor: string) => string) | null): Answer {
  const headers = customerHeaders(null);
  if (next !== null && nextUrl !== null) headers.set("link", `<${nextUrl(next)}>; rel="next"`);
  const tagged = items.map(({ rowVersion, fields }) => ({
    etag: formatEntityTag(rowVersion),
    customer: fields,
  }));
  return { status: 200, headers, body: JSON.stringify({ items: tagged, next }) };
}

export function createdAnswer({ id, rowVersion, fields, isReplayed }: Created, publicUrl: string): Answer {
  const headers = customerHeaders(rowVersion);
  headers.set("location", `${publicUrl}/customers/${id}`);
  if (isReplayed) headers.set("idempotency-replayed", "true");
  return { status: 201, headers, body: JSON.stringify(fields) };
}

export function writtenAnswer({ rowVersion, fields, allowedUntilMs }: Written, publicUrl: string): Answer {
  const headers = customerHeaders(rowVersion, fields === null ? CUSTOMER_HEADERS : CUSTOMER_JSON_HEADERS);
  const allowedWithoutIfMatch = allowedUntilMs !== null;
  if (allowedUntilMs !== null) announceEnforcement(headers, allowedUntilMs, publicUrl);
  if (fields === null) return { status: 204, headers, body: null, allowedWithoutIfMatch };
  headers.set("preference-applied", "return=representation");
  return { status: 200, headers, body: JSON.stringify(fields), allowedWithoutIfMatch };
}

/** Tells a client that it still may, but not for long (RFC 9745, section 3, for the link). */
function announceEnforcement(headers: Headers, fromMs: number, publicUrl: string): void {
  headers.set("precondition-enforced-from", new Date(fromMs).toISOString().slice(0, 10));
  headers.set("link", `<${publicUrl}/problems/precondition-required>; rel="deprecation"; type="text/html"`);
}

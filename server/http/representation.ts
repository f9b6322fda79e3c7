import { formatEntityTag } from "../domain/entity-tag.ts";
import type { Listed, Read } from "../operations/reads.ts";
import type { Created, Written } from "../operations/writes.ts";
import { type Reply, replyHeaders } from "./reply.ts";

/** `no-transform`: a proxy that compresses would weaken the entity-tag (RFC 9110, section 8.8.1). */
const CUSTOMER = { "cache-control": "private, no-cache, no-transform", vary: "Authorization" };
const CUSTOMER_JSON = { ...CUSTOMER, "content-type": "application/json" };
// Made once: made from an object for each read they would cost it a tenth.
const HEADERS = replyHeaders(CUSTOMER);
const JSON_HEADERS = replyHeaders(CUSTOMER_JSON);

/** A customer as it was read, or 304. */
export function readReply(outcome: Read): Reply {
  if (outcome.kind === "not-modified") {
    return { status: 304, headers: HEADERS, etag: formatEntityTag(outcome.rowVersion), body: null };
  }
  const { rowVersion, fields } = outcome.customer;
  return {
    status: 200,
    headers: JSON_HEADERS,
    etag: formatEntityTag(rowVersion),
    body: JSON.stringify(fields),
  };
}

/** @param nextUrl makes the address of the next page from its cursor; null where a page has no address (search) */
export function pageReply({ items, next }: Listed, nextUrl: ((cursor: string) => string) | null): Reply {
  const link = next === null || nextUrl === null ? {} : { link: `<${nextUrl(next)}>; rel="next"` };
  const tagged = items.map(({ rowVersion, fields }) => ({
    etag: formatEntityTag(rowVersion),
    customer: fields,
  }));
  return {
    status: 200,
    headers: replyHeaders({ ...CUSTOMER_JSON, ...link }),
    body: JSON.stringify({ items: tagged, next }),
  };
}

export function createdReply({ id, rowVersion, fields, isReplayed }: Created, publicUrl: string): Reply {
  const headers = replyHeaders({
    ...CUSTOMER_JSON,
    location: `${publicUrl}/customers/${id}`,
    ...(isReplayed ? { "idempotency-replayed": "true" } : {}),
  });
  return { status: 201, headers, etag: formatEntityTag(rowVersion), body: JSON.stringify(fields) };
}

export function writtenReply({ rowVersion, fields, allowedUntilMs }: Written, publicUrl: string): Reply {
  const etag = rowVersion === null ? {} : { etag: formatEntityTag(rowVersion) };
  if (fields === null && allowedUntilMs === null)
    return { status: 204, headers: HEADERS, ...etag, body: null };
  const headers = replyHeaders({
    ...(fields === null ? CUSTOMER : { ...CUSTOMER_JSON, "preference-applied": "return=representation" }),
    ...(allowedUntilMs === null ? {} : allowanceHeaders(allowedUntilMs, publicUrl)),
  });
  return {
    status: fields === null ? 204 : 200,
    headers,
    ...etag,
    body: fields === null ? null : JSON.stringify(fields),
    allowedWithoutIfMatch: allowedUntilMs !== null,
  };
}

/** Tells a client that it still may, but not for long (RFC 9745, section 3, for the link). */
function allowanceHeaders(untilMs: number, publicUrl: string): Record<string, string> {
  return {
    "precondition-enforced-from": new Date(untilMs).toISOString().slice(0, 10),
    link: `<${publicUrl}/problems/precondition-required>; rel="deprecation"; type="text/html"`,
  };
}

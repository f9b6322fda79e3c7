import { formatEntityTag } from "../../domain/entity-tag.ts";
import { dayOf } from "../../domain/text/iso-time.ts";
import type { Written } from "../../operations/conditional-write.ts";
import type { Created } from "../../operations/create.ts";
import type { HistoryPage } from "../../operations/history.ts";
import type { CustomerPage } from "../../operations/page.ts";
import type { Read } from "../../operations/read.ts";
import { callerHeaders, type Reply } from "./reply.ts";

/** `no-transform`: a proxy that compresses would weaken the entity-tag (RFC 9110, section 8.8.1). */
const CUSTOMER = { "cache-control": "private, no-cache, no-transform", vary: "Authorization" };
const CUSTOMER_JSON = { ...CUSTOMER, "content-type": "application/json" };
const REPLAYED = { "idempotency-replayed": "true" };
// Made once: headers made from an object would cost each read a tenth of its throughput.
const HEADERS = callerHeaders(CUSTOMER);
const JSON_HEADERS = callerHeaders(CUSTOMER_JSON);

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

/** Makes the address of the next page from its cursor. */
type NextUrl = (cursor: string) => string;

/** @param nextUrl null where a page has no address (search) */
export function pageReply({ items, next }: CustomerPage, nextUrl: NextUrl | null): Reply {
  const tagged = items.map(({ rowVersion, fields }) => ({
    etag: formatEntityTag(rowVersion),
    customer: fields,
  }));
  return listReply(tagged, next, nextUrl);
}

/** Not a representation of the customer: it has no entity-tag. */
export function historyReply({ items, next }: HistoryPage, nextUrl: NextUrl): Reply {
  return listReply(items, next, nextUrl);
}

function listReply(items: readonly object[], next: string | null, nextUrl: NextUrl | null): Reply {
  const link = next === null || nextUrl === null ? {} : { link: `<${nextUrl(next)}>; rel="next"` };
  const headers = callerHeaders({ ...CUSTOMER_JSON, ...link });
  return { status: 200, headers, body: JSON.stringify({ items, next }) };
}

export function createdReply({ id, rowVersion, fields, isReplayed }: Created, publicUrl: string): Reply {
  const headers = callerHeaders({
    ...CUSTOMER_JSON,
    location: `${publicUrl}/customers/${id}`,
    ...(isReplayed ? REPLAYED : {}),
  });
  return { status: 201, headers, etag: formatEntityTag(rowVersion), body: JSON.stringify(fields) };
}

export function writtenReply(outcome: Written, publicUrl: string): Reply {
  const { rowVersion, fields, allowedUntilMs, isReplayed } = outcome;
  const isPlain = fields === null && allowedUntilMs === null && !isReplayed;
  const headers = isPlain
    ? HEADERS
    : callerHeaders({
        ...(fields === null ? CUSTOMER : { ...CUSTOMER_JSON, "preference-applied": "return=representation" }),
        ...(allowedUntilMs === null ? {} : allowanceHeaders(allowedUntilMs, publicUrl)),
        ...(isReplayed ? REPLAYED : {}),
      });
  return {
    status: fields === null ? 204 : 200,
    headers,
    ...(rowVersion === null ? {} : { etag: formatEntityTag(rowVersion) }),
    body: fields === null ? null : JSON.stringify(fields),
    allowedWithoutIfMatch: allowedUntilMs !== null,
    isReplayed,
  };
}

/**
 * Announces to a client that its writes without If-Match are allowed for a while only (RFC 9745, section 3).
 */
function allowanceHeaders(untilMs: number, publicUrl: string): Record<string, string> {
  return {
    "precondition-enforced-from": dayOf(untilMs),
    link: `<${publicUrl}/problems/precondition-required>; rel="deprecation"; type="text/html"`,
  };
}

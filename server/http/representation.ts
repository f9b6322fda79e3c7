import { formatEntityTag, type RowVersion } from "../domain/entity-tag.ts";
import type { Created, Listed, Read, Written } from "../operations.ts";
import type { Answer } from "./exchange.ts";

const JSON_TYPE = "application/json";

/** `no-transform`: a proxy that compresses would weaken the entity-tag (RFC 9110, section 8.8.1). */
const CUSTOMER_HEADERS = {
  "cache-control": "private, no-cache, no-transform",
  vary: "Authorization",
} as const;

function customerHeaders(rowVersion: RowVersion): Record<string, string> {
  return { ...CUSTOMER_HEADERS, etag: formatEntityTag(rowVersion) };
}

/** A customer as it was read, or 304. */
export function readAnswer(outcome: Read): Answer {
  if (outcome.kind === "not-modified") {
    return { status: 304, headers: customerHeaders(outcome.rowVersion), body: null };
  }
  const { rowVersion, fields } = outcome.customer;
  return jsonAnswer(200, customerHeaders(rowVersion), fields);
}

/** @param nextUrl makes the address of the next page from its cursor; null where a page has no address (search) */
export function pageAnswer({ items, next }: Listed, nextUrl: ((cursor: string) => string) | null): Answer {
  const headers: Record<string, string> = { ...CUSTOMER_HEADERS };
  if (next !== null && nextUrl !== null) headers["link"] = `<${nextUrl(next)}>; rel="next"`;
  const body = items.map(({ rowVersion, fields }) => ({
    etag: formatEntityTag(rowVersion),
    customer: fields,
  }));
  return jsonAnswer(200, headers, { items: body, next });
}

export function createdAnswer({ id, rowVersion, fields, isReplayed }: Created, publicUrl: string): Answer {
  const headers = {
    ...customerHeaders(rowVersion),
    location: `${publicUrl}/customers/${id}`,
    ...(isReplayed ? { "idempotency-replayed": "true" } : {}),
  };
  return jsonAnswer(201, headers, fields);
}

export function writtenAnswer({ rowVersion, fields, allowedUntilMs }: Written, publicUrl: string): Answer {
  const headers = {
    ...(rowVersion === null ? CUSTOMER_HEADERS : customerHeaders(rowVersion)),
    ...(allowedUntilMs === null ? {} : allowanceHeaders(allowedUntilMs, publicUrl)),
  };
  const allowedWithoutIfMatch = allowedUntilMs !== null;
  if (fields === null) return { status: 204, headers, body: null, allowedWithoutIfMatch };
  const applied = { ...headers, "preference-applied": "return=representation" };
  return { ...jsonAnswer(200, applied, fields), allowedWithoutIfMatch };
}

/** Tells a client that it still may, but not for long (RFC 9745, section 3, for the link). */
function allowanceHeaders(untilMs: number, publicUrl: string): Record<string, string> {
  return {
    "precondition-enforced-from": new Date(untilMs).toISOString().slice(0, 10),
    link: `<${publicUrl}/problems/precondition-required>; rel="deprecation"; type="text/html"`,
  };
}

function jsonAnswer(status: number, headers: Record<string, string>, body: unknown): Answer {
  headers["content-type"] = JSON_TYPE;
  return { status, headers, body: JSON.stringify(body) };
}

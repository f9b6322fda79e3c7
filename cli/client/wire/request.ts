/** The requests that the client makes, as values: sent by the API, printed by --dry-run. */
import { formatJson, type JsonObject } from "../json.ts";

export type ApiRequest = {
  method: "GET" | "PUT" | "PATCH" | "DELETE" | "POST";
  /** Below the base URL, beginning with a slash; a query included. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
};

/** A page of a list carries its tags in the body, where no compression changes them. */
const LIST_HEADERS = {
  accept: "application/json",
  "accept-encoding": "gzip, br",
  "cache-control": "no-cache",
} as const;
/**
 * A GET that no cache may answer, and that no proxy may compress: a compressed reply has its entity-tag
 * weakened (RFC 9110 §8.8.1), and a weak one can't stand in If-Match.
 */
const READ_HEADERS = { ...LIST_HEADERS, "accept-encoding": "identity" } as const;
const WRITE_HEADERS = { accept: "application/json", "accept-encoding": "identity" } as const;

const MERGE_PATCH = "application/merge-patch+json";

export function readCustomer(
  id: string,
  fields: readonly string[] | undefined,
  ifNoneMatch?: string,
): ApiRequest {
  const headers =
    ifNoneMatch === undefined ? READ_HEADERS : { ...READ_HEADERS, "if-none-match": ifNoneMatch };
  return { method: "GET", path: customerPath(id) + queryOf({ fields }), headers };
}

/** PUT of name and email, both required (specification 2.3). */
export function replaceCustomer(
  id: string,
  tag: string,
  body: JsonObject,
  representation: boolean,
): ApiRequest {
  return conditional("PUT", id, tag, "application/json", formatJson(body), representation);
}

/** JSON Merge Patch (RFC 7396): the members that change, null for those to be removed. */
export function patchCustomer(
  id: string,
  tag: string,
  body: JsonObject,
  representation: boolean,
): ApiRequest {
  return conditional("PATCH", id, tag, MERGE_PATCH, formatJson(body), representation);
}

/**
 * The same patch as plain JSON, for a deployment that does not know the media type of JSON Merge Patch
 * (415); undefined where that can't be the reason.
 */
export function asPlainJson(request: ApiRequest): ApiRequest | undefined {
  const mediaType = request.headers["content-type"];
  if (mediaType !== MERGE_PATCH) return undefined;
  return { ...request, headers: { ...request.headers, "content-type": "application/json" } };
}

/**
 * The same write, whose refusal (412) is to say who changed the customer: a preference that this project's service
 * knows. Other servers ignore it (RFC 7240, section 2).
 */
export function askingForChanges(request: ApiRequest, requestId: string | undefined): ApiRequest {
  const { prefer } = request.headers;
  const both = prefer === undefined ? "changes" : `${prefer}, changes`;
  const identified = requestId === undefined ? {} : { "x-request-id": requestId };
  return { ...request, headers: { ...request.headers, prefer: both, ...identified } };
}

export function deleteCustomer(id: string, tag: string): ApiRequest {
  return { method: "DELETE", path: customerPath(id), headers: { ...WRITE_HEADERS, "if-match": tag } };
}

/** With the members that its body holds: the reply is compared with them. */
export type CreationRequest = ApiRequest & { members: JsonObject };

/** @param key 1 to 255 visible ASCII characters; the same for every repetition of the same creation. */
export function createCustomer(body: JsonObject, key: string): CreationRequest {
  return {
    members: body,
    method: "POST",
    path: "/customers",
    headers: { ...WRITE_HEADERS, "content-type": "application/json", "idempotency-key": key },
    body: formatJson(body),
  };
}

export type ListQuery = {
  fields?: readonly string[] | undefined;
  status?: string | undefined;
  email?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
};

/**
 * The first or a later page; a search by email is a POST, since personal data in a URL ends in access logs.
 */
export function listCustomers(query: ListQuery): ApiRequest {
  if (query.email !== undefined) {
    return {
      method: "POST",
      path: "/customers/search",
      headers: { ...LIST_HEADERS, "content-type": "application/json" },
      body: JSON.stringify({
        email: query.email,
        status: query.status,
        fields: query.fields?.join(","),
        limit: query.limit,
        cursor: query.cursor,
      }),
    };
  }
  const { fields, status, limit, cursor } = query;
  return {
    method: "GET",
    path: `/customers${queryOf({ fields, status, limit, cursor })}`,
    headers: LIST_HEADERS,
  };
}

/** A page of the changes of a customer, the newest first: an addition of this project's service. */
export function readHistory(
  id: string,
  page: { limit?: number | undefined; cursor?: string | undefined },
): ApiRequest {
  return { method: "GET", path: `${customerPath(id)}/history${queryOf(page)}`, headers: LIST_HEADERS };
}

/** A page that the server named itself (Link, rel="next"), as a path below the base URL. */
export function readPage(path: string): ApiRequest {
  return { method: "GET", path, headers: LIST_HEADERS };
}

function conditional(
  method: "PUT" | "PATCH",
  id: string,
  tag: string,
  mediaType: string,
  body: string,
  representation: boolean,
): ApiRequest {
  const headers: Record<string, string> = { ...WRITE_HEADERS, "content-type": mediaType, "if-match": tag };
  if (representation) headers["prefer"] = "return=representation";
  return { method, path: customerPath(id), headers, body };
}

/**
 * False for what a URL takes for another place than a customer, the list or what is above it, and for what no URL can
 * carry: half of a surrogate pair.
 */
export function canBeId(id: string): boolean {
  return !["", ".", ".."].includes(id) && id.isWellFormed();
}

function customerPath(id: string): string {
  return `/customers/${encodeURIComponent(id)}`;
}

function queryOf(
  parameters: Readonly<Record<string, readonly string[] | string | number | undefined>>,
): string {
  const parts = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${[value].flat().map(encodeURIComponent).join(",")}`],
  );
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

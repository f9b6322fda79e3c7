/** Lists of any deployment, page by page: the specification shows none, so the shape is found, not assumed. */

import { type Failure, failure, isFailure } from "./failure.ts";
import { formatJson, isJsonArray, isJsonObject, type Json, type JsonObject } from "./json.ts";
import type { Ports } from "./read-customer.ts";
import { readWithRetry } from "./read-retry.ts";
import { readFailure } from "./reply-failure.ts";
import { type Customer, memberNamed, parseJsonOrUndefined } from "./representation.ts";
import { type ApiRequest, type ListQuery, listCustomers, readPage } from "./requests.ts";

export type Page = { kind: "page"; customers: readonly Customer[] } | { kind: "failed"; failure: Failure };

/**
 * Each page as it comes; a failure is the last. A page is asked for only when the one before was taken.
 * @param ports called for every page, so that a long list is not cut off by the time of its first page.
 */
export async function* eachPage(ports: () => Ports, query: ListQuery): AsyncGenerator<Page> {
  let request: ApiRequest = listCustomers(query);
  const seen = new Set<string>();
  for (;;) {
    const { api, deadline } = ports();
    const reply = await readWithRetry(api, request, deadline);
    const { method } = request;
    const subject = {
      what: "the list of customers",
      url: api.url,
      fields: query.fields,
      method,
      collection: true,
    };
    if (reply.kind !== "complete" || reply.status !== 200) {
      return yield { kind: "failed", failure: readFailure(reply, subject) };
    }
    const body = parseJsonOrUndefined(reply.text);
    const customers = customersOf(body);
    if (customers === undefined) {
      return yield {
        kind: "failed",
        failure: failure(
          "failure",
          `the list of customers from ${api.url} holds no array of them`,
          "Check that the URL is the base URL of a customer service.",
        ),
      };
    }
    yield { kind: "page", customers };
    const next = nextPage(reply.fields.get("link"), body, request, query, api.url);
    if (next === undefined) return;
    if (isFailure(next)) return yield { kind: "failed", failure: next };
    const key = `${next.path} ${next.body ?? ""}`;
    if (seen.has(key)) {
      return yield {
        kind: "failed",
        failure: failure(
          "failure",
          `the list of customers goes round in a circle: ${api.url} named the same next page twice`,
        ),
      };
    }
    seen.add(key);
    request = next;
  }
}

/** The customers of one page; undefined where the body holds no array. */
export function customersOf(body: Json | undefined): readonly Customer[] | undefined {
  return itemsOf(body)?.map(listedCustomer);
}

/** A bare array, or the only array in an object (`items`, `value`, `data`, `customers`). */
export function itemsOf(body: Json | undefined): readonly Json[] | undefined {
  if (isJsonArray(body)) return body;
  if (!isJsonObject(body)) return undefined;
  const items = body.get("items");
  return isJsonArray(items) ? items : [...body.values()].find(isJsonArray);
}

/** An item is the customer itself, or `{etag, customer}`. */
export function listedCustomer(item: Json): Customer {
  const object: JsonObject = isJsonObject(item) ? item : new Map([["value", item]]);
  const inner = memberNamed(object, "customer")?.value;
  if (!isJsonObject(inner)) return { etag: undefined, value: object, text: formatJson(object) };
  const etag = memberNamed(object, "etag")?.value;
  return { etag: typeof etag === "string" ? etag : undefined, value: inner, text: formatJson(inner) };
}

/** Link with rel="next" (RFC 8288) where there is one, else a `next` cursor in the body. */
function nextPage(
  link: string | undefined,
  body: Json | undefined,
  request: ApiRequest,
  query: ListQuery,
  base: string,
): ApiRequest | Failure | undefined {
  const cursor = isJsonObject(body) ? memberNamed(body, "next")?.value : undefined;
  // A search is a POST: its next page is the same search with the cursor, whatever a link says.
  if (request.method === "POST" || link === undefined) {
    return typeof cursor === "string" && cursor !== "" ? listCustomers({ ...query, cursor }) : undefined;
  }
  const target = nextTarget(link);
  if (target === undefined) return undefined;
  const url = new URL(target, base + request.path);
  const { origin, pathname } = new URL(base);
  const prefix = pathname.replace(/\/$/, "");
  if (url.origin === origin && url.pathname.startsWith(`${prefix}/`)) {
    return readPage(url.pathname.slice(prefix.length) + url.search);
  }
  if (typeof cursor === "string" && cursor !== "") return listCustomers({ ...query, cursor });
  // Credentials go nowhere else, whatever a server writes into a link; and a part must not pass for the whole.
  return failure(
    "failure",
    `the list of customers is not complete: its next page is said to be at ${url.origin}${url.pathname}, outside of ${base}`,
    "If that is right, give it as --url; if not, the server does not know the address under which it is reached.",
  );
}

function nextTarget(link: string): string | undefined {
  for (const [, target, parameters = ""] of link.matchAll(
    /<([^>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+\s*(?:=\s*(?:"[^"]*"|[^\s",;]+))?)*)/g,
  )) {
    const rel = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]+))/i.exec(parameters);
    const relations = (rel?.[1] ?? rel?.[2] ?? "").toLowerCase().split(/\s+/);
    if (relations.includes("next")) return target;
  }
  return undefined;
}

/**
 * Lists of any deployment, page by page: the specification shows none, so the shape is found, not assumed.
 */

import { Customer, memberNamed, parseJsonOrUndefined, withoutFields } from "./customer.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "./json.ts";
import { filtersBeside, type Unfiltered, unfiltered } from "./list-filter.ts";
import { type NextPage, nextPage } from "./next-page.ts";
import type { Ports } from "./read-customer.ts";
import { type Refusal, refusalOf } from "./refusal.ts";
import { readWithRetry } from "./wire/read-retry.ts";
import { type ApiRequest, type ListQuery, listCustomers } from "./wire/request.ts";

export type PageOf<Item> =
  /** `open`: nothing in the reply says whether more follows, and nothing names it. */
  { kind: "page"; items: readonly Item[]; open: boolean } | ListFailure;
export type Page = PageOf<Customer>;

/** What came before it is a part of the list, and must not pass for the whole. */
export type ListFailure =
  /** `not-a-service`: the reply holds no array of customers. */
  | Refusal
  /** The server named the same next page twice. */
  | { kind: "circle" }
  | Unfiltered
  | Exclude<NextPage, { kind: "none" | "request" }>;

/**
 * Pages of customers; see pagesOf. Each customer must show that it matches the filters of the query, so their fields are asked
 * for, and left out again where nobody asked for them.
 */
export async function* eachPage(ports: () => Ports, query: ListQuery): AsyncGenerator<Page> {
  const { fields } = query;
  const added = fields === undefined ? [] : filtersBeside(query, fields);
  const asked = fields && [...fields, ...added];
  const ask = (cursor = query.cursor) => listCustomers({ ...query, fields: asked, cursor });
  let isBegun = false;
  for await (const page of pagesOf(ports, ask, listedCustomer)) {
    const [first] = page.kind === "page" ? page.items : [];
    if (page.kind !== "page" || first === undefined) yield page;
    else {
      const shown = [...first.value.keys()];
      // Asked for once more later, customers that were given already would come twice.
      if (!isBegun && fields === undefined && filtersBeside(query, shown).length > 0)
        return yield* pagesWith(ports, query, shown);
      isBegun = true;
      const failed = unfiltered(query, page.items);
      if (failed !== undefined) return yield failed;
      yield { ...page, items: page.items.map((customer) => withoutFields(customer, added)) };
    }
  }
}

/** The default set leaves out the field of a filter: the list is asked for once more, with what it shows and that field. */
async function* pagesWith(
  ports: () => Ports,
  query: ListQuery,
  fields: readonly string[],
): AsyncGenerator<Page> {
  const [field] = filtersBeside(query, fields);
  // Members that are not in the registry can't be asked for everywhere.
  for await (const page of eachPage(ports, { ...query, fields }))
    yield page.kind === "invalid" && field ? { kind: "unfiltered", field, shown: false } : page;
}

/**
 * Each page as it comes; a failure is the last. A page is asked for only when the one before was taken.
 * @param ports called for every page, so that a long list is not cut off by the time of its first page.
 * @param ask the request for the page at a cursor, or for the first.
 * @param read an item; undefined where it is none of the list.
 */
export async function* pagesOf<Item>(
  ports: () => Ports,
  ask: (cursor?: string) => ApiRequest,
  read: (item: JsonObject) => Item | undefined,
): AsyncGenerator<PageOf<Item>> {
  let request = ask();
  const seen = new Set<string>();
  let came = 0;
  for (let pages = 1; ; pages += 1) {
    const { transport, deadline } = ports();
    const reply = await readWithRetry(transport, request, deadline);
    const page = reply.kind === "complete" && reply.status === 200 ? reply : undefined;
    const body = page && parseJsonOrUndefined(page.text);
    const items = itemsOf(body)?.map((item) => (isJsonObject(item) ? read(item) : undefined));
    if (page === undefined || !items?.every((item) => item !== undefined))
      return yield refusalOf(reply, "reading");
    came += items.length;
    const next = nextPage({ fields: page.fields, body, request, items: came, pages }, ask, transport.url);
    yield { kind: "page", items, open: next.kind === "none" && !next.said };
    if (next.kind === "none") return;
    if (next.kind !== "request") return yield next;
    const key = `${next.request.path} ${next.request.body ?? ""}`;
    if (seen.has(key)) return yield { kind: "circle" };
    seen.add(key);
    request = next.request;
  }
}

/** A bare array, or the only array in an object (`items`, `value`, `data`, `customers`). */
function itemsOf(body: Json | undefined): readonly Json[] | undefined {
  if (isJsonArray(body)) return body;
  if (!isJsonObject(body)) return undefined;
  const items = body.get("items");
  return isJsonArray(items) ? items : [...body.values()].find(isJsonArray);
}

/** An item is the customer itself, or `{etag, customer}`. */
function listedCustomer(object: JsonObject): Customer {
  const inner = memberNamed(object, "customer")?.value;
  if (!isJsonObject(inner)) return new Customer(undefined, object);
  const etag = memberNamed(object, "etag")?.value;
  return new Customer(typeof etag === "string" ? etag : undefined, inner);
}

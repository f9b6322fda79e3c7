/**
 * Lists of any deployment, page by page: the specification shows none, so the shape is found, not assumed.
 */

import { Customer, memberNamed, parseJsonOrUndefined } from "./customer.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "./json.ts";
import { nextPage } from "./next-page.ts";
import type { Ports } from "./read-customer.ts";
import { type Refusal, refusalOf } from "./refusal.ts";
import { readWithRetry } from "./wire/read-retry.ts";
import { type ApiRequest, type ListQuery, listCustomers } from "./wire/request.ts";

export type Page = { kind: "page"; customers: readonly Customer[] } | ListFailure;

/** What came before it is a part of the list, and must not pass for the whole. */
export type ListFailure =
  | Refusal
  /** The reply holds no array of customers. */
  | { kind: "no-list" }
  /** The server named the same next page twice. */
  | { kind: "circle" }
  /** The next page is said to be outside of the base URL. */
  | { kind: "next-elsewhere"; place: string }
  /** `member` says that there is more, in a way that this client can't follow. */
  | { kind: "next-unknown"; member: string };

/**
 * Each page as it comes; a failure is the last. A page is asked for only when the one before was taken.
 * @param ports called for every page, so that a long list is not cut off by the time of its first page.
 */
export async function* eachPage(ports: () => Ports, query: ListQuery): AsyncGenerator<Page> {
  let request: ApiRequest = listCustomers(query);
  const seen = new Set<string>();
  for (;;) {
    const { transport, deadline } = ports();
    const reply = await readWithRetry(transport, request, deadline);
    if (reply.kind !== "complete" || reply.status !== 200) return yield refusalOf(reply, "reading");
    const body = parseJsonOrUndefined(reply.text);
    const customers = customersOf(body);
    if (customers === undefined) return yield { kind: "no-list" };
    yield { kind: "page", customers };
    const next = nextPage({ link: reply.fields.get("link"), body }, request, query, transport.url);
    switch (next.kind) {
      case "none":
        return;
      case "elsewhere":
        return yield { kind: "next-elsewhere", place: next.place };
      case "unknown":
        return yield { kind: "next-unknown", member: next.member };
    }
    const key = `${next.request.path} ${next.request.body ?? ""}`;
    if (seen.has(key)) return yield { kind: "circle" };
    seen.add(key);
    request = next.request;
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
  if (!isJsonObject(inner)) return new Customer(undefined, object);
  const etag = memberNamed(object, "etag")?.value;
  return new Customer(typeof etag === "string" ? etag : undefined, inner);
}

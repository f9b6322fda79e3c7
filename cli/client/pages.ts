/** Lists of any deployment, page by page: the specification shows none, so the shape is found, not assumed. */

import { type Failure, failure } from "../outcome/failure.ts";
import { readFailure } from "../outcome/reply-failure.ts";
import { type Customer, memberNamed, parseJsonOrUndefined } from "./customer.ts";
import { formatJson, isJsonArray, isJsonObject, type Json, type JsonObject } from "./json.ts";
import { type NextPage, nextPage } from "./next-page.ts";
import type { Ports } from "./read-customer.ts";
import { readWithRetry } from "./read-retry.ts";
import { type ApiRequest, type ListQuery, listCustomers } from "./request.ts";

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
    const next = nextPage({ link: reply.fields.get("link"), body }, request, query, api.url);
    if (next.kind === "none") return;
    // A part must not pass for the whole.
    if (next.kind !== "request") return yield { kind: "failed", failure: incomplete(next, api.url) };
    const key = `${next.request.path} ${next.request.body ?? ""}`;
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
  if (!isJsonObject(inner)) return { etag: undefined, value: object, text: formatJson(object) };
  const etag = memberNamed(object, "etag")?.value;
  return { etag: typeof etag === "string" ? etag : undefined, value: inner, text: formatJson(inner) };
}

function incomplete(next: Exclude<NextPage, { kind: "none" | "request" }>, base: string): Failure {
  return next.kind === "elsewhere"
    ? failure(
        "failure",
        `the list of customers is not complete: its next page is said to be at ${next.place}, outside of ${base}`,
        "If that is the service's own address, give it as --url; if not, the service does not know the address under which it is reached.",
      )
    : failure(
        "failure",
        `the list of customers is not complete: the reply says by "${next.member}" that there is more, in a way that this client can't follow`,
        'It follows Link: <…>; rel="next", links in the body, and a cursor named "next". A larger page may hold all of it: --limit, and --page-size of export.',
      );
}

/**
 * Where a list goes on: Link with rel="next" (RFC 8288), a link in the body, or a `next` cursor. The
 * specification shows no list, so what only looks like a next page is reported rather than ignored. Pure.
 */

import { memberNamed, plainText } from "./customer.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "./json.ts";
import { parseLinks } from "./wire/link-header.ts";
import { type ApiRequest, readPage } from "./wire/request.ts";

export type NextPage =
  /** `said`: the server says so; else there may be more. */
  | { kind: "none"; said: boolean }
  | { kind: "request"; request: ApiRequest }
  /** Outside of the base URL: credentials go nowhere else, whatever a server writes into a link. */
  | { kind: "next-elsewhere"; place: string }
  /** There is more, by a member or header that this client can't follow. */
  | { kind: "next-unknown"; member: string };

type PageRead = {
  fields: ReadonlyMap<string, string>;
  body: Json | undefined;
  request: ApiRequest;
  /** Items and pages that have come, those of this one included. */
  items: number;
  pages: number;
};

/** @param ask the request for the page at a cursor. @param base the base URL, no trailing slash. */
export function nextPage(page: PageRead, ask: (cursor: string) => ApiRequest, base: string): NextPage {
  const { fields, body, request } = page;
  const links = parseLinks(fields.get("link") ?? "");
  const linked = links?.find(({ relations }) => relations.includes("next"))?.target;
  const { target, cursor, other } = bodyNext(body);
  // A search is a POST: its next page is the same search with the cursor, whatever a link says.
  const place = request.method === "POST" ? undefined : (linked ?? target);
  const list = base + request.path;
  const url = place !== undefined && URL.canParse(place, list) ? new URL(place, list) : undefined;
  const path = url && pathBelow(url, new URL(list), base);
  if (path !== undefined) return { kind: "request", request: readPage(path) };
  if (cursor !== undefined) return { kind: "request", request: ask(cursor) };
  if (place !== undefined) return { kind: "next-elsewhere", place: url?.href ?? place };
  const member = other ?? (target === undefined ? undefined : "next");
  if (member !== undefined) return { kind: "next-unknown", member };
  // Where a server says that this is the end, its total may count customers that these credentials may not see.
  if (saysEnd(body)) return { kind: "none", said: true };
  const relations = links?.flatMap((link) => link.relations);
  // A header that can't be read may hold the link to the next page.
  if (relations === undefined || relations.some(isSign)) return { kind: "next-unknown", member: "Link" };
  if (relations.some((relation) => OTHER_PAGES.has(relation))) return { kind: "none", said: true };
  const totals = totalsOf(page);
  const beyond = totals.find(({ total, came }) => total > came);
  if (beyond !== undefined) return { kind: "next-unknown", member: beyond.name };
  return { kind: "none", said: totals.length > 0 || page.pages > 1 };
}

/**
 * Undefined: outside. A link with another host or scheme counts as inside where its path is the list's own:
 * a service behind a proxy often knows neither, and what is asked is our own base URL in any case.
 */
function pathBelow(url: URL, own: URL, base: string): string | undefined {
  const prefix = new URL(base).pathname.replace(/\/$/, "");
  const inside =
    url.origin === own.origin ? url.pathname.startsWith(`${prefix}/`) : url.pathname === own.pathname;
  return inside ? url.pathname.slice(prefix.length) + url.search : undefined;
}

/** Relations of a page that is not the only one; without one to the next, it is the last. */
const OTHER_PAGES = new Set(["first", "last", "prev", "previous"]);
/** As letters alone, in lower case: `@odata.nextLink`, `next_page_url`. */
const NEXT_LINK = /^(?:odata)?next(?:link|(?:page)?url)?$/;
/** `next_page_token`, `hasMore`. */
const OTHER_SIGN =
  /^(?:next(?:page|(?:page)?token|cursor|offset)|has(?:more|next(?:page)?)|(?:is)?truncated)$/;
/** `total`, `totalElements`, `@odata.count`. */
const TOTAL = /^(?:total|(?:odata|total)?count|total(?:items|results|records|elements))$/;
const TOTAL_PAGES = /^(?:totalpages|lastpage)$/;
/** Members in which pagination is often kept. */
const NEST = /^(?:links|paging|pagination|pageinfo|page|meta)$/;

/**
 * What a body says of the next page: a link, our service's cursor, or else the member that says that there
 * is one.
 */
function bodyNext(body: Json | undefined): { target?: string; cursor?: string; other?: string } {
  if (!isJsonObject(body)) return {};
  const next = memberNamed(body, "next")?.value;
  if (typeof next === "string" && next !== "" && !isLink(next)) return { cursor: next };
  const objects = withNested(body);
  for (const object of objects) {
    for (const [name, value] of object) {
      const target = NEXT_LINK.test(letters(name)) ? linkIn(value) : undefined;
      if (target !== undefined) return { target };
    }
  }
  const other = objects.map(signIn).find((name) => name !== undefined);
  return other === undefined ? {} : { other };
}

function withNested(body: JsonObject): JsonObject[] {
  const nested = [...body].filter(([name]) => NEST.test(letters(name))).map(([, value]) => value);
  return [body, ...nested.filter(isJsonObject)];
}

function signIn(object: JsonObject): string | undefined {
  for (const [name, value] of object)
    if (isSign(name) && !isNothing(value) && !isJsonArray(value)) return name;
  return undefined;
}

/** A next page is named, and there is none. */
function saysEnd(body: Json | undefined): boolean {
  if (!isJsonObject(body)) return false;
  return withNested(body).some((object) =>
    [...object].some(([name, value]) => isSign(name) && isNothing(value)),
  );
}

function isSign(name: string): boolean {
  return NEXT_LINK.test(letters(name)) || OTHER_SIGN.test(letters(name));
}

function isNothing(value: Json): boolean {
  return value === null || value === false || value === "";
}

/** What the reply says of how much there is in all, beside what has come. */
function totalsOf({ fields, body, request, items, pages }: PageRead) {
  const members = isJsonObject(body) ? withNested(body).flatMap((object) => [...object]) : [];
  const headers = ["X-Total-Count", "X-Total"].map((name): [string, Json] => [
    name,
    fields.get(name.toLowerCase()) ?? null,
  ]);
  const range: [string, Json] = [
    "Content-Range",
    /\/(\d+)$/.exec(fields.get("content-range") ?? "")?.[1] ?? null,
  ];
  const ofItems = members.filter(([name]) => TOTAL.test(letters(name)));
  // Beside a total, or where it is the limit that was asked for, a count is that of a page.
  const limit = /\blimit"?[=:](\d+)/.exec(request.path + (request.body ?? ""))?.[1];
  const isOfPage = ([name, value]: readonly [string, Json]) =>
    letters(name) === "count" && (ofItems.length > 1 || plainText(value) === limit);
  const counted = [...ofItems.filter((member) => !isOfPage(member)), ...headers, range];
  const paged = members.filter(([name]) => TOTAL_PAGES.test(letters(name)));
  const entry =
    (came: number) =>
    ([name, value]: readonly [string, Json]) => ({
      name,
      total: Number(value === null ? Number.NaN : plainText(value)),
      came,
    });
  return [...counted.map(entry(items)), ...paged.map(entry(pages))].filter(
    ({ total }) => !Number.isNaN(total),
  );
}

function linkIn(value: Json): string | undefined {
  const text = isJsonObject(value) ? value.get("href") : value;
  return typeof text === "string" && isLink(text) ? text : undefined;
}

function isLink(text: string): boolean {
  return /^(?:https?:\/\/|\/|\?)/i.test(text);
}

function letters(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z]/g, "");
}

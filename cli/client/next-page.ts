/**
 * Where a list goes on: Link with rel="next" (RFC 8288), a link in the body, or a `next` cursor. The
 * specification shows no list, so what only looks like a next page is reported rather than ignored. Pure.
 */

import { memberNamed } from "./customer.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "./json.ts";
import { type ApiRequest, readPage } from "./wire/request.ts";

export type NextPage =
  | { kind: "none" }
  | { kind: "request"; request: ApiRequest }
  /** Outside of the base URL: credentials go nowhere else, whatever a server writes into a link. */
  | { kind: "next-elsewhere"; place: string }
  /** There is more, named by a member that this client can't follow. */
  | { kind: "next-unknown"; member: string };

/** @param request of the page that was just read. @param ask the request for the page at a cursor. @param base the base URL, no trailing slash. */
export function nextPage(
  { link, body }: { link: string | undefined; body: Json | undefined },
  request: ApiRequest,
  ask: (cursor: string) => ApiRequest,
  base: string,
): NextPage {
  const { target, cursor, other } = bodyNext(body);
  // A search is a POST: its next page is the same search with the cursor, whatever a link says.
  const place = request.method === "POST" ? undefined : ((link && linkTarget(link)) ?? target);
  const list = base + request.path;
  const url = place !== undefined && URL.canParse(place, list) ? new URL(place, list) : undefined;
  const path = url && pathBelow(url, new URL(list), base);
  if (path !== undefined) return { kind: "request", request: readPage(path) };
  if (cursor !== undefined) return { kind: "request", request: ask(cursor) };
  if (place !== undefined) return { kind: "next-elsewhere", place: url?.href ?? place };
  const member = other ?? (target === undefined ? undefined : "next");
  return member === undefined ? { kind: "none" } : { kind: "next-unknown", member };
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

function linkTarget(link: string): string | undefined {
  for (const [, target, parameters = ""] of link.matchAll(
    /<([^>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+\s*(?:=\s*(?:"[^"]*"|[^\s",;]+))?)*)/g,
  )) {
    const rel = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]+))/i.exec(parameters);
    const relations = (rel?.[1] ?? rel?.[2] ?? "").toLowerCase().split(/\s+/);
    if (relations.includes("next")) return target;
  }
  return undefined;
}

/** As letters alone, in lower case: `@odata.nextLink`, `next_page_url`. */
const NEXT_LINK = /^(?:odata)?next(?:link|(?:page)?url)?$/;
/** `next_page_token`, `hasMore`. */
const OTHER_SIGN = /^(?:next(?:page|(?:page)?token|cursor|offset)|has(?:more|next(?:page)?))$/;
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
  const nested = [...body].filter(([name]) => NEST.test(letters(name))).map(([, value]) => value);
  const objects = [body, ...nested.filter(isJsonObject)];
  for (const object of objects) {
    for (const [name, value] of object) {
      const target = NEXT_LINK.test(letters(name)) ? linkIn(value) : undefined;
      if (target !== undefined) return { target };
    }
  }
  const other = objects.map(signIn).find((name) => name !== undefined);
  return other === undefined ? {} : { other };
}

function signIn(object: JsonObject): string | undefined {
  for (const [name, value] of object) {
    const says = value !== null && value !== false && value !== "" && !isJsonArray(value);
    if (says && (NEXT_LINK.test(letters(name)) || OTHER_SIGN.test(letters(name)))) return name;
  }
  return undefined;
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

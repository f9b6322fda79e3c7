/** Who changed a customer, page by page: an addition of this project's service, which other deployments lack. */
import { formatJson, isJsonArray, type Json, type JsonObject, parseJson } from "./json.ts";
import { type PageOf, pagesOf } from "./pages.ts";
import { type Ports, readCurrent } from "./read-customer.ts";
import type { ReadRefusal } from "./refusal.ts";
import type { CompleteReply } from "./wire/reply.ts";
import { readHistory } from "./wire/request.ts";

/** One accepted write. */
export type HistoryEntry = {
  /** In UTC, as in RFC 3339. */
  time: string;
  /** The name of the client that wrote. */
  client: string;
  operation: string;
  /** Names of the fields that got other values, as far as the caller may read them. */
  changed: string[];
  /** The X-Request-Id of the write, or empty. */
  requestId: string;
  /** The entity-tag that the write made; null after a removal. */
  etag: string | null;
  /** The entity-tag before the write; null of a creation. */
  previousEtag: string | null;
  withoutIfMatch: boolean;
  /** What the changed fields held; `before` is null of a creation. Null where the service keeps no values. */
  values: Record<string, { before: string | null; after: string }> | null;
};

/** Entries exactly as the server wrote them. `not-offered`: this deployment has no history. */
type HistoryPage = PageOf<JsonObject> | ReadRefusal;

/** The newest change first; see pagesOf. */
export async function* eachHistoryPage(
  ports: () => Ports,
  id: string,
  limit?: number,
): AsyncGenerator<HistoryPage> {
  for await (const page of pagesOf(ports, (cursor) => readHistory(id, { limit, cursor }), entryOrUndefined)) {
    yield page.kind === "not-found" ? await notFound(page, ports(), id) : page;
  }
}

export function historyEntry(entry: JsonObject): HistoryEntry {
  return JSON.parse(formatJson(entry));
}

export function historyJson(entry: Partial<HistoryEntry>): Json {
  return parseJson(JSON.stringify(entry));
}

/** 404 means that there is no such customer, or no such route: a reading of the customer tells which. */
async function notFound(
  refusal: Extract<ReadRefusal, { reply: CompleteReply }>,
  ports: Ports,
  id: string,
): Promise<ReadRefusal> {
  const reading = await readCurrent(ports, id);
  if (reading.kind === "read") return { ...refusal, kind: "not-offered" };
  // A role may show the history and not the customer.
  return reading.kind === "not-found" || reading.kind === "forbidden" ? refusal : reading;
}

/** Undefined for what is no entry. */
export function entryOrUndefined(item: JsonObject): JsonObject | undefined {
  const texts = ["time", "client", "operation"].every((name) => typeof item.get(name) === "string");
  return texts && isJsonArray(item.get("changed")) ? item : undefined;
}

import type { AuditEntry } from "../domain/audit/audit-entry.ts";
import { changedValues } from "../domain/audit/kept-values.ts";
import { isoTime } from "../domain/text/iso-time.ts";
import { historyPages } from "./audit/history-pages.ts";
import type { FoundCustomer } from "./person-search.ts";
import { type KeptReply, REPLIES_PAGE } from "./person-store.ts";
import type { Storage } from "./storage.ts";

type Stores = Pick<Storage, "persons" | "audit">;

/**
 * All that is stored of a person, for the person itself: it names no tokens, and no requests. Times are in UTC.
 *
 * @returns one JSON document, in pieces that each end before a line break: a history may be longer than the memory
 */
export async function* exportPerson(
  stores: Stores,
  askedFor: readonly string[],
  customers: readonly FoundCustomer[],
): AsyncGenerator<string> {
  yield opened({ exportedAt: isoTime(Date.now()), askedFor }, "customers", 0);
  for (const [index, customer] of customers.entries()) {
    yield* exportCustomer(stores, customer);
    yield index === customers.length - 1 ? "    }" : "    },";
  }
  yield "  ]\n}";
}

async function* exportCustomer(
  { persons, audit }: Stores,
  { tenant, id, state }: FoundCustomer,
): AsyncGenerator<string> {
  const record = await persons.record(tenant, id);
  const customer =
    record === null
      ? null
      : {
          ...{ id: record.id, name: record.name, email: record.email, status: record.status },
          ...{ version: record.rowVersion, createdAt: isoTime(record.createdAtMs) },
        };
  yield opened({ tenant, id, state, customer }, "keptReplies", 4);
  yield* elements(replyPages(persons, tenant, id), ({ expiresAtMs, fields }) => ({
    keptUntil: isoTime(expiresAtMs),
    fields,
  }));
  yield '      ],\n      "history": [';
  yield* elements(historyPages(audit, tenant, id), entryOf);
  yield "      ]";
}

/** No more than a page of them is in memory. */
async function* replyPages(
  persons: Stores["persons"],
  tenant: string,
  id: string,
): AsyncGenerator<readonly KeptReply[]> {
  for (let after: string | null = null; ; ) {
    const page: readonly KeptReply[] = await persons.keptReplies(tenant, id, after);
    yield page;
    if (page.length < REPLIES_PAGE) return;
    after = page.at(-1)?.position ?? null;
  }
}

/** The elements of an array, a piece for each page. */
async function* elements<Item>(
  pages: AsyncIterable<readonly Item[]>,
  shown: (item: Item) => Record<string, unknown>,
): AsyncGenerator<string> {
  let piece = "";
  for await (const page of pages) {
    if (page.length === 0) continue;
    if (piece !== "") yield `${piece},`;
    piece = page.map((item) => indented(shown(item), 8)).join(",\n");
  }
  if (piece !== "") yield piece;
}

/** An object whose last member is an array that follows. */
function opened(members: Record<string, unknown>, array: string, indent: number): string {
  const whole = indented({ ...members, [array]: [] }, indent);
  return whole.slice(0, whole.lastIndexOf("]"));
}

function indented(value: unknown, indent: number): string {
  const margin = " ".repeat(indent);
  return `${margin}${JSON.stringify(value, null, 2).replaceAll("\n", `\n${margin}`)}`;
}

function entryOf(entry: AuditEntry): Record<string, unknown> {
  return {
    time: isoTime(entry.timeMs),
    client: entry.client,
    operation: entry.operation,
    changed: entry.changed,
    versionBefore: entry.versionBefore,
    versionAfter: entry.versionAfter,
    values: entry.values === null ? null : changedValues(entry.values, entry),
  };
}

/**
 * `import --dry-run`: reads what the rows name, counts what would come of them, and shows some of the
 * changes.
 */

import { spelledUnseen } from "../client/customer.ts";
import { formatJson } from "../client/json.ts";
import { eachPage } from "../client/pages.ts";
import type { Ports } from "../client/read-customer.ts";
import { parseEntityTag } from "../client/wire/entity-tag.ts";
import type { Invocation } from "../invocation.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { inOneSentence, readReason } from "../outcome/reply-failure.ts";
import { changeLines } from "../outcome/value-text.ts";
import { showProgress } from "../output/progress.ts";
import { visibleControls } from "../output/visible-controls.ts";
import { emailOf, matchByEmail } from "./match.ts";
import { forEachConcurrently } from "./pool.ts";
import { changeOf, readForRow, stopsAll, unreadRow, unusableTag } from "./row.ts";
import { type Header, isOfTheRow, type Row } from "./rows.ts";
import { type ImportPlan, keyOf, place } from "./run.ts";

export type Rehearsal = Pick<ImportPlan, "rows" | "total" | "concurrency" | "match"> & { header: Header };

type Forecast = { created: number; updated: number; unchanged: number; failed: number };

/** Rows whose changes are shown, and rows whose failures are. */
const SHOWN_MAX = 5;

export async function forecastImport(
  invocation: Invocation,
  { rows, header, total, concurrency, match }: Rehearsal,
): Promise<{ forecast: Forecast; stop: Failure | undefined }> {
  const { api, out, interrupted, settings, ports } = invocation;
  const newEmails = new Set<string>();
  const forecast: Forecast = { created: 0, updated: 0, unchanged: 0, failed: 0 };
  let shown = 0;
  let stop: Failure | undefined;
  const done = () => forecast.created + forecast.updated + forecast.unchanged + forecast.failed;
  const progress = showProgress(invocation, "rows", () => ({
    done: done(),
    before: 0,
    total,
    conflicts: 0,
    failed: forecast.failed,
  }));

  async function show(row: Row, lines: string[]): Promise<void> {
    shown += 1;
    if (shown > SHOWN_MAX) return;
    const text = `${place(row)}: ${lines.join("\n  ")}`;
    // stdout of a script that asks for JSON is the counts alone, and lines of CSV and of values are
    // customers.
    if (settings.output !== undefined && settings.output !== "table") progress.say(text);
    else await out.write(visibleControls(`${text}\n`));
  }

  function fail(row: Row, reason: string): void {
    forecast.failed += 1;
    if (forecast.failed <= SHOWN_MAX) progress.say(`${place(row)}: ${reason}`);
  }

  /** The customer that a row updates; undefined where it creates one, or where its failure is counted. */
  async function idOf(row: Row): Promise<string | undefined> {
    if (row.id !== undefined) return row.id;
    const email = match === undefined ? undefined : emailOf(row)?.toLowerCase();
    if (match !== undefined && email !== undefined && newEmails.has(email)) {
      forecast.updated += 1; // of the customer that a row before this one creates
      return undefined;
    }
    const found = match === undefined ? ({ kind: "none" } as const) : await matchByEmail(ports(), row);
    if (found.kind === "one") return found.id;
    if (found.kind === "failed") {
      if (found.everyRow || stopsAll(found.failure)) stop ??= found.failure;
      else fail(row, found.failure.message);
      return undefined;
    }
    if (email !== undefined) newEmails.add(email);
    forecast.created += 1;
    await show(row, [`create ${formatJson(spelledUnseen(row.values, settings.casing))}`]);
    return undefined;
  }

  async function look(row: Row): Promise<void> {
    const { etag } = row;
    const id = await idOf(row);
    if (id === undefined) return;
    if (etag !== undefined && parseEntityTag(etag).kind !== "strong") {
      return fail(row, unusableTag(id, etag).message);
    }
    if (row.values.size === 0) {
      forecast.unchanged += 1;
      return;
    }
    const reading = await readForRow(ports(), id, row);
    if (reading.kind !== "read") {
      const failure = unreadRow({ transport: api }, id, reading);
      if (stopsAll(failure)) stop ??= failure;
      else fail(row, failure.message);
      return;
    }
    const current = reading.customer;
    const change = changeOf(row, current.value);
    if (change.size === 0) {
      forecast.unchanged += 1;
      return;
    }
    if (etag !== undefined && etag !== current.etag) {
      return fail(row, `customer ${id} is no longer the version ${etag} that the row's etag names`);
    }
    if (parseEntityTag(current.etag).kind !== "strong") {
      return fail(row, `customer ${id} came without a strong entity-tag (customers doctor says why)`);
    }
    forecast.updated += 1;
    await show(row, [`update customer ${id}`, ...changeLines(change, current)]);
  }

  stop = await refusedColumns(ports, api.url, header);
  try {
    await forEachConcurrently(rows, {
      concurrency,
      keyOf: (row) => keyOf(row, match),
      stopped: () => stop !== undefined || interrupted.aborted,
      work: look,
    });
  } finally {
    progress.stop();
  }
  if (interrupted.aborted) stop ??= failure("interrupted", "interrupted");
  return { forecast, stop };
}

/**
 * Asks for the columns as fields: what the server does not know, no row can set. A server without lists
 * can't be asked.
 */
async function refusedColumns(ports: () => Ports, url: string, header: Header): Promise<Failure | undefined> {
  const fields = header.filter((column) => !isOfTheRow(column));
  if (fields.length === 0) return undefined;
  for await (const page of eachPage(ports, { fields, limit: 1 })) {
    if (page.kind !== "invalid") return undefined;
    const reason = readReason(page, { what: "the list of customers", url, fields, collection: true });
    return inOneSentence({ ...reason, claim: `the server does not take the columns ${fields.join(", ")}` });
  }
  return undefined;
}

export function forPrograms({ settings }: Pick<Invocation, "settings">): boolean {
  return settings.output === "json" || settings.output === "ndjson";
}

/** `import --dry-run`: reads what the rows name, counts what would come of them, and shows some of the changes. */

import { type Customer, memberNamed } from "../client/customer.ts";
import { parseEntityTag } from "../client/entity-tag.ts";
import { formatJson, type JsonObject } from "../client/json.ts";
import type { Invocation } from "../commands/invocation.ts";
import type { Failure } from "../outcome/failure.ts";
import { showProgress } from "../output/progress.ts";
import { visibleControls } from "../output/visible-controls.ts";
import { forEachConcurrently } from "./pool.ts";
import { changeOf, createdValue, readForRow, stopsAll, unusableTag } from "./row.ts";
import type { Row } from "./rows.ts";
import { place } from "./run.ts";

export type Forecast = { created: number; updated: number; unchanged: number; failed: number };

/** Rows whose changes are shown, and rows whose failures are. */
const SHOWN_MAX = 5;

export async function forecastImport(
  invocation: Invocation,
  { rows, total, concurrency }: { rows: AsyncIterable<Row>; total: number; concurrency: number },
): Promise<{ forecast: Forecast; stop: Failure | undefined }> {
  const { api, out, interrupted, settings } = invocation;
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
    // stdout of a script that asks for JSON is the counts alone, and lines of CSV and of values are customers.
    if (settings.output !== undefined && settings.output !== "table") progress.say(text);
    else await out.write(visibleControls(`${text}\n`));
  }

  function fail(row: Row, reason: string): void {
    forecast.failed += 1;
    if (forecast.failed <= SHOWN_MAX) progress.say(`${place(row)}: ${reason}`);
  }

  async function look(row: Row): Promise<void> {
    const { id, etag } = row;
    if (id === undefined) {
      forecast.created += 1;
      return await show(row, [`create ${formatJson(createdValue(row, settings.casing))}`]);
    }
    if (etag !== undefined && parseEntityTag(etag).kind !== "strong") {
      return fail(row, unusableTag(id, etag).message);
    }
    const current = await readForRow({ api, deadline: invocation.deadline() }, id, row);
    if ("exit" in current) {
      if (stopsAll(current)) stop ??= current;
      else fail(row, current.message);
      return;
    }
    const change = changeOf(row, current.value);
    if (change.size === 0) {
      forecast.unchanged += 1;
      return;
    }
    if (etag !== undefined && etag !== current.etag) {
      return fail(row, `customer ${id} is no longer the version ${etag} that the row's etag names`);
    }
    if (parseEntityTag(current.etag).kind !== "strong") {
      return fail(row, `customer ${id} came without a strong entity-tag (customers doctor tells why)`);
    }
    forecast.updated += 1;
    await show(row, [`update customer ${id}`, ...changeLines(current, change)]);
  }

  try {
    await forEachConcurrently(rows, {
      concurrency,
      keyOf: () => undefined,
      stopped: () => stop !== undefined || interrupted.aborted,
      work: look,
    });
  } finally {
    progress.stop();
  }
  if (interrupted.aborted) stop ??= { exit: "interrupted", code: "interrupted", message: "interrupted" };
  return { forecast, stop };
}

export function forPrograms({ settings }: Pick<Invocation, "settings">): boolean {
  return settings.output === "json" || settings.output === "ndjson";
}

function changeLines(current: Customer, change: JsonObject): string[] {
  return [...change].map(([field, to]) => {
    const from = memberNamed(current.value, field)?.value;
    return `${field}: ${from === undefined ? "(absent)" : formatJson(from)} -> ${formatJson(to)}`;
  });
}

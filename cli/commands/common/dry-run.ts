/** --dry-run: the request that would be sent, and the change field by field. */
import { type Customer, parseJsonOrUndefined } from "../../client/customer.ts";
import { formatJson, isJsonObject, type Json, type JsonObject } from "../../client/json.ts";
import { previewWrite } from "../../client/loop/loop.ts";
import type { WriteJob } from "../../client/loop/write-job.ts";
import type { ApiRequest } from "../../client/wire/request.ts";
import type { Ending, Invocation } from "../../invocation.ts";
import { changedFields, changeLines } from "../../outcome/value-text.ts";
import { badOutcome, pinnedElsewhere, writeEnding } from "../../outcome/write-ending.ts";
import { outputFormat } from "../../output/print-customers.ts";
import { escapedInJson, visibleControls } from "../../output/visible-controls.ts";

/** Reads and decides as the write itself would, and prints in place of sending. @param done "updated" or "deleted". */
export async function dryRun(invocation: Invocation, job: WriteJob, done: string): Promise<Ending> {
  const { api, messages } = invocation;
  const { id, onConflict, ifMatch } = job;
  const about = { id, done, url: api.url, onConflict };
  const preview = await previewWrite(invocation.ports(), job);
  if (preview.kind !== "would-write") {
    const bad = badOutcome(preview);
    if (bad !== undefined) return writeEnding(about, bad);
    messages.note(`dry run: customer ${id} is already as wanted; nothing would be sent`);
    return undefined;
  }
  const { request, current } = preview;
  // The server would refuse it.
  if (ifMatch !== undefined && ifMatch !== current.etag) return pinnedElsewhere(about, current, ifMatch);
  await printRequest(invocation, request, current);
  messages.note(`dry run: customer ${id} was not ${done}; nothing was sent`);
  return undefined;
}

/** @param current what the changes are compared with; undefined for a creation. */
export async function printRequest(
  invocation: Invocation,
  request: ApiRequest,
  current: Customer | undefined,
): Promise<void> {
  const { out, api, messages } = invocation;
  const url = api.url + request.path;
  const body = request.body === undefined ? null : (parseJsonOrUndefined(request.body) ?? null);
  const values: JsonObject = isJsonObject(body) ? body : new Map();
  const format = outputFormat(invocation);
  if (format === "json" || format === "ndjson") {
    const value = new Map<string, Json>([
      ["dryRun", true],
      [
        "request",
        new Map<string, Json>([
          ["method", request.method],
          ["url", url],
          ["headers", new Map(Object.entries(request.headers))],
          ["body", body],
        ]),
      ],
      [
        "changes",
        changedFields(values, current).map(
          ({ field, from, to }) =>
            new Map<string, Json>([
              ["field", field],
              ["from", from ?? null],
              ["to", to],
            ]),
        ),
      ],
    ]);
    await out.write(`${escapedInJson(formatJson(value))}\n`);
    return;
  }
  const lines = [
    `${request.method} ${url}`,
    ...Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`),
    ...(request.body === undefined ? [] : ["", request.body]),
    "",
    ...changeLines(values, current),
  ];
  const text = lines.join("\n").trimEnd();
  // Lines of CSV and of values are customers, and a request is none.
  if (format === "table") await out.write(visibleControls(`${text}\n`));
  else messages.warn(text);
}

/** --dry-run: the request that would be sent, and the change field by field. */

import { type Customer, memberNamed, parseJsonOrUndefined } from "../client/customer.ts";
import { parseEntityTag } from "../client/entity-tag.ts";
import { formatJson, isJsonObject, type Json, jsonEquals } from "../client/json.ts";
import { readState, type WriteJob } from "../client/loop.ts";
import type { ApiRequest } from "../client/request.ts";
import { afterReading, NO_HISTORY } from "../client/step.ts";
import { conflictFailure, expectationFailure, tagFailure } from "../outcome/conflict-failure.ts";
import { outputFormat } from "../output/print-customers.ts";
import { visibleControls } from "../output/visible-controls.ts";
import type { Ending, Invocation } from "./invocation.ts";

/** Reads and decides as the write itself would, and prints in place of sending. */
export async function dryRun(invocation: Invocation, job: WriteJob): Promise<Ending> {
  const { api, messages } = invocation;
  const { id, intent, onConflict, expect, ifMatch: pin } = job;
  const about = { id, done: intent.done, url: api.url };
  const current = await readState({ api, deadline: invocation.deadline() }, job);
  if ("exit" in current) return current;
  const step = afterReading({ intent, onConflict, expect, pin }, NO_HISTORY, current, current, undefined);
  if (step.kind === "expectation") return expectationFailure(about, step, current);
  if (step.kind === "unchanged") {
    messages.note(`dry run: customer ${id} is already as wanted; nothing would be sent`);
    return undefined;
  }
  if (step.kind === "conflict" || (pin !== undefined && pin !== current.etag)) {
    return conflictFailure(about, {
      history: NO_HISTORY,
      pin,
      onConflict,
      fields: [],
      current: current.etag,
    });
  }
  const tag = parseEntityTag(pin ?? current.etag);
  if (tag.kind !== "strong") return tagFailure(about, tag);
  await printRequest(invocation, intent.request(current, tag.tag), current);
  messages.note(`dry run: customer ${id} was not ${intent.done}; nothing was sent`);
  return undefined;
}

/** @param current what the changes are told against; undefined for a creation. */
export async function printRequest(
  invocation: Invocation,
  request: ApiRequest,
  current: Customer | undefined,
): Promise<void> {
  const { out, api, messages } = invocation;
  const url = api.url + request.path;
  const body = request.body === undefined ? null : (parseJsonOrUndefined(request.body) ?? null);
  const changes = changesOf(body, current);
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
        changes.map(
          ({ field, from, to }) =>
            new Map<string, Json>([
              ["field", field],
              ["from", from ?? null],
              ["to", to],
            ]),
        ),
      ],
    ]);
    await out.write(`${formatJson(value)}\n`);
    return;
  }
  const lines = [
    `${request.method} ${url}`,
    ...Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`),
    ...(request.body === undefined ? [] : ["", request.body]),
    "",
    ...changes.map(
      ({ field, from, to }) =>
        `${field}: ${from === undefined ? "(absent)" : formatJson(from)} -> ${formatJson(to)}`,
    ),
  ];
  const text = lines.join("\n").trimEnd();
  // Lines of CSV and of values are customers, and a request is none.
  if (format === "table") await out.write(visibleControls(`${text}\n`));
  else messages.warn(text);
}

function changesOf(
  body: Json,
  current: Customer | undefined,
): { field: string; from: Json | undefined; to: Json }[] {
  if (!isJsonObject(body)) return [];
  return [...body]
    .map(([field, to]) => ({
      field,
      from: current === undefined ? undefined : memberNamed(current.value, field)?.value,
      to,
    }))
    .filter(({ from, to }) => !jsonEquals(from ?? null, to));
}

/** One row of an import against the server: what came of it, and whether the import can go on. */

import { type Creation, createUntilDecided } from "../client/creation.ts";
import { memberNamed, parseJsonOrUndefined, plainText, spelledUnseen } from "../client/customer.ts";
import { type Json, type JsonObject, jsonEquals } from "../client/json.ts";
import { looksWritten } from "../client/loop/field-conflicts.ts";
import { changeIntent } from "../client/loop/intent.ts";
import { writeUntilDecided } from "../client/loop/loop.ts";
import { refusesValues } from "../client/loop/verdict.ts";
import type { Expectation, OnConflict } from "../client/loop/write-job.ts";
import type { WriteOutcome } from "../client/loop/write-outcome.ts";
import { type Ports, type Reading, readCurrent } from "../client/read-customer.ts";
import type { ReadRefusal } from "../client/refusal.ts";
import { readWhole } from "../client/whole-customer.ts";
import type { Deadline } from "../client/wire/deadline.ts";
import { parseEntityTag } from "../client/wire/entity-tag.ts";
import type { Transport } from "../client/wire/reply.ts";
import { createCustomer } from "../client/wire/request.ts";
import { isSuccess } from "../client/wire/status.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { NOT_A_SERVICE, readFailure } from "../outcome/reply-failure.ts";
import { badOutcome, creationEnding, writeEnding } from "../outcome/write-ending.ts";
import type { EarlierSending } from "./journal.ts";
import type { Row } from "./rows.ts";

export type RowOutcome = (
  | { kind: "created"; earlier: EarlierSending | undefined }
  /** `unclear`: a reply was lost, and the customer is found as the row wants it, perhaps by someone else. */
  | { kind: "updated"; unclear: boolean }
  | { kind: "unchanged" }
  /** This row's own fault; final. */
  | { kind: "failed"; failure: Failure }
  /** A write was sent and nobody knows what came of it. */
  | { kind: "unknown"; failure: Failure }
  /** Nothing came of this row, and nothing would of the next. */
  | { kind: "stop"; failure: Failure }
) & { conflicts: number; write?: RowWrite };

/** What was sent for a row, and what came of it. */
type RowWrite =
  | { kind: "update"; id: string; outcome: WriteOutcome }
  | { kind: "creation"; creation: Creation };

export type RowContext = {
  transport: Transport;
  deadline: Deadline;
  casing: "lower" | "pascal";
  onConflict: OnConflict;
  maxAttempts: number | undefined;
  /** Records what an update replaced, for undo. */
  record(id: string, change: JsonObject, outcome: WriteOutcome): void;
  /** Must hold at every reading before a write. */
  expect?: readonly Expectation[];
};

export async function createRow(
  context: RowContext,
  row: Row,
  key: string,
  sentBefore: boolean,
): Promise<RowOutcome> {
  const request = createCustomer(spelledUnseen(row.values, context.casing), key);
  const creation = await createUntilDecided(context, request);
  return { ...createdOutcome(context, creation, sentBefore), write: { kind: "creation", creation } };
}

function createdOutcome(context: RowContext, creation: Creation, sentBefore: boolean): RowOutcome {
  if (creation.kind === "created") {
    const earlier = creation.replayed ? "replayed" : sentBefore ? "doubtful" : undefined;
    return { kind: "created", earlier, conflicts: 0 };
  }
  const subject = { what: "the customer", url: context.transport.url, method: "POST", collection: true };
  const failure = creationEnding(creation, subject, undefined);
  if (creation.kind === "unknown-outcome") return { kind: "unknown", failure, conflicts: 0 };
  const outcome = refusedRow(failure);
  if (!sentBefore || outcome.kind !== "failed") return outcome;
  // Called failed, the row would be imported anew, under another key, and an earlier sending may have created it.
  const decided = creation.reply.kind === "complete" && refusesValues(creation.reply);
  return decided ? outcome : { kind: "unknown", failure, conflicts: 0 };
}

/** @param sentBefore an earlier run left the outcome of this row open. */
export async function updateRow(
  context: RowContext,
  id: string,
  row: Row,
  sentBefore: boolean,
): Promise<RowOutcome> {
  const outcome = await updateOnce(context, id, row);
  // It is as the row wants it: by that earlier sending, or by someone else.
  return sentBefore && outcome.kind === "unchanged"
    ? { kind: "updated", unclear: true, conflicts: outcome.conflicts }
    : outcome;
}

async function updateOnce(context: RowContext, id: string, row: Row): Promise<RowOutcome> {
  const { casing, onConflict, maxAttempts, expect = [] } = context;
  if (row.etag !== undefined && parseEntityTag(row.etag).kind !== "strong") {
    return { kind: "failed", failure: unusableTag(id, row.etag), conflicts: 0 };
  }
  if (row.values.size === 0) return { kind: "unchanged", conflicts: 0 };
  const reading = isSelfExplaining(row) ? undefined : await readForRow(context, id, row);
  if (reading !== undefined && reading.kind !== "read") return refusedRow(unreadRow(context, id, reading));
  const base = reading?.customer;
  const change = base === undefined ? row.values : changeOf(row, base.value);
  if (change.size === 0) return { kind: "unchanged", conflicts: 0 };
  const intent = changeIntent({ id, change, alsoRead: expect.map(({ field }) => field), casing });
  const job = { id, intent, onConflict, expect, ifMatch: row.etag, maxAttempts, base };
  const outcome = await writeUntilDecided(context, job);
  context.record(id, change, outcome);
  return { ...rowOutcome(context, outcome, id, row), write: { kind: "update", id, outcome } };
}

/** Its quotes belong to a tag; a weak one can't be the condition of a write. */
export function unusableTag(id: string, etag: string): Failure {
  return failure(
    "failure",
    `customer ${id} was not updated: the row's etag (${etag}) is no strong entity-tag like "abc", quotes included`,
  );
}

/** What the row's columns are compared with. */
export function readForRow(ports: Ports, id: string, { values }: Row): Promise<Reading> {
  const fields = [...values.keys()];
  return fields.every(isTextField) ? readCurrent(ports, id, { fields }) : readWhole(ports, id);
}

export function unreadRow(
  { transport }: Pick<Ports, "transport">,
  id: string,
  refusal: ReadRefusal,
): Failure {
  return readFailure(refusal, { what: `customer ${id}`, url: transport.url });
}

/** Members that are strings wherever the specification shows them. */
const TEXT_FIELDS = ["name", "email", "status"];

function isTextField(column: string): boolean {
  return TEXT_FIELDS.includes(column.toLowerCase());
}

/**
 * True where the row alone says what is to be written: CSV knows text only, and so can't where a member may
 * be a number.
 */
function isSelfExplaining({ source, values }: Row): boolean {
  return source.format === "ndjson" || [...values.keys()].every(isTextField);
}

/**
 * What a row would change of this customer. A cell that says what is there changes nothing; another is read
 * as JSON where the member is there and is no string.
 */
export function changeOf({ source, values }: Row, base: JsonObject): JsonObject {
  const change = new Map<string, Json>();
  for (const [column, value] of values) {
    const now = memberNamed(base, column)?.value;
    const text = source.format === "csv" && typeof value === "string" ? value : undefined;
    if (now !== undefined && text === plainText(now)) continue;
    const typed =
      text !== undefined && now !== undefined && typeof now !== "string"
        ? parseJsonOrUndefined(text)
        : undefined;
    const wanted = typed ?? value;
    if (!jsonEquals(wanted, now ?? null)) change.set(column, wanted);
  }
  return change;
}

function refusedRow(failure: Failure, conflicts = 0): RowOutcome {
  return { kind: stopsAll(failure) ? "stop" : "failed", failure, conflicts };
}

function rowOutcome(context: RowContext, outcome: WriteOutcome, id: string, row: Row): RowOutcome {
  const { conflicts } = outcome;
  const { onConflict, transport } = context;
  const bad = badOutcome(outcome);
  if (bad === undefined) {
    if (outcome.kind === "written") return { kind: "updated", unclear: false, conflicts };
    return outcome.unknowns > 0
      ? { kind: "updated", unclear: true, conflicts }
      : { kind: "unchanged", conflicts };
  }
  const failure = writeEnding({ id, done: "updated", url: transport.url, onConflict }, bad);
  if (bad.kind === "unknown-outcome") return { kind: "unknown", failure, conflicts };
  if (bad.kind !== "conflict") return refusedRow(failure, conflicts);
  // A second run meets its own writes again: what is there is what the row wants, and nothing is claimed.
  if (row.etag !== undefined && looksWritten(bad.theirs.value, row.values))
    return { kind: "unchanged", conflicts };
  return { kind: "failed", failure: row.etag === undefined ? failure : pinned(failure, row), conflicts };
}

/** The reason is read in a file of rows, where nobody gave an --if-match. */
function pinned(failure: Failure, { id, etag }: Row): Failure {
  return { ...failure, message: `customer ${id} is no longer the version ${etag} that the row's etag names` };
}

/** Replies that concern every row: no credentials, and not now. */
const OF_EVERY_ROW = [401, 407, 429, 502, 503, 504];

/**
 * True for what every other row would meet too: no server, no credentials, an interruption. A 403 may
 * concern a field that these credentials may not write, a 500 a customer that the server fails on.
 */
export function stopsAll({ exit, status, code }: Failure): boolean {
  // What spoils one entity-tag on the way spoils them all.
  if (code.startsWith("etag-") || code === NOT_A_SERVICE) return true;
  // A success that is none is a proxy's page, which stands before every row.
  if (status !== undefined) return OF_EVERY_ROW.includes(status) || isSuccess(status);
  return exit === "unreachable" || exit === "interrupted" || exit === "usage";
}

/** The result of a write for programs (--result): one object for each customer, whatever came of it. */
import type { Creation } from "../client/creation.ts";
import type { Customer } from "../client/customer.ts";
import { historyJson } from "../client/customer-history.ts";
import { type Json, JsonNumber, type JsonObject } from "../client/json.ts";
import type { WriteOutcome } from "../client/loop/write-outcome.ts";
import { requestIdOf } from "../client/wire/reply.ts";
import type { Failure } from "./failure.ts";

/**
 * `as-wanted`: the customer has the wanted values, and no reply says whose write made it so. `replayed`: an
 * earlier request with the same idempotency key created it. `not-written`: nothing of this command was
 * applied.
 */
type ResultWord =
  | "created"
  | "replayed"
  | "updated"
  | "deleted"
  | "unchanged"
  | "as-wanted"
  | "not-written"
  | "unknown";

/** @param done what an accepted write is called. @param failure why it ended badly, if it did. */
export function resultOfWrite(
  id: string,
  done: "updated" | "deleted",
  outcome: WriteOutcome,
  { failure, customer }: { failure?: Failure | undefined; customer?: Customer | undefined },
): JsonObject {
  const { kind, attempts, conflicts, unknowns, before, after, requestId } = outcome;
  const overwritten = kind === "written" ? outcome.overwritten : [];
  return new Map<string, Json>([
    ["id", id],
    ["result", wordOf(kind, done)],
    ...reason(failure),
    ...counts(attempts, conflicts, unknowns),
    ["tagBefore", before ?? null],
    ["tagAfter", after ?? null],
    ["requestId", failure?.requestId ?? requestId ?? null],
    [
      "overwritten",
      overwritten.map(
        ({ field, theirs, mine }) =>
          new Map<string, Json>([
            ["field", field],
            ["theirs", theirs ?? null],
            ["mine", mine ?? null],
          ]),
      ),
    ],
    ["changes", outcome.changes.map(historyJson)],
    ["customer", customer?.value ?? null],
  ]);
}

export function resultOfCreation(creation: Creation, failure: Failure | undefined): JsonObject {
  const created = creation.kind === "created" ? creation : undefined;
  const unclear = creation.kind === "unknown-outcome" ? creation.unclear : undefined;
  const word =
    created === undefined ? (unclear ? "unknown" : "not-written") : created.replayed ? "replayed" : "created";
  const requestId = created?.requestId ?? (unclear && requestIdOf(unclear)) ?? failure?.requestId;
  return new Map<string, Json>([
    ["id", created?.id ?? null],
    ["result", word satisfies ResultWord],
    ...reason(failure),
    ...counts(creation.attempts, 0, unclear ? 1 : 0),
    ["tagBefore", null],
    ["tagAfter", created?.tag ?? null],
    ["requestId", requestId ?? null],
    ["overwritten", []],
    ["changes", []],
    ["customer", created?.customer?.value ?? null],
  ]);
}

/** Two members, null after a good end: the code and the sentence of the error. */
export function reason(failure: Failure | undefined): [string, Json][] {
  return [
    ["code", failure?.code ?? null],
    ["message", failure?.message ?? null],
  ];
}

function counts(attempts: number, conflicts: number, unclearReplies: number): [string, Json][] {
  return Object.entries({ attempts, conflicts, unclearReplies }).map(([name, count]) => [
    name,
    new JsonNumber(String(count)),
  ]);
}

function wordOf(kind: WriteOutcome["kind"], done: "updated" | "deleted"): ResultWord {
  if (kind === "written") return done;
  if (kind === "unchanged" || kind === "as-wanted") return kind;
  return kind === "unknown-outcome" ? "unknown" : "not-written";
}

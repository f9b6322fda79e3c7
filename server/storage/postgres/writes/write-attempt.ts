import type { CustomerFields } from "../../../domain/customer/customer.ts";
import type { LaneConnection } from "../connection/lane.ts";
import { columnsOf } from "../rows/array-literal.ts";
import { JUDGE_TEXT } from "../rows/customer-sql.ts";
import type { AppliedRow, Outcome, QueuedWrite } from "./queued-write.ts";
import { judge, type Seen, type Verdict } from "./write-verdict.ts";

type Accepted = Extract<Outcome, { isReplayed: boolean }>;

/** A write, and whether the answer to an earlier try of it was lost. */
export type Tried = { readonly write: QueuedWrite; readonly wasUnknown: boolean };

export type AttemptResult =
  | { readonly kind: "settled"; readonly outcome: Outcome; readonly isApplied: boolean }
  /** Another session holds the row; nothing was changed. */
  | { readonly kind: "held" }
  /** Neither what became of it can be said, nor may it be sent again. */
  | { readonly kind: "unknown" };

const NOTHING_SEEN: Seen = { row_version: null, outcome: null, fields: null, is_same_request: null };

/**
 * Sends one statement for writes of one kind, and asks about those that it did not apply.
 *
 * @param isAlone waits for rows that another session holds
 * @returns the results in the order of the writes
 * @throws StatementFailed when the statement that writes failed
 */
export async function attempt(
  lane: LaneConnection,
  tried: readonly Tried[],
  isAlone: boolean,
): Promise<AttemptResult[]> {
  const kind = tried[0]?.write.kind;
  if (kind === undefined) return [];
  const text = isAlone ? kind.aloneText : kind.batchText;
  const rows = await lane.run<AppliedRow>(text, kind.params(tried.map(({ write }) => write)));
  const applied = new Map(rows.map((row) => [row.n, row]));
  const left = tried.filter((_, index) => !applied.has(index + 1));
  const verdicts = new Map((await look(lane, left)).map((verdict, index) => [left[index], verdict]));
  const results: AttemptResult[] = [];
  for (const [index, one] of tried.entries()) {
    const row = applied.get(index + 1);
    if (row !== undefined) {
      results.push({ kind: "settled", outcome: one.write.outcomeOf(row), isApplied: true });
    } else {
      results.push(await resultOf(lane, one.write, verdicts.get(one) ?? { kind: "held" }));
    }
  }
  return results;
}

/** Asks why writes were not applied. @returns the verdicts in their order */
export async function look(lane: LaneConnection, left: readonly Tried[]): Promise<Verdict[]> {
  if (left.length === 0) return [];
  const asked = left.map(({ write: { target, key } }) => [
    ...[target?.tenant ?? null, target?.id ?? null],
    ...[key?.tokenId ?? null, key?.key ?? null, key?.digest ?? null],
    key === null ? null : String(key.nowMs),
  ]);
  const rows = await lane.run<Seen & { readonly n: number }>(JUDGE_TEXT, columnsOf(asked));
  const seen = new Map(rows.map((row) => [row.n, row]));
  return left.map(({ write: { target, next, key }, wasUnknown }, index) => {
    // Without a target it is a creation, which only its key can have kept from being made.
    const expected = target?.expected ?? { anyExcept: [] };
    return judge({ expected, next, isKeyed: key !== null, wasUnknown }, seen.get(index + 1) ?? NOTHING_SEEN);
  });
}

export async function resultOf(
  lane: LaneConnection,
  write: QueuedWrite,
  verdict: Verdict,
): Promise<AttemptResult> {
  const settled = (outcome: Outcome): AttemptResult => ({ kind: "settled", outcome, isApplied: false });
  switch (verdict.kind) {
    case "held":
    case "unknown":
      return verdict;
    case "replayed":
      return settled(replayOf(verdict, write));
    case "applied-before":
      return await reread(lane, write);
    default:
      return settled(verdict);
  }
}

/**
 * The outcome of a write whose answer was lost: as it
 * stored it, or unknown where it was overwritten just now.
 */
async function reread(lane: LaneConnection, write: QueuedWrite): Promise<AttemptResult> {
  const { target, rereadText, next } = write;
  if (target === null || rereadText === null) return { kind: "unknown" };
  const [row] = await lane.run<AppliedRow>(rereadText, columnsOf([[target.tenant, target.id]]));
  if (row?.["row_version"] !== next) return { kind: "unknown" };
  return { kind: "settled", outcome: write.outcomeOf(row), isApplied: true };
}

/**
 * What is kept under a key is the outcome as it was answered.
 * An earlier try of this very request is no replay.
 */
function replayOf(kept: Extract<Verdict, { kind: "replayed" }>, { next }: QueuedWrite): Outcome {
  const outcome = JSON.parse(kept.outcome) as Accepted;
  const isOwn = "rowVersion" in outcome && outcome.rowVersion === next;
  const fields = kept.fields === null ? {} : { fields: JSON.parse(kept.fields) as CustomerFields };
  return { ...outcome, ...fields, isReplayed: !isOwn };
}

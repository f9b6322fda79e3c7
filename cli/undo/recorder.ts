/** Keeps what the writes of a command replace, where the setting `undo` asks for it. */
import { memberNamed } from "../client/customer.ts";
import type { Json } from "../client/json.ts";
import type { Change as FieldChange } from "../client/loop/field-conflicts.ts";
import type { WriteOutcome } from "../client/loop/write-outcome.ts";
import type { Environment } from "../config/sources/setting-source.ts";
import { systemCode } from "../files/system-code.ts";
import type { Messages } from "../output/messages.ts";

export type Recorder = {
  /** Records what became of a write. @param change the fields that it set; undefined for a deletion. */
  record(id: string, change: FieldChange | undefined, outcome: WriteOutcome): void;
  close(): void;
};

const OFF: Recorder = { record: () => {}, close: () => {} };

/** Of writes that could not be recorded: more are only counted. */
const SHOWN_MAX = 5;

/** Opened before anything is sent. Throws a UsageError where the journal can't be written. */
export async function openRecorder(
  keepMs: number | undefined,
  { env, url, messages }: { env: Environment; url: string; messages: Pick<Messages, "warn"> },
): Promise<Recorder> {
  if (keepMs === undefined) return OFF;
  const { openUndoJournal, undoJournalPath } = await import("./undo-journal.ts");
  const path = undoJournalPath(env);
  const journal = openUndoJournal(path);
  let lost = 0;
  const warn = (line: string) => {
    lost += 1;
    if (lost <= SHOWN_MAX) messages.warn(`warning: ${line}`);
  };
  return {
    record(id, change, outcome) {
      if (outcome.kind === "as-wanted" && outcome.unknowns > 0) {
        warn(`customer ${id} can't be undone: whether this command's write made it so is not known`);
      }
      if (outcome.kind !== "written") return;
      const kind = change === undefined ? "deleted" : "updated";
      const { replaced, replacedTag, after } = outcome;
      const notUndoable = `customer ${id} was ${kind}, and can't be undone`;
      if (replaced === undefined) return warn(`${notUndoable}: the version that it replaced was not read`);
      if (kind === "updated" && after === undefined)
        return warn(`${notUndoable}: the server did not name the version that it made`);
      const before =
        change === undefined
          ? replaced.value
          : new Map([...change.keys()].map((field) => earlierValue(field, replaced.value)));
      try {
        journal.record({ url, id, kind, before, tagBefore: replacedTag, tagAfter: after }, keepMs);
      } catch (error) {
        const code = systemCode(error);
        warn(`${notUndoable}: ${path} can't be written (${code})`);
      }
    },
    close() {
      if (lost > SHOWN_MAX) messages.warn(`warning: ${lost} changes in all can't be undone`);
      journal.close();
    },
  };
}

/** Null removes a member (RFC 7396), so it stands for an absent one too. */
function earlierValue(field: string, value: ReadonlyMap<string, Json>): [string, Json] {
  const member = memberNamed(value, field);
  return [member?.name ?? field, member?.value ?? null];
}

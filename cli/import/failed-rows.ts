/**
 * The file of failed rows: the rows as they came, in the format and with the columns of the input, and a
 * `reason`. Once corrected, it can be imported as it is.
 */
import { writeSync } from "node:fs";
import { formatJson } from "../client/json.ts";
import { openDraft } from "../files/write-atomically.ts";
import { textCell } from "../output/csv-cell.ts";
import type { Format, Header, Row } from "./rows.ts";

const REASON = "reason";

/** @param path must not exist yet: corrected rows of an earlier run are never overwritten. */
export async function writeFailedRows(
  path: string,
  format: Format,
  header: Header,
  rows: AsyncIterable<{ row: Row; reason: string }>,
): Promise<void> {
  const { stringify } = await import("csv-stringify/sync");
  // It holds personal data, as the input does, so it is the operator's alone.
  const draft = openDraft(path, 0o600);
  const file = draft.fd;
  try {
    const columns = withoutReason(header, header);
    if (format === "csv") writeSync(file, stringify([[...columns, REASON]]));
    for await (const { row, reason } of rows) {
      const { source } = row;
      if (source.format === "csv") {
        writeSync(file, stringify([[...withoutReason(header, source.cells), textCell(reason)]]));
      } else {
        const members = [...source.object].filter(([name]) => name.toLowerCase() !== REASON);
        writeSync(file, `${formatJson(new Map([...members, [REASON, reason]]))}\n`);
      }
    }
    draft.commit({ onlyNew: true });
  } finally {
    draft.discard();
  }
}

/** The reason of an earlier attempt gives way to the new one. */
function withoutReason(header: Header, cells: readonly string[]): string[] {
  return cells.filter((_, at) => header[at]?.toLowerCase() !== REASON);
}

/**
 * The file of failed rows: the rows as they came, in the format and with the columns of the input, and a
 * `reason`. Once corrected, it can be imported as it is.
 */
import { existsSync, writeSync } from "node:fs";
import { formatJson } from "../client/json.ts";
import { systemCode } from "../files/system-code.ts";
import { openDraft } from "../files/write-atomically.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { csvLine, textCell } from "../output/csv-cell.ts";
import type { Format, Header, Row } from "./rows.ts";

const REASON = "reason";

/** Before anything is sent: rows that fail must find their place. */
export function checkFailedRowsFile(path: string): Failure | undefined {
  if (existsSync(path)) {
    return failure(
      "usage",
      `--failed: ${path} exists already; nothing was sent`,
      "Name a file that does not exist, so that nobody's corrections are overwritten.",
    );
  }
  try {
    openDraft(path, 0o600).discard();
    return undefined;
  } catch (error) {
    return failure(
      "usage",
      `rows that fail can't be written to ${path} (${systemCode(error)}); nothing was sent`,
      "Name a file in a directory that is there and writable: --failed PATH",
    );
  }
}

/** @param path must not exist yet: corrected rows of an earlier run are never overwritten. */
export async function writeFailedRows(
  path: string,
  format: Format,
  header: Header,
  rows: AsyncIterable<{ row: Row; reason: string }>,
): Promise<void> {
  // It holds personal data, as the input does, so it is the operator's alone.
  const draft = openDraft(path, 0o600);
  const file = draft.fd;
  try {
    const columns = withoutReason(header, header);
    if (format === "csv") writeSync(file, csvLine([...columns, REASON]));
    for await (const { row, reason } of rows) {
      const { source } = row;
      if (source.format === "csv") {
        writeSync(file, csvLine([...withoutReason(header, source.cells), textCell(reason)]));
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

/** Rows below their heading, in columns that are as wide as their widest cell. */
export function table(heading: readonly string[], body: readonly (readonly string[])[]): string {
  const rows = [heading, ...body];
  const widths = heading.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return rows.map(line).join("\n");
}

/** To the minute, in UTC, for people. */
export function shownTime(ms: number | null): string {
  return ms === null ? "-" : new Date(ms).toISOString().slice(0, 16).replace("T", " ");
}

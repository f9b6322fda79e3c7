/** Rows below their heading, in columns that are as wide as their widest cell. */
export function textTable(heading: readonly string[], cells: readonly (readonly string[])[]): string {
  const rows = [heading, ...cells];
  const widths = heading.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return rows.map(line).join("\n");
}

/** To the minute, UTC; "-" where there is none. */
export function shownTime(timeMs: number | null): string {
  return timeMs === null ? "-" : new Date(timeMs).toISOString().slice(0, 16).replace("T", " ");
}

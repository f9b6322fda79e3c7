/**
 * An array as PostgreSQL reads it from text (manual, section 8.15.2). A parameter of
 * another type than text would make a second prepared statement of the same text.
 */
export function arrayLiteral(values: readonly (string | null)[]): string {
  return `{${values.map(elementOf).join(",")}}`;
}

function elementOf(value: string | null): string {
  if (value === null) return "NULL";
  return `"${value.replace(/[\\"]/g, "\\$&")}"`;
}

/** The columns of rows that all have the same length, each as one parameter. */
export function columnsOf(rows: readonly (readonly (string | null)[])[]): string[] {
  const width = rows[0]?.length ?? 0;
  return Array.from({ length: width }, (_, column) => arrayLiteral(rows.map((row) => row[column] ?? null)));
}

/** @param text a column of bigint, which Bun gives as text @returns ms since 1970 */
export function timeOf(text: string | null): number | null {
  return text === null ? null : Number(text);
}

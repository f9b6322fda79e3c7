/** Numbers in sentences. */

/** "1 row", "12,345 rows". */
export function amount(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** 12345 as "12,345". */
export function count(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Which of `parts` a row falls into: by its own words, so that another row added beside it moves none. */
export function partOf(row: string, parts: number): number {
  return Bun.hash.crc32(row) % parts;
}

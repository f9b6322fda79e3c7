import { distance } from "fastest-levenshtein";

/** @returns the known word within two edits (and less than half its length) of a mistyped one, or null. */
export function nearest<Word extends string>(mistyped: string, known: readonly Word[]): Word | null {
  let best: Word | null = null;
  let bestDistance = 3;
  for (const word of known) {
    const edits = distance(mistyped.slice(0, 64).toLowerCase(), word.toLowerCase());
    if (edits < bestDistance && edits < Math.max(2, word.length / 2)) {
      best = word;
      bestDistance = edits;
    }
  }
  return best;
}

import { distance } from "fastest-levenshtein";

const MISTYPED_CHARACTERS_MAX = 64;

/**
 * @returns the known word that a mistyped one most likely meant: one edit away, or two in a word of five
 *   letters or more, or the same letters in another order; else null
 */
export function nearest<Word extends string>(mistyped: string, known: readonly Word[]): Word | null {
  const given = mistyped.slice(0, MISTYPED_CHARACTERS_MAX).toLowerCase();
  let best: Word | null = null;
  let bestEdits = 3;
  for (const word of known) {
    const meant = word.toLowerCase();
    const edits = distance(given, meant);
    const isNear = edits <= 1 || meant.length >= 5 || letters(given) === letters(meant);
    if (isNear && edits < bestEdits) {
      best = word;
      bestEdits = edits;
    }
  }
  return best;
}

function letters(word: string): string {
  return [...word].sort().join("");
}

import { distance } from "fastest-levenshtein";

/**
 * Did you mean: the nearest of the names, where a slip or two of the finger could explain the difference.
 */
export function nearestOf(name: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, edits: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits);
  const best = ranked[0];
  return best !== undefined && best.edits <= Math.min(3, Math.max(1, Math.floor(name.length / 2)))
    ? best.candidate
    : undefined;
}

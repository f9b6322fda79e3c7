/** Whether the requests of a race were under way at once, and what gap between check and write that could show. */

type Timed = {
  readonly outcome: "won" | "lost" | "unknown";
  /** Whether it was answered before it was complete: it then raced with nobody. */
  readonly early: boolean;
  readonly sentMs: number;
  readonly answeredMs: number;
};

export type Overlap = {
  /** Rounds in which two complete requests with a definite outcome were under way at once. */
  readonly overlapped: number;
  /** Median of the time within which the last bytes of a round left; null where no round had two such requests. */
  readonly gapMs: number | null;
  /** Requests of all rounds that were answered before they were complete. */
  readonly early: number;
};

export function overlapOf(rounds: readonly (readonly Timed[])[]): Overlap {
  const complete = rounds.map((each) => each.filter(({ outcome, early }) => outcome !== "unknown" && !early));
  const overlapped = complete.filter((each) =>
    each.some((a) => each.some((b) => a !== b && a.sentMs < b.answeredMs && b.sentMs < a.answeredMs)),
  ).length;
  const gaps = complete
    .filter(({ length }) => length > 1)
    .map((each) => each.map(({ sentMs }) => sentMs))
    .map((sent) => Math.max(...sent) - Math.min(...sent))
    .sort((a, b) => a - b);
  const early = rounds.flat().filter((each) => each.early).length;
  return { overlapped, gapMs: gaps[Math.floor(gaps.length / 2)] ?? null, early };
}

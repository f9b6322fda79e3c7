/** One row of the report. */
export type Measure = {
  readonly what: string;
  readonly against: string;
  /** What is to be reached, as text; "" where the figure is only reported. */
  readonly goal: string;
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly unit: string;
  readonly isReached: boolean | null;
  /** The absolute figures behind it. */
  readonly detail: string;
};

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** A measure from the ratios of paired rounds: ours by theirs, measured right after each other. */
export function ratio(
  what: string,
  against: string,
  goal: { readonly atLeast?: number; readonly atMost?: number } | null,
  ours: readonly number[],
  theirs: readonly number[],
  unit: string,
): Measure {
  const ratios = ours.map((value, round) => value / (theirs[round] ?? Number.NaN));
  return measure(
    what,
    against,
    goal,
    ratios,
    "×",
    `${shown(median(ours))} by ${shown(median(theirs))} ${unit}`,
  );
}

export function measure(
  what: string,
  against: string,
  goal: { readonly atLeast?: number; readonly atMost?: number } | null,
  values: readonly number[],
  unit: string,
  detail = "",
): Measure {
  const middle = median(values);
  const isReached =
    goal === null ? null : middle >= (goal.atLeast ?? -Infinity) && middle <= (goal.atMost ?? Infinity);
  const text = goal === null ? "" : goal.atLeast !== undefined ? `≥ ${goal.atLeast}` : `≤ ${goal.atMost}`;
  return {
    what,
    against,
    goal: text,
    median: middle,
    min: Math.min(...values),
    max: Math.max(...values),
    unit,
    isReached,
    detail,
  };
}

export function shown(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString("en-US");
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function markdown(measures: readonly Measure[], machine: string): string {
  const rows = measures.map(
    ({ what, against, goal, median: middle, min, max, unit, isReached, detail }) =>
      `| ${what} | ${against} | ${goal} | **${shown(middle)}** ${unit} | ${shown(min)} – ${shown(max)} | ${isReached === null ? "" : isReached ? "yes" : "no"} | ${detail} |`,
  );
  return [
    machine,
    "",
    "| measure | against | to reach | median | min – max | reached | absolute |",
    "|---|---|---|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

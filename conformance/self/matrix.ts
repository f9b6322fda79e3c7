/** Runs lines of the matrix, and says what all of them together prove. */
import { runFault, runTarget, runVariant, type Verdict } from "./case.ts";
import { FAULTS } from "./faults.ts";
import { TARGETS } from "./targets.ts";
import { VARIANTS } from "./variants.ts";

/** `only`: rules or families; all when absent. */
export type Line = { kind: Verdict["kind"]; id: string; only?: string[] };

export const LINES: Line[] = [
  ...TARGETS.map(({ id }): Line => ({ kind: "target", id })), // first: they wait more than they work
  ...FAULTS.map(({ id }): Line => ({ kind: "fault", id })),
  ...VARIANTS.map(({ id }): Line => ({ kind: "variant", id })),
];

function named<T extends { id: string }>(list: readonly T[], id: string): T {
  const found = list.find((each) => each.id === id);
  if (found === undefined) throw new Error(`no line of the matrix is called ${id}`);
  return found;
}

export async function runLine({ kind, id, only }: Line): Promise<Verdict> {
  if (kind === "fault") return await runFault(named(FAULTS, id), only);
  return kind === "variant"
    ? await runVariant(named(VARIANTS, id), only)
    : await runTarget(named(TARGETS, id), only);
}

/** Runs lines, at most `atOnce` together, in the order given; `done` hears of each as it ends. */
export async function runLines(
  lines: readonly Line[],
  atOnce: number,
  done: (verdict: Verdict) => void,
): Promise<void> {
  const queue = [...lines];
  const worker = async () => {
    for (let line = queue.shift(); line !== undefined; line = queue.shift()) done(await runLine(line));
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/**
 * Which rules run when. A deployment that answers at once is tested rule by rule. One that takes its time is
 * tested in several lanes, each on a customer of its own; races, counters and caches then still have the
 * deployment for themselves.
 */

import { CouldNotRun } from "../http/outcome-signal.ts";
import type { Kit } from "../probe/kit.ts";
import { together } from "../probe/races/together.ts";
import type { Rule } from "../probe/rule.ts";

/** Each rule stands behind those that it names in `after`; else the order is kept. */
export function inOrder(rules: readonly Rule[]): Rule[] {
  const placed = new Set<Rule>();
  const place = (rule: Rule): void => {
    if (placed.has(rule)) return;
    for (const id of rule.after) {
      const before = rules.find((each) => each.id === id);
      if (before !== undefined && before !== rule) place(before);
    }
    placed.add(rule);
  };
  for (const rule of rules) place(rule);
  return [...placed];
}

/** Families that want quiet; PRB-05 looks back at all. */
const ALONE = /^(ATM|MET|ENV|PRB)-/;

const SLOW_MS = 20;
const LANES_MAX = 8;

/** @param run tries one rule with the kit of its lane */
export async function runAll(
  kit: Kit,
  rules: readonly Rule[],
  run: (kit: Kit, rule: Rule) => Promise<void>,
): Promise<void> {
  const lanes = await openLanes(kit, rules.length);
  if (lanes.length === 1) {
    for (const rule of rules) await run(kit, rule);
    return;
  }
  // What these find decides what other rules still blame, so they come first.
  const named = new Set<string>(rules.flatMap(({ after }) => after));
  const isBase = ({ id }: Rule) => named.has(id) && !ALONE.test(id);
  for (const rule of rules.filter(isBase)) await run(kit, rule);
  const queue = rules.filter((rule) => !isBase(rule) && !ALONE.test(rule.id));
  const outcomes = await Promise.allSettled(
    lanes.map(async (lane) => {
      for (let rule = queue.shift(); rule !== undefined; rule = queue.shift()) {
        try {
          await run(lane, rule);
        } catch (error) {
          // What ends one lane ends the run.
          queue.length = 0;
          throw error;
        }
      }
    }),
  );
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  for (const rule of rules.filter(({ id }) => ALONE.test(id))) await run(kit, rule);
}

/** One lane where answers come fast, where a pace is set, or where no customers can be made. */
async function openLanes(kit: Kit, rules: number): Promise<Kit[]> {
  const { wire, ground, options, profile } = kit;
  const times = wire.ledger.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
  const typical = times[Math.floor(times.length / 2)] ?? 0;
  const paced = (options.rate ?? profile.rate) !== undefined;
  if (
    typical < SLOW_MS ||
    paced ||
    rules < 2 * LANES_MAX ||
    ground.cannotMake !== undefined ||
    options.mode === "read-only"
  )
    return [kit];
  const lanes = [kit];
  try {
    const customers = await together(Array.from({ length: LANES_MAX - 1 }, () => ground.make()));
    lanes.push(...customers.map((main) => ({ ...kit, main })));
  } catch (error) {
    if (!(error instanceof CouldNotRun)) throw error;
  }
  return lanes;
}

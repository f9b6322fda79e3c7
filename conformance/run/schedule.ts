/**
 * Which rules run when. A deployment that answers at once is tested rule by rule. One that takes its time is
 * tested in several lanes, each on a customer of its own; races, counters and caches then still have the
 * deployment for themselves.
 */

import { CouldNotRun } from "../probe/outcome-signal.ts";
import type { Rule } from "../probe/rule.ts";
import type { Kit } from "../probe/trial.ts";
import type { Customer } from "./ground.ts";

/** Their findings decide what other rules still blame, so they come first. */
const BASE = new Set([
  "ETG-01",
  "ETG-02",
  "ETG-03",
  "ETG-04",
  "IFM-01",
  "IFM-03",
  "IFM-04",
  "IFM-30",
  "IFM-31",
  "IFM-32",
  "IFM-40",
  "IFM-41",
  "IFM-42",
]);
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
  for (const rule of rules.filter(({ id }) => BASE.has(id))) await run(kit, rule);
  const queue = rules.filter(({ id }) => !BASE.has(id) && !ALONE.test(id));
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
  for (const rule of rules.filter(({ id }) => !BASE.has(id) && ALONE.test(id))) await run(kit, rule);
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
    const customers: Customer[] = await Promise.all(
      Array.from({ length: LANES_MAX - 1 }, () => ground.make()),
    );
    for (const main of customers) lanes.push({ ...kit, main });
  } catch (error) {
    if (!(error instanceof CouldNotRun)) throw error;
  }
  return lanes;
}

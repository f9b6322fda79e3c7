/** All rules, in the order in which they are run. */
import { atm } from "./atm.ts";
import { aut } from "./aut.ts";
import { env } from "./env.ts";
import { etg } from "./etg.ts";
import { fld } from "./fld.ts";
import { ifm } from "./ifm.ts";
import { met } from "./met.ts";
import { ord } from "./ord.ts";
import { prb } from "./prb.ts";
import type { RuleText } from "./rule.ts";

// PRB is last, since PRB-05 looks back at every reply of the run.
export const catalogue: readonly RuleText[] = [
  ...etg,
  ...ifm,
  ...ord,
  ...atm,
  ...fld,
  ...aut,
  ...met,
  ...env,
  ...prb,
];

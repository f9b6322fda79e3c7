/** All rules, in the order in which they are run. */

import type { RuleText } from "../probe/rule.ts";
import { aut } from "./callers.ts";
import { env } from "./environment.ts";
import { etg } from "./etag.ts";
import { fld } from "./fields.ts";
import { ifm } from "./if-match.ts";
import { met } from "./metrics.ts";
import { ord } from "./order.ts";
import { prb } from "./problems.ts";
import { atm } from "./races.ts";

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

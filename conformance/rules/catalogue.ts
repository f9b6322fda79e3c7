/** All rules, in the order in which they are run. */
import type { Rule } from "../probe/rule.ts";
import { aut } from "./callers.ts";
import { aut as autC } from "./checks/callers-checks.ts";
import { env as envC } from "./checks/environment-checks.ts";
import { etg as etgC } from "./checks/etag-checks.ts";
import { fld as fldC } from "./checks/fields-checks.ts";
import { met as metC } from "./checks/metrics-checks.ts";
import { prb as prbC } from "./checks/problems-checks.ts";
import { atm as atmC } from "./checks/races-checks.ts";
import { env } from "./environment.ts";
import { etg } from "./etag.ts";
import { fld } from "./fields.ts";
import { ifMatchRules } from "./if-match.ts";
import { legacy } from "./legacy.ts";
import { met } from "./metrics.ts";
import { order } from "./order.ts";
import { prb } from "./problems.ts";
import { atm } from "./races.ts";

// PRB is last, since PRB-05 looks back at every reply of the run.
export const catalogue: readonly Rule[] = [
  ...legacy(etg, etgC),
  ...ifMatchRules,
  ...order,
  ...legacy(atm, atmC),
  ...legacy(fld, fldC),
  ...legacy(aut, autC),
  ...legacy(met, metC),
  ...legacy(env, envC),
  ...legacy(prb, prbC),
];

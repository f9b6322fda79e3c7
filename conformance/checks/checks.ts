/** The check of every rule. */
import { atm } from "./atm.ts";
import { aut } from "./aut.ts";
import type { Check } from "./check.ts";
import { env } from "./env.ts";
import { etg } from "./etg.ts";
import { fld } from "./fld.ts";
import { ifm } from "./ifm.ts";
import { met } from "./met.ts";
import { ord } from "./ord.ts";
import { prb } from "./prb.ts";

export const checks: Readonly<Record<string, Check>> = {
  ...etg,
  ...ifm,
  ...ord,
  ...atm,
  ...fld,
  ...aut,
  ...met,
  ...env,
  ...prb,
};

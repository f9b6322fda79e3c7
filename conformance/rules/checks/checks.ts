/** The check of every rule. */

import type { Check } from "../../probe/check.ts";
import { aut } from "./callers-checks.ts";
import { env } from "./environment-checks.ts";
import { etg } from "./etag-checks.ts";
import { fld } from "./fields-checks.ts";
import { ifm } from "./if-match-checks.ts";
import { met } from "./metrics-checks.ts";
import { ord } from "./order-checks.ts";
import { prb } from "./problems-checks.ts";
import { atm } from "./races-checks.ts";

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

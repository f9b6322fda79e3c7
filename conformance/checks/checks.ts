/** The check of every rule. */

import type { Check } from "./check.ts";
import { etg } from "./etg.ts";
import { ifm } from "./ifm.ts";

export const checks: Readonly<Record<string, Check>> = { ...etg, ...ifm };

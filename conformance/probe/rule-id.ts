import type { Family } from "../report/schema.ts";

/** `IFM-07`. Permanent; a retired id is never given again. */
export type RuleId = `${Family}-${string}`;

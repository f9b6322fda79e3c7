import type { Family, Level, Need } from "../report/schema.ts";

/** The text of a rule: data alone. Its check stands in `checks/`, keyed by the id. */
export type RuleText = {
  /** Permanent; a retired id is never given again. */
  readonly id: `${Family}-${string}`;
  readonly title: string;
  readonly level: Level;
  /** Section and number in the specification. */
  readonly section: string;
  /** The rule in our own words. */
  readonly rule: string;
  /** Who is hurt, and how, when it is broken. */
  readonly impact: string;
  readonly needs: readonly Need[];
};

/** A rule of the kit: one object says what it is, whom it serves, what it needs and how it is checked. */
import type { Level, Need, RuleId } from "../report/schema.ts";
import type { SpecKey } from "../specification/spec.ts";
import type { Attempt } from "./attempt.ts";

export type Rule = {
  readonly id: RuleId;
  readonly title: string;
  readonly level: Level;
  /** The sentences of the specification that it stands on. */
  readonly spec: readonly SpecKey[];
  /** How the kit reads them where they leave room; empty where they speak for themselves. */
  readonly reading: string;
  /** Who is hurt, and how, when the rule is broken. */
  readonly hurts: string;
  readonly needs: readonly Need[];
  /** Rules that run before it, since what they find decides what this one may still blame. */
  readonly after: readonly RuleId[];
  check(t: Attempt): Promise<void>;
};

type Given = Pick<Rule, "spec" | "hurts" | "check"> &
  Partial<Pick<Rule, "level" | "reading" | "needs" | "after">>;

export function rule(id: RuleId, title: string, given: Given): Rule {
  return { id, title, level: "MUST", reading: "", needs: [], after: [], ...given };
}

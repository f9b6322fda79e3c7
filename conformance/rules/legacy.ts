import type { Attempt } from "../probe/attempt.ts";
import type { Rule } from "../probe/rule.ts";
import { rule } from "../probe/rule.ts";
import type { Level, Need } from "../report/schema.ts";
export type RuleText = {
  readonly id: Rule["id"];
  readonly title: string;
  readonly level: Level;
  readonly section: string;
  readonly rule: string;
  readonly impact: string;
  readonly needs: readonly Need[];
};
export function legacy(
  texts: readonly RuleText[],
  checks: Readonly<Record<string, (t: Attempt) => Promise<void>>>,
): Rule[] {
  return texts.map((t) =>
    rule(t.id, t.title, {
      level: t.level,
      spec: [],
      reading: t.rule,
      hurts: t.impact,
      needs: t.needs,
      check: checks[t.id] as Rule["check"],
    }),
  );
}

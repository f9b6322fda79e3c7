/** Causes before consequences: which broken rules others stand behind. */
import type { Pointer } from "../http/outcome-signal.ts";
import type { Rule } from "../probe/rule.ts";
import type { Report, RuleResult } from "./schema.ts";

type Found = {
  readonly rule: Pick<Rule, "id" | "after">;
  readonly outcome: RuleResult["outcome"];
  readonly pointer: Pointer;
};

/** Fewer others may have causes of their own. */
const OTHERS_MIN = 2;

/** What to look at first: rules that stand behind a broken one often fail for its sake. */
export function causesOf(findings: readonly Found[]): NonNullable<Report["causes"]> {
  const open = findings.filter(({ outcome }) => /violation|warning|could-not-run/.test(outcome));
  return findings
    .filter(({ outcome }) => outcome === "violation")
    .map(({ rule: { id } }) => ({
      rule: id,
      others: open
        .filter(({ rule, pointer }) => rule.after.includes(id) || pointer.see?.includes(id))
        .map(({ rule }) => rule.id),
    }))
    .filter(({ others }) => others.length >= OTHERS_MIN)
    .sort((a, b) => b.others.length - a.others.length);
}

/** Rules with the causes first; else in their order. */
export function causesFirst(
  { causes = [] }: Pick<Report, "causes">,
  rules: readonly RuleResult[],
): RuleResult[] {
  const place = ({ id }: RuleResult) => {
    const at = causes.findIndex(({ rule }) => rule === id);
    return at < 0 ? causes.length : at;
  };
  return [...rules].sort((a, b) => place(a) - place(b));
}

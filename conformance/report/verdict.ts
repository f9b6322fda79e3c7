/** From what a run found to its verdict and exit code. Pure. */
import type { Expectation } from "../target/options.ts";
import { amount } from "./amount.ts";
import type { Outcome, Report, RuleResult } from "./schema.ts";

export type RunEnd = {
  readonly causes?: Report["causes"];
  readonly rules: readonly Pick<RuleResult, "id" | "outcome" | "expected" | "reason">[];
  readonly expected: readonly Pick<Expectation, "rule">[];
  readonly allowIncomplete: boolean;
  /** Customers that could not be removed or put back. */
  readonly left: number;
  readonly interrupted: boolean;
  readonly kitFault: string | undefined;
  readonly unreachable: string | undefined;
};

type Judgement = Pick<Report, "verdict" | "exitCode" | "headline">;

/** Where several hold: 130, then 5, 1, 4, 6, 3. Warnings never change it; a run that tested nothing is never 0. */
export function judge(end: RunEnd): Judgement {
  const { rules, left } = end;
  const of = (outcome: Outcome) => rules.filter((rule) => rule.outcome === outcome);
  const unexpected = of("violation").filter(({ expected }) => expected === null);
  const fixed = end.expected.filter((entry) =>
    rules.some(({ id, outcome }) => id === entry.rule && (outcome === "pass" || outcome === "warning")),
  );
  // What could not be tested because an expected violation hides it is known as well as that one.
  const untested =
    of("could-not-run").filter(({ expected }) => expected === null).length + of("inconclusive").length;
  const tested = of("pass").length + of("violation").length + of("warning").length;
  const kitFault = end.kitFault ?? of("kit-error")[0]?.reason;

  if (end.interrupted) return judgement("interrupted", "Interrupted; what was made has been cleaned up.");
  if (kitFault !== undefined)
    return judgement("kit-fault", `The kit itself failed: ${kitFault.split("\n")[0]}`);
  if (unexpected.length > 0)
    return judgement(
      "violates",
      `Does not conform: ${list(unexpected.map(({ id }) => id))}.${startWith(end.causes)}`,
    );
  if (fixed.length > 0)
    return judgement(
      "violates",
      `These expected violations no longer fail. Remove them from the list: ${list(fixed.map(({ rule }) => rule))}.`,
    );
  if (end.unreachable !== undefined) {
    const how = tested === 0 ? "Nothing was tested" : "The run ended early";
    return judgement("unreachable", `${how}: ${end.unreachable.replace(/[.?]?$/, (mark) => mark || ".")}`);
  }
  if (left > 0)
    return judgement("fixtures-left", `${amount(left, "customer")} could not be removed or put back.`);
  if (tested === 0)
    return judgement("incomplete", `Nothing was tested: ${rules[0]?.reason ?? "no rule was selected"}.`);
  if (untested > 0 && !end.allowIncomplete)
    return judgement(
      "incomplete",
      `No violation, but ${amount(untested, "rule")} could not be tested to the end.`,
    );
  const open = untested > 0 ? `, ${untested} could not be tested` : "";
  const expected = of("violation").length;
  const known =
    expected > 0 ? ` ${amount(expected, "known violation")} ${expected === 1 ? "is" : "are"} expected.` : "";
  return judgement("conforms", `Conforms: ${amount(of("pass").length, "rule")} passed${open}.${known}`);
}

const EXIT_CODE_OF = {
  conforms: 0,
  violates: 1,
  incomplete: 3,
  unreachable: 4,
  "kit-fault": 5,
  "fixtures-left": 6,
  interrupted: 130,
} as const satisfies Record<Report["verdict"], number>;

function judgement(verdict: Report["verdict"], headline: string): Judgement {
  return { verdict, exitCode: EXIT_CODE_OF[verdict], headline };
}

function startWith(causes: RunEnd["causes"] = []): string {
  const [first] = causes;
  if (first === undefined) return "";
  return ` Start with ${first.rule}: ${amount(first.others.length, "other rule")} may fail for its sake.`;
}

const list = (ids: readonly string[]) => ids.join(", ");

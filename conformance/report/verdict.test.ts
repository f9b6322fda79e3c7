import { expect, test } from "bun:test";
import fc from "fast-check";
import { OUTCOMES, type Outcome } from "./schema.ts";
import { judge, type RunEnd } from "./verdict.ts";

const known = { reason: "r", owner: "o", until: "2999-01-01" };
const rule = (outcome: Outcome, id = "IFM-01", expected: typeof known | null = null) => ({
  id,
  outcome,
  expected,
  reason: "why",
});
const end = (change: Partial<RunEnd>): RunEnd => ({
  rules: [rule("pass")],
  expected: [],
  allowIncomplete: false,
  left: 0,
  interrupted: false,
  kitFault: undefined,
  unreachable: undefined,
  ...change,
});

test.each([
  ["all passed", {}, 0],
  ["a warning", { rules: [rule("pass"), rule("warning")] }, 0],
  ["a violation", { rules: [rule("pass"), rule("violation")] }, 1],
  [
    "a violation that is expected",
    { rules: [rule("pass"), rule("violation", "IFM-02", known)], expected: [{ rule: "IFM-02" }] },
    0,
  ],
  [
    "what an expected violation hides",
    {
      rules: [
        rule("pass", "IFM-01"),
        rule("violation", "IFM-02", known),
        rule("could-not-run", "IFM-05", known),
      ],
      expected: [{ rule: "IFM-02" }],
    },
    0,
  ],
  ["an expected violation that passes", { expected: [{ rule: "IFM-01" }] }, 1],
  [
    "an expected violation that could not be tried",
    {
      rules: [rule("pass", "IFM-02"), rule("could-not-run")],
      expected: [{ rule: "IFM-01" }],
      allowIncomplete: true,
    },
    0,
  ],
  ["something that could not run", { rules: [rule("pass"), rule("could-not-run")] }, 3],
  ["the same, allowed", { rules: [rule("pass"), rule("could-not-run")], allowIncomplete: true }, 0],
  ["a race that never overlapped", { rules: [rule("pass"), rule("inconclusive")] }, 3],
  ["nothing tested, although allowed", { rules: [rule("could-not-run")], allowIncomplete: true }, 3],
  ["nothing but what does not apply", { rules: [rule("not-applicable")], allowIncomplete: true }, 3],
  ["no rule selected", { rules: [], allowIncomplete: true }, 3],
  ["an unreachable target", { rules: [rule("could-not-run")], unreachable: "no answer" }, 4],
  ["customers left", { left: 1 }, 6],
  ["a kit error of one rule", { rules: [rule("kit-error"), rule("violation")] }, 5],
  ["an interruption", { interrupted: true }, 130],
] satisfies [string, Partial<RunEnd>, number][])("%s", (_, change, code) => {
  expect(judge(end(change)).exitCode).toBe(code);
});

test("law: where several hold it is 130, then 5, 1, 4, 6, 3", () => {
  const order = [130, 5, 1, 4, 6, 3];
  fc.assert(
    fc.property(fc.subarray(order, { minLength: 1 }), (codes) => {
      const has = (code: number) => codes.includes(code);
      const change: Partial<RunEnd> = {
        rules: [
          rule("pass"),
          ...(has(1) ? [rule("violation")] : []),
          ...(has(3) ? [rule("could-not-run")] : []),
        ],
        left: has(6) ? 2 : 0,
        interrupted: has(130),
        kitFault: has(5) ? "broken" : undefined,
        unreachable: has(4) ? "gone" : undefined,
      };
      expect(judge(end(change)).exitCode).toBe(order.find(has) ?? 0);
    }),
  );
});

test("law: 0 means that something passed, nothing failed unexpectedly, and nothing is left", () => {
  const rules = fc.array(
    fc.constantFrom(...OUTCOMES).map((outcome) => rule(outcome)),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(rules, fc.boolean(), fc.nat({ max: 1 }), (some, allowIncomplete, left) => {
      const { exitCode, verdict } = judge(end({ rules: some, allowIncomplete, left }));
      expect(exitCode === 0).toBe(verdict === "conforms");
      if (exitCode !== 0) return;
      expect(left).toBe(0);
      expect(some.some(({ outcome }) => outcome === "pass" || outcome === "warning")).toBe(true);
      expect(some.some(({ outcome }) => outcome === "violation" || outcome === "kit-error")).toBe(false);
      if (!allowIncomplete)
        expect(some.some(({ outcome }) => outcome === "could-not-run" || outcome === "inconclusive")).toBe(
          false,
        );
    }),
  );
});

import { expect, test } from "bun:test";
import type { Rule } from "../probe/rule.ts";
import { causesFirst, causesOf } from "./causes.ts";
import type { RuleResult } from "./schema.ts";

const found = (
  id: Rule["id"],
  outcome: RuleResult["outcome"],
  after: Rule["after"] = [],
  see: Rule["after"] = [],
) => ({
  rule: { id, after },
  outcome,
  pointer: { see },
});

test("a violation is a cause where two others or more stand behind it or point to it, the one with most first", () => {
  const causes = causesOf([
    found("ETG-01", "violation"),
    found("ETG-02", "violation", ["ETG-01"]),
    found("IFM-03", "violation", ["ETG-01"]),
    found("IFM-09", "violation", ["IFM-03"]),
    found("IFM-10", "warning", ["IFM-03"]),
    found("ATM-01", "could-not-run", [], ["IFM-03"]),
    found("IFM-11", "pass", ["IFM-03"]),
  ]);
  expect(causes).toEqual([
    { rule: "IFM-03", others: ["IFM-09", "IFM-10", "ATM-01"] },
    { rule: "ETG-01", others: ["ETG-02", "IFM-03"] },
  ]);
});

test("causes are listed first, the others in their order", () => {
  const rules = ["ETG-02", "IFM-09", "IFM-03"].map((id) => ({ id }) as RuleResult);
  const listed = causesFirst({ causes: [{ rule: "IFM-03", others: ["IFM-09", "IFM-10"] }] }, rules);
  expect(listed.map(({ id }) => id)).toEqual(["IFM-03", "ETG-02", "IFM-09"]);
});

import { expect, test } from "bun:test";
import { ProfileFault } from "../target/profile.ts";
import { readExpected } from "./expected.ts";

test.each(["", "# all that was known has been fixed\n", "violation = []\n"])(
  "a list without entries is valid: %j",
  (text) => {
    expect(readExpected(text)).toEqual([]);
  },
);

test.each([
  ["[[violation]]\n", "violation.0.rule"],
  ['[[violations]]\nrule = "IFM-01"\n', "violations"],
  ['[[violation]]\nrule = "IFM-99"\nreason = "r"\nowner = "o"\nuntil = 2999-12-31\n', "IFM-99"],
  ["violation", "expected"],
])("a wrong entry is refused, and the fault names it: %j", (text, says) => {
  const faults = (() => {
    try {
      readExpected(text);
      return [];
    } catch (error) {
      return error instanceof ProfileFault ? error.faults : [];
    }
  })();
  expect(faults.join("\n")).toContain(says);
});

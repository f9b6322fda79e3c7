import { expect, test } from "bun:test";
import { commandLine, commandLineFor, withoutCredentials } from "./command-line.ts";

const words = [
  "--base-url",
  "http://x/a b",
  "--header",
  "Authorization: Bearer main",
  "--limited-header=X-Api-Key: limited",
  "--other-tenant-header-env",
  "Authorization: Bearer $OTHER",
  "--only",
  "IFM",
  "--limited-denied",
  "email",
];

test("a credential is shown as a variable, however short it is, and flags stay as they are", () => {
  expect(commandLine("kit", withoutCredentials(words))).toBe(
    `kit run --base-url 'http://x/a b' --header "Authorization: $AUTHORIZATION" "--limited-header=X-Api-Key: $LIMITED_X_API_KEY" --other-tenant-header-env 'Authorization: Bearer $OTHER' --only IFM --limited-denied email`,
  );
});

test.each([
  [["--only", "IFM", "--skip=ATM", "--quick"], "--quick --only FLD-03 --out conformance-report/FLD-03"],
  [["--out", "a/", "--only=FLD-03"], "--only FLD-03 --out a/FLD-03"],
  [["--out=b c"], "--only FLD-03 --out 'b c/FLD-03'"],
])("the line for one rule selects it alone and spares the full report: %j", (given, line) => {
  expect(commandLineFor("kit", "FLD-03", given)).toBe(`kit run ${line}`);
});

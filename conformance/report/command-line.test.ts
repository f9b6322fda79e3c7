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
  expect(commandLine(withoutCredentials(words))).toBe(
    `conformance run --base-url 'http://x/a b' --header "Authorization: $AUTHORIZATION" "--limited-header=X-Api-Key: $LIMITED_X_API_KEY" --other-tenant-header-env 'Authorization: Bearer $OTHER' --only IFM --limited-denied email`,
  );
});

test("the line for one rule leaves out what was selected before", () => {
  expect(commandLineFor("FLD-03", ["--only", "IFM", "--skip=ATM", "--quick"])).toBe(
    "conformance run --quick --only FLD-03",
  );
});

import { expect, test } from "bun:test";
import { recordedFlags } from "./recorded-flags.ts";

const HEADERS = ["--header", "Authorization: $CUSTOMERS_TOKEN"];

test.each([
  ["of run", [...HEADERS, "--timeout", "500"]],
  ["of init, the address first", ["http://localhost:1", ...HEADERS, "--force", "--write", "new.toml"]],
  ["of init, the address last", [...HEADERS, "--write", "new.toml", "--force", "http://localhost:1"]],
])("a header is found again in the words %s", (_, words) => {
  expect(recordedFlags(words).headerEnv).toEqual(["Authorization: $CUSTOMERS_TOKEN"]);
});

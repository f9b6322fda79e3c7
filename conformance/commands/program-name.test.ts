import { expect, test } from "bun:test";
import { programName } from "./program-name.ts";

test.each([
  ["/r/conformance/main.ts", { npm_lifecycle_event: "conformance" }, "/r", "bun run conformance"],
  ["/r/conformance/main.ts", {}, "/r", "bun conformance/main.ts"],
  [
    "/project/conformance/main.ts",
    { npm_lifecycle_event: "test" },
    "/project/cli",
    "bun ../conformance/main.ts",
  ],
  ["/r/main.ts", {}, "/a/b", "bun /r/main.ts"],
  ["/my work/main.ts", {}, "/", "bun 'my work/main.ts'"],
  ["/p/node_modules/.bin/customers-conformance", {}, "/p", "customers-conformance"],
] as const)("started as %s with %j in %s it calls itself %s", (entry, env, cwd, name) => {
  expect(programName(["/usr/bin/bun", entry], env, cwd)).toBe(name);
});

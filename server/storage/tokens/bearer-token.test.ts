import { expect, test } from "bun:test";
import { drawToken, isToken } from "./bearer-token.ts";

test("a token is cst_ and 40 letters and digits, all of them used, none twice the same", () => {
  const drawn = Array.from({ length: 500 }, drawToken);
  for (const token of drawn) expect(isToken(token)).toBe(true);
  expect(drawn[0]).toMatch(/^cst_[A-Za-z0-9]{40}$/);
  expect(new Set(drawn).size).toBe(500);
  expect(new Set(drawn.join("").replaceAll("cst_", "")).size).toBe(62);
});

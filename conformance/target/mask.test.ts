import { expect, test } from "bun:test";
import fc from "fast-check";
import { masking } from "./mask.ts";

const secret = fc
  .string({ minLength: 6, maxLength: 30, unit: fc.constantFrom(...'abcXYZ019-_./+="\\& ') })
  .filter((text) => text.trim() === text && (text.length >= 8 || /[^A-Za-z]/.test(text)));

test("law: no text keeps a secret, plain, percent-encoded, in JSON or in base64", () => {
  fc.assert(
    fc.property(secret, fc.string(), fc.string(), (value, before, after) => {
      const mask = masking([{ value, shown: "$S" }]);
      const forms = [
        value,
        encodeURIComponent(value),
        JSON.stringify(value).slice(1, -1),
        Buffer.from(value, "latin1").toString("base64"),
      ];
      for (const form of forms)
        expect(mask(before + form + after)).not.toContain(form.length < 4 ? "\0never" : form);
    }),
  );
});

test("a whole header value goes before the token inside it", () => {
  const mask = masking([
    { value: "abcdefgh", shown: "$TOKEN" },
    { value: "Bearer abcdefgh", shown: "$AUTHORIZATION" },
  ]);
  expect(mask("Authorization: Bearer abcdefgh; abcdefgh")).toBe("Authorization: $AUTHORIZATION; $TOKEN");
});

test("too short a secret is left, since it would turn up by chance", () => {
  for (const value of ["ab", "main", "limited"])
    expect(masking([{ value, shown: "$S" }])(`--${value}-header`)).toBe(`--${value}-header`);
});

import { expect, test } from "bun:test";
import fc from "fast-check";
import { masking } from "./mask.ts";

const secret = fc
  .string({ minLength: 6, maxLength: 30, unit: fc.constantFrom(...'abcXYZ019-_./+="\\& ') })
  .filter((text) => text.trim() === text && (text.length >= 8 || /[^A-Za-z]/.test(text)));

test("law: no text keeps a secret, plain, percent-encoded, in JSON or in base64", () => {
  fc.assert(
    fc.property(secret, fc.string(), fc.string(), (value, before, after) => {
      const { mask } = masking([{ value, shown: "$S" }]);
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

test("law: a text that is cut off begins as the whole one does, so that no piece of a secret is left at its end", () => {
  const parts = fc.array(fc.oneof(fc.string(), fc.constant(null)), { maxLength: 30 });
  fc.assert(
    fc.property(secret, parts, fc.nat({ max: 60 }), (value, texts, charactersMax) => {
      const { mask, maskStart } = masking([{ value, shown: "$S" }]);
      const text = texts.map((part) => part ?? value).join("");
      const cut = maskStart(text, charactersMax);
      expect(mask(text)).toStartWith(cut);
      expect(cut.length).toBeLessThanOrEqual(charactersMax);
    }),
    { numRuns: 1000 },
  );
});

test("a whole header value goes before the token inside it", () => {
  const { mask } = masking([
    { value: "abcdefgh", shown: "$TOKEN" },
    { value: "Bearer abcdefgh", shown: "$AUTHORIZATION" },
  ]);
  expect(mask("Authorization: Bearer abcdefgh; abcdefgh")).toBe("Authorization: $AUTHORIZATION; $TOKEN");
});

test("too short a secret is left, since it would turn up by chance", () => {
  for (const value of ["ab", "main", "limited"])
    expect(masking([{ value, shown: "$S" }]).mask(`--${value}-header`)).toBe(`--${value}-header`);
});

const TOKEN = "s3cr3t/Value+of?a~Token>";

/** What a service may do to a header value before it shows it. */
const ENCODINGS: Record<string, (text: string) => string> = {
  base64: (text) => Buffer.from(text).toString("base64"),
  "base64 without padding": (text) => Buffer.from(text).toString("base64").replace(/=+$/, ""),
  "base64 for URLs": (text) => Buffer.from(text).toString("base64url"),
  "base64 in a query": (text) => encodeURIComponent(Buffer.from(text).toString("base64")),
  "percent, upper case": encodeURIComponent,
  "percent, lower case": (text) => encodeURIComponent(text).replace(/%[0-9A-F]{2}/g, (b) => b.toLowerCase()),
  "every byte percent": (text) => [...Buffer.from(text)].map((b) => `%${b.toString(16)}`).join(""),
  JSON: (text) => JSON.stringify(text),
  "JSON with escaped slashes": (text) => JSON.stringify(text).replaceAll("/", "\\/"),
  hex: (text) => Buffer.from(text).toString("hex"),
  HTML: (text) => text.replaceAll(">", "&gt;"),
};

test.each(
  Object.entries(ENCODINGS).flatMap(([name, encode]) =>
    ["", "x", "Bearer ", "Authorization: Bearer "].map((before) => [name, before, encode] as const),
  ),
)("%s of the token behind %j is masked whole", (_, before, encode) => {
  const masked = masking([{ value: TOKEN, shown: "$T" }]).mask(
    `echo ${encode(`${before}${TOKEN} tail`)} end`,
  );
  expect(masked).toContain("$T");
  expect(masked).toMatch(/^echo .* end$/s);
  // No encoding of any eight characters of it is left.
  for (let at = 0; at + 8 <= TOKEN.length; at += 1)
    for (const each of Object.values(ENCODINGS)) expect(masked).not.toContain(each(TOKEN.slice(at, at + 8)));
});

test.each(["Basic QWxhZGRpbjpvcGVuLXNlc2FtZS05", "QWxhZGRpbjpvcGVuLXNlc2FtZS05"])(
  "of %s the decoded user and password are masked, together and alone",
  (value) => {
    const { mask } = masking([{ value, shown: "$BASIC" }]);
    for (const text of ["Aladdin:open-sesame-9", "open-sesame-9", '{"password":"open-sesame-9"}'])
      expect(mask(text)).not.toContain("sesame");
    expect(mask("nothing of Aladdin's own")).toContain("of Aladdin's");
  },
);

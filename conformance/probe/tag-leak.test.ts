import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fc from "fast-check";
import { leaksOf } from "./tag-leak.ts";

const fields = {
  id: "0b0f4d0c-8d4c-4f0e-9a43-0d5f4b7a1c22",
  name: "Kit Abcdef B",
  email: "kit.abcdef.1@example.com",
};
const body = JSON.stringify(fields);
const hash = (algorithm: string, text: string) => createHash(algorithm).update(text).digest();

test.each([
  ["the email", fields.email, "data"],
  ["the email in base64", Buffer.from(fields.email).toString("base64"), "data"],
  ["the name in hexadecimal", Buffer.from(fields.name).toString("hex"), "data"],
  ["the email percent-encoded", `v1-${encodeURIComponent(fields.email)}`, "data"],
  ["the md5 of the body", hash("md5", body).toString("hex"), "hash"],
  ["the sha256 of the email in base64", hash("sha256", fields.email).toString("base64"), "hash"],
  [
    "the beginning of the sha1 of name and email",
    hash("sha1", `${fields.name}|${fields.email}`).toString("hex").slice(0, 20),
    "hash",
  ],
  ["the sha256 of the body in base64url", hash("sha256", body).toString("base64url"), "hash"],
] as const)("%s in the token is found", (_, token, kind) => {
  expect(leaksOf(token, fields, body).map((leak) => leak.kind)).toContain(kind);
});

test("law: a random token, a number or a UUID gives nothing away", () => {
  const random = fc
    .uint8Array({ minLength: 8, maxLength: 24 })
    .map((bytes) => Buffer.from(bytes).toString("base64url"));
  fc.assert(
    fc.property(fc.oneof(random, fc.nat().map(String), fc.uuid()), (token) => {
      expect(leaksOf(token, fields, body)).toEqual([]);
    }),
  );
});

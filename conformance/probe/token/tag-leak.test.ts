import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fc from "fast-check";
import { leaksOf, traceOf } from "./tag-leak.ts";

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

describe("a part of the tag that follows the values", () => {
  /** Versions in the turns one, other, other, one, other, one, twice. */
  const turns = (tag: (version: number, value: string) => string, first = 7) => {
    const once = ["one", "other", "other", "one", "other", "one"];
    const all = [...once, ...once].map((value, turn) => [value, tag(first + turn, value)] as const);
    const of = (wanted: string) => all.filter(([value]) => value === wanted).map(([, text]) => text);
    return traceOf(of("one"), of("other"));
  };

  test.each<[string, (version: number, value: string) => string, readonly [string, string]]>([
    [
      "before a version",
      (version, value) => `${value === "one" ? "a1b2" : "c3d4"}-${version}`,
      ["a1b2", "c3d4"],
    ],
    [
      "behind a version of growing length",
      (version, value) => `${version}-${value === "one" ? "xy" : "zw"}`,
      ["xy", "zw"],
    ],
    ["of one character", (version, value) => `${value === "one" ? "a" : "b"}${version}`, ["a", "b"]],
  ])("is found %s", (_, tag, trace) => {
    expect(turns(tag, 7)).toEqual(trace);
    expect(turns(tag, 97)).toEqual(trace);
  });

  test.each<[string, (version: number) => string]>([
    ["a counter", String],
    ["a counter in binary", (version) => version.toString(2).padStart(12, "0")],
    [
      "a counter in base64",
      (version) => Buffer.from(version.toString(16).padStart(16, "0"), "hex").toString("base64"),
    ],
  ])("is not seen in %s", (_, tag) => {
    for (let first = 0; first < 300; first += 1) expect(turns(tag, first)).toBeUndefined();
  });

  test("is not seen in a hash with the version", () => {
    const hash = (version: number) => Bun.hash(String(version)).toString(16);
    for (let first = 0; first < 300; first += 1) expect(turns(hash, first)).toBeUndefined();
  });
});

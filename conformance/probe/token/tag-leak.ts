/** Whether a token is made of customer data: the data itself in a usual encoding, or a raw hash of it. */
import { createHash, getHashes } from "node:crypto";
import type { Field } from "../../target/profile-file.ts";
import { WRITABLE } from "../snapshot.ts";

type Leak = { readonly kind: "data" | "hash"; readonly what: string };

/** A shorter match is chance. */
const CHARACTERS_MIN = 6;
const ALGORITHMS = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"].filter((name) =>
  getHashes().includes(name),
);

/**
 * @param text the opaque text of the tag
 * @param body the body of the read that carried it
 */
export function leaksOf(text: string, fields: Partial<Record<Field, unknown>>, body: string): Leak[] {
  const personal = WRITABLE.flatMap((field): { what: string; value: string }[] => {
    const value = fields[field];
    return typeof value === "string" && value.length >= CHARACTERS_MIN ? [{ what: field, value }] : [];
  });
  const domain = /@(.{6,})$/.exec(String(fields.email))?.[1];
  if (domain !== undefined) personal.push({ what: "domain of the email", value: domain });
  return [...dataLeaks(text, personal), ...hashLeaks(text, fields, body)];
}

/**
 * A part of the tags that is the same for the same values and another for others, however it is made of them. Versions,
 * times and chance have none where the two took turns without a rhythm, such as one, other, other, one, other, one.
 *
 * @param one opaque texts of the tags under the same values
 * @param other the same under other values
 * @returns the part under the one values and under the others, compared from the front or from the end of the tags
 */
export function traceOf(
  one: readonly string[],
  other: readonly string[],
): readonly [one: string, other: string] | undefined {
  const backwards = (text: string) => [...text].toReversed().join("");
  const front = longestTrace(one, other);
  const end = longestTrace(one.map(backwards), other.map(backwards));
  if (end === undefined || (front !== undefined && front[0].length >= end[0].length)) return front;
  return [backwards(end[0]), backwards(end[1])];
}

function longestTrace(one: readonly string[], other: readonly string[]): [string, string] | undefined {
  const [first = ""] = one;
  const [second = ""] = other;
  let longest: [string, string] | undefined;
  for (let from = 0, at = 0; at < Math.min(first.length, second.length); at += 1) {
    const follows =
      first[at] !== second[at] &&
      one.every((text) => text[at] === first[at]) &&
      other.every((text) => text[at] === second[at]);
    if (!follows) from = at + 1;
    else if (at + 1 - from > (longest?.[0].length ?? 0))
      longest = [first.slice(from, at + 1), second.slice(from, at + 1)];
  }
  return longest;
}

function rotated(letter: string): string {
  const from = letter <= "Z" ? 65 : 97;
  return String.fromCharCode(((letter.charCodeAt(0) - from + 13) % 26) + from);
}

function dataLeaks(text: string, personal: readonly { what: string; value: string }[]): Leak[] {
  const folded = text.toLowerCase();
  return personal.flatMap(({ what, value }) => {
    const bytes = Buffer.from(value, "utf8");
    const encodings: [string, string][] = [
      ["as it is", value],
      ["percent-encoded", encodeURIComponent(value)],
      ["in hexadecimal", bytes.toString("hex")],
      ["in ROT13", value.replace(/[a-z]/gi, rotated)],
    ];
    const found = encodings.find(([, form]) => folded.includes(form.toLowerCase()));
    if (found !== undefined)
      return [{ kind: "data" as const, what: `the token holds the ${what}, ${found[0]}` }];
    const decoded = Buffer.from(text, "base64").toString("utf8");
    return decoded.includes(value)
      ? [{ kind: "data" as const, what: `the token holds the ${what}, in base64` }]
      : [];
  });
}

/** Hashes of the body, of each field, and of the usual joins of several, whole or cut short. */
function hashLeaks(text: string, fields: Partial<Record<Field, unknown>>, body: string): Leak[] {
  const { id, name, email, status } = fields;
  const values = [id, name, email, status].filter((value) => typeof value === "string");
  const inputs = new Map<string, string>([["the body", body]]);
  if (typeof name === "string") inputs.set("the name", name);
  if (typeof email === "string") inputs.set("the email", email);
  try {
    const parsed: unknown = JSON.parse(body);
    inputs.set("the body, compact", JSON.stringify(parsed));
  } catch {
    // The body is no JSON; its bytes were looked at already.
  }
  inputs.set("name and email as JSON", JSON.stringify({ name, email }));
  inputs.set("Name and Email as JSON", JSON.stringify({ Name: name, Email: email }));
  for (const separator of ["", "|", ":", ",", "-", ";", "\n", "\0", " ", "/"])
    for (const [what, parts] of [
      ["name and email", [name, email]],
      ["all fields", values],
      ["id and email", [id, email]],
      ["email and id", [email, id]],
      ["id, name and email", [id, name, email]],
    ] as const)
      inputs.set(`${what} joined by ${JSON.stringify(separator)}`, parts.join(separator));
  const found: Leak[] = [];
  for (const [what, input] of inputs) {
    for (const algorithm of ALGORITHMS) {
      const digest = createHash(algorithm).update(input, "utf8").digest();
      if (carries(text, digest))
        found.push({ kind: "hash", what: `the token is the ${algorithm} of ${what}` });
    }
    const crc = Bun.hash.crc32(input).toString(16).padStart(8, "0");
    if (text.toLowerCase().includes(crc))
      found.push({ kind: "hash", what: `the token is the crc32 of ${what}` });
  }
  return found.slice(0, 1);
}

function carries(text: string, digest: Buffer): boolean {
  // A token may be the beginning of a digest; eight bytes are no chance.
  const hex = digest.toString("hex").slice(0, 16);
  if (text.toLowerCase().includes(hex)) return true;
  const whole = digest.toString("base64url");
  return text.replaceAll("+", "-").replaceAll("/", "_").includes(whole.slice(0, 11));
}

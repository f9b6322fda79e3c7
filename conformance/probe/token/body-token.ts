/** The version token as a member of a body, at any depth. */
import type { Seen } from "../../http/wire.ts";
import { plain } from "../../target/names.ts";
import type { Attempt } from "../attempt.ts";
import { opaque } from "../requests/tag-forms.ts";

const VERSION_NAME = /^(rowversion|etag|versiontoken)$/;

export function bodyWithoutToken(t: Attempt, what: string, seen: Seen): void {
  const text = opaque(seen.tag ?? "");
  for (const [path, value] of membersWithin(seen.object, [])) {
    const member = path.join(".");
    const proof = t.proof(`the member ${member} of ${what}`, "no row version in the body");
    proof.show(seen, { came: `${member}: ${JSON.stringify(value)?.slice(0, 80)}` });
    // `@odata.etag` and `$etag` are it too, under the name of a framework.
    const name =
      plain(path.at(-1) ?? "")
        .split(/[^a-z]/)
        .at(-1) ?? "";
    // Further within, an etag may be that of another resource; the token itself would show all the same.
    const named = (path.length === 1 || name !== "etag") && VERSION_NAME.test(name);
    const token = [text, seen.tag, `W/${seen.tag}`, ...versionsIn(text)].some(
      (form) => form === value || (typeof value === "number" && form === String(value)),
    );
    // Under another name a short value may be equal by chance.
    const carries = token && (text.length > 3 || named);
    proof.must("not-token", !carries, `the member ${member} of ${what} is the token ${seen.tag}`);
    proof.must("not-named", !named, `the body of ${what} has a member ${member}`, {
      level: carries ? "MUST" : "SHOULD",
    });
  }
}

/** The version itself, where the token is its bytes in base64 or hexadecimal. A short number may be equal by chance. */
function versionsIn(text: string): string[] {
  const bytes = [Buffer.from(text, "base64"), Buffer.from(text, "hex")].find(
    (each, index) => each.length >= 2 && each.toString(index === 0 ? "base64" : "hex") === text,
  );
  if (bytes === undefined || bytes.length > 8) return [];
  const hex = bytes.toString("hex");
  const ends = [hex, Buffer.from(bytes).reverse().toString("hex")].map((digits) =>
    BigInt(`0x${digits}`).toString(),
  );
  return [hex, `0x${hex}`, hex.toUpperCase(), `0x${hex.toUpperCase()}`, ...ends].filter(
    ({ length }) => length > 3,
  );
}

const DEPTH_MAX = 5;

/** Every member of a body, those of objects within it as well, with the names on the way to it. */
function membersWithin(value: unknown, way: readonly string[]): [readonly string[], unknown][] {
  if (typeof value !== "object" || value === null || way.length >= DEPTH_MAX) return [];
  return Object.entries(value).flatMap(([name, inner]): [readonly string[], unknown][] => {
    const path = [...way, name];
    return [[path, inner], ...membersWithin(inner, path)];
  });
}

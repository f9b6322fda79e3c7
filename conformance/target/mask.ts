/**
 * Keeps secrets out of everything that the kit writes. What is captured is masked when it is captured, so no
 * later step can forget it.
 */
export type Secret = { readonly value: string; readonly shown: string };

/**
 * Short texts, and short plain words, turn up by chance: masking them everywhere would make reports unreadable and
 * their commands wrong. As a header that is sent they are shown as `$NAME` all the same.
 */
const SECRET_CHARACTERS_MIN = 5;
const WORD_CHARACTERS_MIN = 8;

function isDistinct(value: string): boolean {
  return value.length >= (/^[A-Za-z]+$/.test(value) ? WORD_CHARACTERS_MIN : SECRET_CHARACTERS_MIN);
}

/** @returns a function that puts `shown` in the place of every secret, also percent-encoded or in base64. */
export function masking(secrets: readonly Secret[]): (text: string) => string {
  const pairs = new Map<string, string>();
  for (const { value, shown } of secrets) {
    if (!isDistinct(value)) continue;
    for (const form of [
      value,
      encodeURIComponent(value),
      JSON.stringify(value).slice(1, -1),
      btoaLatin1(value),
    ]) {
      if (!pairs.has(form)) pairs.set(form, shown);
    }
  }
  // Longest first: a whole header value goes before the token inside it.
  const ordered = [...pairs].sort(([a], [b]) => b.length - a.length);
  return (text) => ordered.reduce((masked, [value, shown]) => masked.replaceAll(value, shown), text);
}

function btoaLatin1(value: string): string {
  return Buffer.from(value, "latin1").toString("base64");
}

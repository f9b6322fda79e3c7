/** Forms of an entity-tag that look like it and are not equal to it. All are derived from a real current tag. */

/** The opaque text between the quotes; the whole where there are none. */
export function opaque(tag: string): string {
  return /^(?:W\/)?"(.*)"$/s.exec(tag)?.[1] ?? tag;
}

export const quoted = (text: string): string => `"${text}"`;

/** A tag in another form, and in words what was done to it. */
export type Form = { readonly what: string; readonly value: string };

/** @param rows how the current tag is altered, and the value; those that leave it as it is are left out */
function altered(tag: string, rows: readonly (readonly [how: string, value: string])[]): Form[] {
  return rows.flatMap(([how, value]) => (value === tag ? [] : [{ what: `the current tag ${how}`, value }]));
}

/** One letter in the other case, then all; empty where the tag has no letters. */
export function caseFlips(tag: string): Form[] {
  const text = opaque(tag);
  const letters = [...text.matchAll(/[A-Za-z]/g)].map(({ index }) => index);
  const flip = (at: number) => {
    const letter = text.charAt(at);
    const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
    return quoted(text.slice(0, at) + other + text.slice(at + 1));
  };
  const [first] = letters;
  const last = letters.at(-1);
  if (first === undefined || last === undefined) return [];
  const folded = [text.toLowerCase(), text.toUpperCase()].find((other) => other !== text) ?? text;
  return altered(tag, [
    ["with its first letter in the other case", flip(first)],
    ["with its last letter in the other case", flip(last)],
    ["in one letter case", quoted(folded)],
  ]);
}

/** Something added before, behind, inside the quotes or after them, or cut off. */
export function affixes(tag: string): Form[] {
  const text = opaque(tag);
  return altered(tag, [
    ["with the suffix -gzip before its closing quote", quoted(`${text}-gzip`)],
    ["one character longer (x appended before the closing quote)", quoted(`${text}x`)],
    ["shorter by its last character", quoted(text.slice(0, -1))],
    ["with x before its first character", quoted(`x${text}`)],
    ["without its first character", quoted(text.slice(1))],
    ["with trailing text after its closing quote", `${tag}x`],
    ["with a parameter after its closing quote", `${tag};q=1`],
    ["with a semicolon after its closing quote", `${tag};`],
    ["with a semicolon before its opening quote", `;${tag}`],
    ["in angle brackets", `<${tag}>`],
    ["with a blank after its opening quote", quoted(` ${text}`)],
    ["with a blank before its closing quote", quoted(`${text} `)],
    ["with the suffix ;gzip before its closing quote", quoted(`${text};gzip`)],
    ["with a comment after its closing quote", `${tag} (kit)`],
    ["with Not before it", `Not ${tag}`],
    ["with 80 characters more before its closing quote", quoted(`${text}${"x".repeat(80)}`)],
    ["with 80 characters more after its closing quote", `${tag}${"x".repeat(80)}`],
    ["with etag= before it", `etag=${tag}`],
    ["with version= before it", `version=${tag}`],
  ]);
}

/** The same bytes or the same number in another spelling. */
export function spellings(tag: string): Form[] {
  const text = opaque(tag);
  const forms: [string, string][] = [];
  const digits = /^(\D*?)(\d+)$/.exec(text);
  if (digits !== null) forms.push(["with a leading zero", `${digits[1]}0${digits[2]}`]);
  if (/^\d+$/.test(text))
    forms.push(
      ["with a plus sign", `+${text}`],
      ["as a decimal fraction", `${text}.0`],
      ["in hexadecimal", `0x${BigInt(text).toString(16)}`],
    );
  if (/^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/.test(text))
    forms.push(["without its dashes", text.replaceAll("-", "")], ["in braces", `{${text}}`]);
  if (/^[A-Za-z0-9+/_-]+={0,2}$/.test(text) && text.length >= 4) forms.push(...base64Forms(text));
  const first = text.charCodeAt(0);
  if (first < 0x80)
    forms.push(["percent-encoded", `%${first.toString(16).padStart(2, "0").toUpperCase()}${text.slice(1)}`]);
  return altered(
    tag,
    forms.map(([how, text]) => [how, quoted(text)]),
  );
}

function base64Forms(text: string): [string, string][] {
  const forms: [string, string][] = [];
  const body = text.replace(/=+$/, "");
  if (body !== text) forms.push(["without its base64 padding", body]);
  else if (text.length % 4 !== 0)
    forms.push(["with base64 padding", text + "=".repeat(4 - (text.length % 4))]);
  // The unused low bits of the last character: other text, the same bytes.
  const alphabet = `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789${/[-_]/.test(text) ? "-_" : "+/"}`;
  const other = alphabet[alphabet.indexOf(body.at(-1) ?? "") ^ 1];
  if (body.length % 4 >= 2 && other !== undefined)
    forms.push(["in other base64 of the same bytes", body.slice(0, -1) + other + text.slice(body.length)]);
  if (/[+/]/.test(text)) forms.push(["in URL-safe base64", text.replaceAll("+", "-").replaceAll("/", "_")]);
  if (/[-_]/.test(text)) forms.push(["in plain base64", text.replaceAll("-", "+").replaceAll("_", "/")]);
  return forms;
}

/** Characters that Unicode's compatibility forms take for an ASCII one each, a byte of Latin-1 each. */
const COMPATIBLE: Readonly<Record<string, string>> = {
  1: "\u00b9",
  2: "\u00b2",
  3: "\u00b3",
  a: "\u00aa",
  o: "\u00ba",
};

/** Other bytes that a normalization or a collation takes for the same text, whether it reads Latin-1 or UTF-8. */
export function foldings(tag: string): Form[] {
  const text = opaque(tag);
  const ascii = text.search(/[\x21-\x7e]/);
  const wide = Buffer.from(String.fromCharCode(text.charCodeAt(ascii) + 0xfee0), "utf8").toString("latin1");
  return altered(tag, [
    ["with a soft hyphen in it", quoted(`${text.slice(0, 1)}\u00ad${text.slice(1)}`)],
    [
      "with a character of full width",
      ascii < 0 ? tag : quoted(text.slice(0, ascii) + wide + text.slice(ascii + 1)),
    ],
    // Not every tag has such a character, so these two come last: a run that tries some forms alone tries the same each time.
    [
      "with a superscript in place of a character",
      quoted(text.replace(/[123ao]/, (character) => COMPATIBLE[character] ?? character)),
    ],
    ["with an accent on a letter", quoted(text.replace(/[aeiou]/i, (vowel) => `${vowel}\u0301`.normalize()))],
  ]);
}

/** Tokens beyond the current one: the next number, hexadecimal, base64 of a number, or the next in the alphabet. */
export function successors(tag: string): Form[] {
  const text = opaque(tag);
  const forms: string[] = [];
  const digits = /^(.*?)(\d+)$/s.exec(text);
  if (digits?.[2] !== undefined) {
    for (const step of [1n, 1000n]) {
      const next = (BigInt(digits[2]) + step).toString().padStart(digits[2].length, "0");
      forms.push(`${digits[1]}${next}`);
    }
  }
  if (/^[0-9a-f]{2,}$/i.test(text)) {
    const next = (BigInt(`0x${text}`) + 1n).toString(16).padStart(text.length, "0");
    forms.push(/[A-F]/.test(text) ? next.toUpperCase() : next);
  }
  if (/^[A-Za-z0-9+/]{4,}={0,2}$/.test(text)) forms.push(...nextBytes(text));
  // Of any other token the neighbour in the order of characters; never a quote.
  const last = text.charCodeAt(text.length - 1);
  if (forms.length === 0 && text !== "")
    forms.push(
      text.slice(0, -1) + String.fromCharCode(last === 0x21 ? 0x23 : last >= 0x7e ? 0x7d : last + 1),
    );
  const what = "a tag beyond the current one, not yet given";
  return [...new Set(forms.map(quoted))].flatMap((value) => (value === tag ? [] : [{ what, value }]));
}

function nextBytes(text: string): string[] {
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") !== text) return [];
  const bumped = (order: readonly number[]) => {
    const copy = Buffer.from(bytes);
    for (const at of order) {
      const value = ((copy[at] ?? 0) + 1) & 0xff;
      copy[at] = value;
      if (value !== 0) break;
    }
    return copy.toString("base64");
  };
  const places = [...bytes.keys()];
  return [bumped([...places].reverse()), bumped(places)];
}

/** RFC 9110 8.8.3: `[ W/ ] DQUOTE *( %x21 / %x23-7E / obs-text ) DQUOTE`. */
export function isEntityTag(value: string): boolean {
  return /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/.test(value);
}

/** Blanks and invisible characters made visible, in the notation of the reports. */
export function visible(text: string): string {
  return [...text]
    .map((character) => {
      if (character === " ") return "·";
      if (character === "\t") return "⟨tab⟩";
      const code = character.charCodeAt(0);
      const isVisible = code >= 0x20 && code < 0x7f;
      return isVisible ? character : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
    })
    .join("");
}

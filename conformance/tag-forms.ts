/** Forms of an entity-tag that look like it and are not equal to it. All are derived from a real current tag. */

/** The opaque text between the quotes; the whole where there are none. */
export function opaque(tag: string): string {
  return /^(?:W\/)?"(.*)"$/s.exec(tag)?.[1] ?? tag;
}

export const quoted = (text: string): string => `"${text}"`;

/** One letter in the other case, first and last letter in turn; empty where the tag has no letters. */
export function caseFlips(tag: string): string[] {
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
  const everything = [text.toLowerCase(), text.toUpperCase()].find((folded) => folded !== text);
  return different(tag, [flip(first), flip(last), ...(everything === undefined ? [] : [quoted(everything)])]);
}

/** Something added before, behind, inside the quotes or after them, or cut off. */
export function affixes(tag: string): string[] {
  const text = opaque(tag);
  return different(tag, [
    quoted(`${text}-gzip`),
    quoted(`${text}x`),
    quoted(`x${text}`),
    quoted(text.slice(0, -1)),
    quoted(text.slice(1)),
    `${tag}x`,
    `${tag};q=1`,
  ]);
}

/** The same bytes or the same number in another spelling. */
export function spellings(tag: string): string[] {
  const text = opaque(tag);
  const forms: string[] = [];
  const digits = /^(\D*?)(\d+)$/.exec(text);
  if (digits !== null) forms.push(`${digits[1]}0${digits[2]}`);
  if (/^\d+$/.test(text)) forms.push(`+${text}`, `${text}.0`, ` ${text}`, `0x${BigInt(text).toString(16)}`);
  if (/^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/.test(text))
    forms.push(text.replaceAll("-", ""), `{${text}}`);
  if (/^[A-Za-z0-9+/_-]+={0,2}$/.test(text) && text.length >= 4) forms.push(...base64Forms(text));
  if (text.length > 0)
    forms.push(`%${text.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}${text.slice(1)}`);
  return different(tag, [...new Set(forms)].map(quoted));
}

function base64Forms(text: string): string[] {
  const forms: string[] = [];
  const body = text.replace(/=+$/, "");
  if (body !== text) forms.push(body);
  else if (text.length % 4 !== 0) forms.push(text + "=".repeat(4 - (text.length % 4)));
  // The unused low bits of the last character: other text, the same bytes.
  const alphabet = /[-_]/.test(text)
    ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const index = alphabet.indexOf(body.at(-1) ?? "");
  if (body.length % 4 === 2 || body.length % 4 === 3) {
    const other = alphabet[index ^ 1];
    if (other !== undefined) forms.push(body.slice(0, -1) + other + text.slice(body.length));
  }
  if (/[+/]/.test(text)) forms.push(text.replaceAll("+", "-").replaceAll("/", "_"));
  if (/[-_]/.test(text)) forms.push(text.replaceAll("-", "+").replaceAll("_", "/"));
  return forms;
}

/** Tokens beyond the current one, where it ends in a number, is hexadecimal, or is base64 of a number. */
export function successors(tag: string): string[] {
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
  return different(tag, [...new Set(forms)].map(quoted));
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

function different(tag: string, forms: readonly string[]): string[] {
  return forms.filter((form) => form !== tag);
}

/** RFC 9110 8.8.3: `[ W/ ] DQUOTE *( %x21 / %x23-7E / obs-text ) DQUOTE`. */
export function isEntityTag(value: string): boolean {
  return /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/.test(value);
}

/** Blanks and invisible characters made visible. */
export function visible(text: string): string {
  return [...text]
    .map((character) => {
      if (character === " ") return "␠";
      if (character === "\t") return "⇥";
      const code = character.charCodeAt(0);
      return code < 0x20 || code >= 0x7f ? `\\x${code.toString(16).padStart(2, "0")}` : character;
    })
    .join("");
}

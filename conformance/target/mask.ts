/**
 * Keeps secrets out of everything that the kit writes. What is captured is masked when it is captured, so no
 * later step can forget it. A service may echo a credential in any encoding, alone or inside a longer text.
 */
export type Secret = { readonly value: string; readonly shown: string };

/**
 * Short texts, and short plain words, turn up by chance: masking them everywhere would make reports unreadable and
 * their commands wrong. As a header that is sent they are shown as `$NAME` all the same.
 */
const SECRET_CHARACTERS_MIN = 5;
const WORD_CHARACTERS_MIN = 8;
/** A shorter piece of base64 turns up by chance. */
const BASE64_CHARACTERS_MIN = 6;

function isDistinct(value: string): boolean {
  return value.length >= (/^[A-Za-z]+$/.test(value) ? WORD_CHARACTERS_MIN : SECRET_CHARACTERS_MIN);
}

const KNOWN_CHARACTERS_MAX = 80;
const KNOWN_MAX = 1000;

type Form = { readonly text: string; readonly shown: string; readonly inBase64: boolean };

/** Both put `shown` in the place of every secret, in whatever encoding it stands. */
export type Masking = {
  readonly mask: (text: string) => string;
  /** The beginning of what `mask` returns, at most so many characters. The rest of a long text costs no time. */
  readonly maskStart: (text: string, charactersMax: number) => string;
};

export function masking(secrets: readonly Secret[]): Masking {
  const forms = new Map<string, Form>();
  for (const { value, shown } of secrets.flatMap(withBasicPair)) {
    if (!isDistinct(value)) continue;
    const keep = (text: string, inBase64: boolean) => {
      if (!forms.has(text)) forms.set(text, { text, shown, inBase64 });
    };
    for (const text of textForms(value)) keep(text, false);
    for (const text of base64Forms(value)) keep(text, true);
  }
  // Longest first: a whole header value goes before the token inside it.
  const ordered = [...forms.values()].sort((a, b) => b.text.length - a.text.length);
  const longest = ordered[0]?.text.length ?? 0;
  // Most texts hold no secret. To know that, it is enough to look for the forms that contain no other form: half of them.
  const innermost = ordered.flatMap(({ text }) =>
    ordered.some((form) => form.text !== text && text.includes(form.text)) ? [] : [text],
  );
  const maskEach = (text: string) =>
    innermost.some((form) => text.includes(form)) ? ordered.reduce(maskForm, text) : text;
  // Most header lines come again and again: without this a twelfth of a run's processor time went into them.
  const known = new Map<string, string>();
  const mask = (text: string) => {
    if (text.length > KNOWN_CHARACTERS_MAX) return maskEach(text);
    let shown = known.get(text);
    if (shown === undefined) {
      shown = maskEach(text);
      if (known.size >= KNOWN_MAX) known.clear();
      known.set(text, shown);
    }
    return shown;
  };
  const maskStart = (text: string, charactersMax: number) => {
    if (text.length <= charactersMax + longest) return mask(text).slice(0, charactersMax);
    const start = maskEach(text.slice(0, charactersMax + longest));
    // Its last characters may be the first of a secret.
    return start.slice(0, Math.max(0, Math.min(charactersMax, start.length - longest)));
  };
  return { mask, maskStart };
}

function maskForm(text: string, { text: form, shown, inBase64 }: Form): string {
  if (!inBase64) return text.replaceAll(form, shown);
  let masked = "";
  let from = 0;
  for (let at = text.indexOf(form); at !== -1; at = text.indexOf(form, from)) {
    // What surrounds the piece belongs to the same encoded text, and holds the edges of the secret.
    let start = at;
    let end = at + form.length;
    while (start > from && isBase64(text[start - 1])) start -= 1;
    while (end < text.length && isBase64(text[end])) end += 1;
    masked += text.slice(from, start) + shown;
    from = end;
  }
  return masked + text.slice(from);
}

const isBase64 = (character: string | undefined): boolean => /[A-Za-z0-9+/=_-]/.test(character ?? " ");

function textForms(value: string): string[] {
  const bytes = Buffer.from(value, "utf8");
  const percent = encodeURIComponent(value);
  const everyByte = [...bytes].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
  const json = JSON.stringify(value).slice(1, -1);
  const markup = value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  const named = value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return [
    value,
    percent,
    lowerHex(percent),
    percent.replaceAll("%20", "+"),
    everyByte,
    everyByte.toUpperCase(),
    json,
    json.replaceAll("/", "\\/"),
    // JSON encoders for HTML write these as escapes.
    json.replace(/[<>&'+=]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`),
    markup,
    named,
    named.replaceAll('"', "&quot;"),
    bytes.toString("hex"),
    bytes.toString("hex").toUpperCase(),
  ];
}

function lowerHex(percent: string): string {
  return percent.replace(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase());
}

/** What base64 makes of the bytes wherever they stand in a longer text: its groups of three begin at three places. */
function base64Forms(value: string): string[] {
  const pieces = (["latin1", "utf8"] as const).flatMap((encoding) =>
    [0, 1, 2].map((offset) => {
      const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(value, encoding)]);
      // Characters that neighbouring bytes have a part in are left out at both ends.
      const first = Math.ceil((offset * 8) / 6);
      const last = Math.floor((bytes.length * 8) / 6);
      return bytes.toString("base64").slice(first, last);
    }),
  );
  return pieces
    .filter((piece) => piece.length >= BASE64_CHARACTERS_MIN)
    .flatMap((piece) => {
      const urlSafe = piece.replaceAll("+", "-").replaceAll("/", "_");
      const percent = encodeURIComponent(piece);
      return [piece, urlSafe, percent, lowerHex(percent), piece.replaceAll("/", "\\/")];
    });
}

/** `Basic` credentials are base64 of user and password, which a service may show in clear. */
function withBasicPair(secret: Secret): Secret[] {
  const encoded = /^(?:Basic +)?([A-Za-z0-9+/=_-]{4,})$/i.exec(secret.value)?.[1];
  if (encoded === undefined) return [secret];
  const pair = Buffer.from(encoded, "base64").toString("utf8");
  const [, user = "", password = ""] = /^([\x20-\x7e]+?):([\x20-\x7e]+)$/.exec(pair) ?? [];
  if (password === "") return [secret];
  return [secret, ...[pair, password, user].map((value) => ({ value, shown: secret.shown }))];
}

const TOKEN = /^cst_[A-Za-z0-9]{40}$/;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const RANDOM_CHARACTERS = 40;
/** Lists show this much of a token: enough to tell tokens apart, far too little to guess one. */
const PREFIX_CHARACTERS = 12;
const TOKEN_ID_CHARACTERS = 32;

/** A new token: `cst_` and 40 characters drawn at random (238 bits). */
export function drawToken(): string {
  return `cst_${randomText(RANDOM_CHARACTERS)}`;
}

export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** SHA-256, hexadecimal: all that a store keeps of a token. */
export function tokenDigest(token: string): string {
  return Bun.SHA256.hash(token, "hex");
}

/** What names a token where nobody may guess it: 128 of the 256 bits of its digest. */
export function tokenIdOf(digest: string): string {
  return digest.slice(0, TOKEN_ID_CHARACTERS);
}

export function tokenPrefix(token: string): string {
  return token.slice(0, PREFIX_CHARACTERS);
}

/** Characters drawn evenly: a byte past the last whole multiple of the alphabet is drawn again. */
function randomText(length: number): string {
  const limit = 256 - (256 % ALPHABET.length);
  let text = "";
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      if (byte < limit && text.length < length) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
}

/**
 * Text from elsewhere must not steer the terminal: control characters (C0 but line feed and tab, DEL, C1)
 * and the ones that reorder text (bidirectional overrides) are shown as `\u{1b}`.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function visibleControls(text: string): string {
  return text.replace(STEERING, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`);
}

/**
 * The same for a text that is JSON, which it stays: \u009b, with the value that it had. (JSON.stringify leaves C1 and
 * the bidirectional overrides as they are.)
 */
export function escapedInJson(json: string): string {
  return json.replace(STEERING, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

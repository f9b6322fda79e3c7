/**
 * Text from a stranger's service, made safe and readable: what has no shape on a page gets one. XML 1.0
 * cannot hold control characters at all, and an HTML page would swallow them without a trace.
 */
const SHAPELESS = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u00a0\ufffe\uffff]/gu;

/** Shows control, format and no-break characters by name; a line feed stays one. */
export function visible(text: string): string {
  return text.replace(SHAPELESS, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (character === "\n") return character;
    if (character === "\t") return "\u27e8tab\u27e9"; // control pictures (U+2400 …) would be right, but few fonts have them
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

/** A header value with the blanks at its ends shown: they are what a probe is often about. */
export function visibleValue(value: string): string {
  return visible(value.replace(/^ +| +$/g, (blanks) => "\u00b7".repeat(blanks.length)));
}

/** For text and double-quoted attributes of HTML and XML. */
export function escapeMarkup(text: string): string {
  return visible(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

/** Text that is markup already: what stands between backticks becomes code. */
export function inlineCode(markup: string): string {
  return markup.replace(/`([^`\n]+)`/g, "<code>$1</code>");
}

/** Columns on a terminal: wide characters take two, combining ones none. */
const SEGMENTER = new Intl.Segmenter(undefined, { granularity: "grapheme" });

export function displayWidth(text: string): number {
  return Bun.stringWidth(text);
}

/** The longest beginning of at most `columns`, ending in an ellipsis where something was cut; graphemes stay whole. */
export function truncate(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let kept = "";
  for (const { segment } of SEGMENTER.segment(text)) {
    if (displayWidth(kept + segment) > columns - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

export function padEnd(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - displayWidth(text)));
}

import { expect, test } from "bun:test";
import { escapeMarkup, visible, visibleValue } from "./visible.ts";

test.each([
  ["\u0000\t\u001b", "⟨U+0000⟩⟨tab⟩⟨U+001B⟩"],
  ["a\nb", "a\nb"],
  ["\u00a0\u202e\u200b\u007f", "⟨U+00A0⟩⟨U+202E⟩⟨U+200B⟩⟨U+007F⟩"],
  ["\ud800x", "⟨U+D800⟩x"],
  ["\u{1f600} é 漢", "\u{1f600} é 漢"],
])("%j is shown as %s", (text, shown) => {
  expect(visible(text)).toBe(shown);
});

test("blanks at the ends of a header value are shown, those inside are not", () => {
  expect(visibleValue('  "a b"\t ')).toBe('··"a b"⟨tab⟩·');
});

test("nothing that markup reads as its own survives", () => {
  expect(escapeMarkup(`<a b="c" d='e'>&\u0001`)).toBe("&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;⟨U+0001⟩");
});

import { expect, test } from "bun:test";
import { STYLE } from "./html-style.ts";

const [light = "", dark = ""] = [...STYLE.matchAll(/:root\{([^}]*)\}/g)].map(([, body]) => body);
const colors = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/--([\w-]+):#(\w{6})/g)].map(([, name = "", hex = ""]) => [name, hex]),
  );
const PALETTES = { light: colors(light), dark: colors(dark) };

/** Relative luminance (WCAG 2.2). */
function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [0, 2, 4].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const TONES = ["good", "bad", "warn", "mute", "kit"];
const PAIRS = [
  ...["ink", "soft", "accent", ...TONES].flatMap((text) => ["bg", "card"].map((behind) => [text, behind])),
  ...TONES.map((tone) => [tone, `${tone}-bg`]),
  ["ink", "code"],
] as const;

test.each(
  (["light", "dark"] as const).flatMap((scheme) => PAIRS.map(([text, behind]) => [scheme, text, behind])),
)("%s: %s can be read on %s (WCAG 1.4.3: contrast of 4.5)", (scheme, text, behind) => {
  const palette = PALETTES[scheme as keyof typeof PALETTES];
  const [bright = 0, dim = 0] = [text, behind]
    .map((name) => luminance(palette[name ?? ""] ?? ""))
    .sort((a, b) => b - a);
  expect((bright + 0.05) / (dim + 0.05)).toBeGreaterThanOrEqual(4.5);
});

/** As curl does: a lone % stands for itself, and bytes that are not UTF-8 become U+FFFD. decodeURIComponent refuses both. */
export function percentDecoded(text: string): string {
  const bytes = Buffer.from(text, "utf8").toString("latin1");
  const decoded = bytes.replace(/%([0-9a-f]{2})/gi, (_, digits) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(decoded, "latin1").toString("utf8");
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** @returns the id as it is stored (lower case), or null: no customer can have it. */
export function parseCustomerId(text: string): string | null {
  const stored = text.toLowerCase();
  return UUID.test(stored) ? stored : null;
}

/**
 * A new id: a UUIDv7 (RFC 9562, section 5.7), so that the order of ids is the order of creation, which is the order of pages.
 * A request whose body was long in coming, another process in the same millisecond or a clock that was set back would
 * come before ids that a reader has passed; then it is the newest id, moved on by a random step (section 6.2, method 2).
 *
 * @param newest the greatest id that there is, or null
 * @returns a greater one
 */
export function drawCustomerId(nowMs: number, newest: string | null): string {
  const drawn = Bun.randomUUIDv7("hex", nowMs);
  return newest === null || drawn > newest ? drawn : movedOn(newest);
}

const RANDOM_BITS = 74n; // 12 behind the version and 62 behind the variant
const RANDOM_B_BITS = 62n;

function movedOn(id: string): string {
  const bits = BigInt(`0x${id.replaceAll("-", "")}`);
  const milliseconds = bits >> 80n;
  const randomA = (bits >> 64n) & 0xfffn;
  const randomB = bits & ((1n << RANDOM_B_BITS) - 1n);
  const step = 1n + BigInt(crypto.getRandomValues(new Uint32Array(1))[0] ?? 0);
  // What overflows the random bits goes on to the next millisecond.
  const next = ((milliseconds << RANDOM_BITS) | (randomA << RANDOM_B_BITS) | randomB) + step;
  const moved =
    ((next >> RANDOM_BITS) << 80n) |
    (0x7n << 76n) |
    (((next >> RANDOM_B_BITS) & 0xfffn) << 64n) |
    (0x2n << RANDOM_B_BITS) |
    (next & ((1n << RANDOM_B_BITS) - 1n));
  const hex = moved.toString(16).padStart(32, "0");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** @returns the id as it is stored, in lower case; or null for a text that no customer can have as its id */
export function parseCustomerId(text: string): string | null {
  const stored = text.toLowerCase();
  return UUID.test(stored) ? stored : null;
}

/**
 * Draws a UUIDv7 (RFC 9562, section 5.7), so that ids are in the order of creation,
 * which is the order of pages. A clock that was set back, or another service in the
 * same millisecond, would draw an id below one that a reader of pages has already
 * passed. Then the newest id is moved on by a random step (section 6.2, method 2).
 *
 * @param newest the greatest id of the tenant so far, or null
 * @returns a greater one
 */
export function drawCustomerId(nowMs: number, newest: string | null): string {
  const drawn = Bun.randomUUIDv7("hex", nowMs);
  return newest === null || drawn > newest ? drawn : moveOn(newest);
}

const TAIL_DIGITS = 12;

/**
 * Moves the last 48 random bits on; when they overflow,
 * some 65,000 steps later, the next millisecond begins.
 */
function moveOn(id: string): string {
  const [step = 0] = crypto.getRandomValues(new Uint32Array(1));
  const tail = (Number.parseInt(id.slice(-TAIL_DIGITS), 16) + 1 + step)
    .toString(16)
    .padStart(TAIL_DIGITS, "0");
  if (tail.length === TAIL_DIGITS) return id.slice(0, -TAIL_DIGITS) + tail;
  const milliseconds = Number.parseInt(id.slice(0, 13).replace("-", ""), 16);
  return Bun.randomUUIDv7("hex", milliseconds + 1);
}

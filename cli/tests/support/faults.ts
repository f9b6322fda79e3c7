/**
 * What stands between a client and a sound server in real networks, one fault each. `times` counts from the
 * first.
 */
import type { Exchange, Fault, Reply } from "./faulty-proxy.ts";

const ALWAYS = Number.POSITIVE_INFINITY;

async function pass(exchange: Exchange): Promise<void> {
  exchange.answer(await exchange.forward());
}

/** The first `times` exchanges that `applies` accepts go wrong; the others pass. */
function first(times: number, applies: (exchange: Exchange) => boolean, wrong: Fault): Fault {
  let left = times;
  return async (exchange) => {
    if (left <= 0 || !applies(exchange)) return await pass(exchange);
    left -= 1;
    await wrong(exchange);
  };
}

const isWrite = (exchange: Exchange): boolean => exchange.isWrite;
const isRead = (exchange: Exchange): boolean => !exchange.isWrite;
const isAny = (): boolean => true;
const WHICH = { writes: isWrite, reads: isRead, all: isAny };
type Which = keyof typeof WHICH;

/** The write is applied; the connection is cut instead of a reply. */
export const dropReplies = (times = 1): Fault =>
  first(times, isWrite, async (exchange) => {
    await exchange.forward();
    exchange.cut();
  });

/** The request is cut before it reaches the server. */
export const dropRequests = (times = 1, which: Which = "writes"): Fault =>
  first(times, WHICH[which], (exchange) => exchange.cut());

/** The write is applied; nothing is ever answered. */
export const hangAfterWrites = (times = 1): Fault =>
  first(times, isWrite, async (exchange) => {
    await exchange.forward();
  });

/** Nothing is forwarded and nothing is ever answered. */
export const hang = (times = ALWAYS, which: Which = "all"): Fault => first(times, WHICH[which], () => {});

/** Every exchange takes this much longer. */
export const slow =
  (delayMs: number): Fault =>
  async (exchange) => {
    await Bun.sleep(delayMs);
    await pass(exchange);
  };

/** The write is applied; a gateway answers `status` instead. */
export const answerAfterWrites = (status: number, times = 1): Fault =>
  first(times, isWrite, async (exchange) => {
    await exchange.forward();
    exchange.answer(bare(status));
  });

/** Nothing is forwarded; `status` is answered, with `retryAfter` (seconds, or a Date) as Retry-After. */
export const answerInstead = (
  status: number,
  {
    times = 1,
    which = "all" as Which,
    retryAfter,
  }: { times?: number; which?: Which; retryAfter?: number | Date } = {},
): Fault => {
  const value = retryAfter instanceof Date ? retryAfter.toUTCString() : retryAfter?.toString();
  return first(times, WHICH[which], (exchange) =>
    exchange.answer(bare(status, value === undefined ? {} : { "retry-after": value })),
  );
};

/** Writes are answered 412 with the server's present tag, whatever If-Match says. */
export const staleForEver = (): Fault => first(ALWAYS, isWrite, (exchange) => exchange.answer(bare(412)));

/** The same, and after the second refused write no reading is answered. */
export const staleThenSilent = (): Fault => {
  let refused = 0;
  return async (exchange) => {
    if (exchange.isWrite) {
      refused += 1;
      exchange.answer(bare(412));
    } else if (refused < 2) await pass(exchange);
  };
};

/** The body of a reply breaks off half-way. */
export const resetMidBody = (times = 1, which: Which = "all"): Fault =>
  first(times, WHICH[which], async (exchange) => exchange.answerHalf(await exchange.forward()));

/** The header that a proxy spoils: every ETag is passed through `change`; undefined removes it. */
export const changeTags =
  (change: (tag: string, exchange: Exchange) => string | undefined): Fault =>
  async (exchange) => {
    const reply = await exchange.forward();
    const { etag, ...headers } = reply.headers;
    const changed = etag === undefined ? undefined : change(etag, exchange);
    exchange.answer({ ...reply, headers: changed === undefined ? headers : { ...headers, etag: changed } });
  };

/** As nginx and others do when they compress. */
export const weakenTags = (): Fault => changeTags((tag) => `W/${tag}`);
/** As those do that compress only for a client that accepts it. */
export const weakenTagsOfCompressed = (): Fault =>
  changeTags((tag, { headers }) => (String(headers["accept-encoding"]).includes("gzip") ? `W/${tag}` : tag));
/** As Apache's mod_deflate does. */
export const suffixTags = (): Fault => changeTags((tag) => tag.replace(/"$/, '-gzip"'));
export const stripTags = (): Fault => changeTags(() => undefined);

/**
 * Before each of the first `times` writes goes on, `interfere` runs: somebody else's write, so a real 412.
 */
export const interfere = (change: () => unknown, times = 1, then: Fault = pass): Fault => {
  let left = times;
  return async (exchange) => {
    if (exchange.isWrite && left > 0) {
      left -= 1;
      await change();
    }
    await then(exchange);
  };
};

/** The first write goes wrong in this way; everything else passes. */
export const firstWrite = (wrong: Fault): Fault => first(1, isWrite, wrong);

function bare(status: number, headers: Record<string, string> = {}): Reply {
  return { status, headers, body: new Uint8Array() };
}

/** What ends the check of a rule early. Each is an outcome with its reason, not a bug. */
import type { Exchange } from "../report/schema.ts";

export class NotApplicable extends Error {}
export class CouldNotRun extends Error {}
export class Inconclusive extends Error {}
/** SIGINT or the caller's AbortSignal. */
export class Interrupted extends Error {}
/** The kit itself is at fault: its transport alters bytes, its own state contradicts itself. */
export class KitFault extends Error {}

/** A request that got no complete reply. The engine runs the rule once more before it believes it. */
export class NoReply extends Error {
  readonly exchange: Exchange;

  constructor(exchange: Exchange) {
    const { method, url } = exchange.request;
    super(`${method} ${url}: ${exchange.failure ?? "no reply"}`);
    this.exchange = exchange;
  }
}

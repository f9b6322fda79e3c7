/** What ends the check of a rule early. Each is an outcome with its reason, not a bug. */
import type { Exchange } from "../report/schema.ts";

export class NotApplicable extends Error {}

/** Writes of other people in the middle of a rule would explain what it met as well. */
export const OTHERS_MAY_CAUSE = { othersMayCause: true } as const;

/** What a could-not-run knows beyond its words. */
export type Pointer = {
  /** Rules whose finding explains this one. */
  readonly see?: readonly string[];
  /** Writes of other people would explain it as well. */
  readonly othersMayCause?: boolean;
  /**
   * The exchange breaks the rules in `see`. Where none of them reports it, this rule does: a breach that comes and
   * goes is still a breach.
   */
  readonly breach?: {
    readonly exchange: Exchange;
    readonly allowed: string;
    readonly found: string;
    /** Nothing else explains it, so it need not come again. */
    readonly certain?: true;
  };
};

/** A prerequisite is missing, or the deployment failed in a way that says nothing about the rule. */
export class CouldNotRun extends Error {
  readonly pointer: Pointer;

  constructor(message: string, see: readonly string[] = [], more: Omit<Pointer, "see"> = {}) {
    super(message);
    this.pointer = { ...(see.length > 0 && { see }), ...more };
  }
}

export class Inconclusive extends Error {}
/** SIGINT or the caller's AbortSignal. */
export class Interrupted extends Error {}
/** The kit itself is at fault: its transport alters bytes, its own state contradicts itself. */
export class KitFault extends Error {}
/** Nothing there that can be tested: no answer, no admission, or something else than the service. */
export class Unreachable extends Error {}

/** A request that got no complete reply. The engine runs the rule again before it believes it. */
export class NoReply extends Error {
  readonly exchange: Exchange;

  constructor(exchange: Exchange) {
    const { method, url } = exchange.request;
    super(`${method} ${url}: ${exchange.failure ?? "no reply"}`);
    this.exchange = exchange;
  }
}

/** An answer that says nothing about the rule (401, 403, 429, 5xx) to a request that must not simply be sent again. */
export class Disturbed extends Error {
  /** The request as the next attempt would send it again. */
  readonly asked: string;

  constructor(exchange: Exchange, asked: string) {
    super(`${exchange.purpose}: ${exchange.request.method} was answered ${exchange.reply?.status}`);
    this.asked = asked;
  }
}

import type { RefusedToken } from "../../domain/policy/issuer.ts";
import type { Log } from "./log.ts";

/** Anyone can send bad tokens: of one cause the log has at most one line in this time. */
const LINE_EVERY_MS = 60_000;

type Cause = { loggedAtMs: number; unlogged: number };

/**
 * Logs why tokens of issuers are refused, which the reply does not say. Nothing of a token is logged: there are no
 * more causes than issuers of the policy times reasons.
 */
export class RefusedTokenLog {
  readonly #logger: Log["logger"];
  readonly #clock: () => number;
  readonly #causes = new Map<string, Cause>();

  /** @param clock ms from any fixed moment */
  constructor({ logger }: Pick<Log, "logger">, clock = () => performance.now()) {
    this.#logger = logger;
    this.#clock = clock;
  }

  record({ issuer, reason }: RefusedToken): void {
    const cause = this.#causes.getOrInsertComputed(`${issuer} ${reason}`, () => ({
      loggedAtMs: Number.NEGATIVE_INFINITY,
      unlogged: 0,
    }));
    const now = this.#clock();
    if (now - cause.loggedAtMs < LINE_EVERY_MS) {
      cause.unlogged += 1;
      return;
    }
    const { unlogged } = cause;
    cause.loggedAtMs = now;
    cause.unlogged = 0;
    // Strangers send what names no issuer of the policy; the rest is for someone to correct.
    const level = issuer === null ? "info" : "warn";
    this.#logger[level](
      { issuer, reason, ...(unlogged === 0 ? {} : { unlogged }) },
      "token of an issuer refused",
    );
  }
}

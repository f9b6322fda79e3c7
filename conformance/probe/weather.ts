/**
 * Answers that say nothing about a rule: the environment failed (a restart, a firewall, expired credentials), so
 * they neither break a rule nor keep it. A plain read shows whether the deployment answers as it did at the start.
 */

import { NoReply, Unreachable } from "../http/outcome-signal.ts";
import { type Ask, ownAsk, type Seen, type Wire } from "../http/wire.ts";
import type { Exchange } from "../report/schema.ts";

/** So many reads in a row must be answered as usual: one good answer among failing replicas proves little. */
const READS = 8;
const PAUSE_MS = 25;
const PAUSE_MS_MAX = 400;

/** Whether an answer may come from the environment alone. */
export function saysNothing(seen: Seen, caller: Ask["caller"], answers: readonly number[] = []): boolean {
  const { status } = seen;
  if (answers.includes(status)) return false;
  // 501 and 505 are said of the request.
  if (status >= 500 && status !== 501 && status !== 505) return true;
  if (status === 407 || status === 429) return true;
  // The other callers are tried on what they may not do.
  return caller === "main" && (status === 401 || status === 403);
}

export class Weather {
  /** Numbers of exchanges whose answers did not come again when the same was asked. */
  readonly passing = new Set<number>();
  /** Exchanges that were answered so. */
  readonly failed: Exchange[] = [];
  readonly #wire: Wire;
  readonly #ask: Ask;
  readonly #usual: number;
  readonly #patienceMs: number;
  #waitedMs = 0;

  /**
   * @param usual the status of the first read of this run
   * @param patienceMs a deployment that is away for longer is gone, as far as this run goes
   */
  constructor(wire: Wire, url: string, usual: number, patienceMs: number) {
    this.#wire = wire;
    this.#patienceMs = patienceMs;
    this.#usual = usual;
    this.#ask = ownAsk("does the deployment answer as before", "GET", url);
  }

  /** Returns once plain reads are answered as at the start. @throws Unreachable when they are not in time. */
  async settle(): Promise<void> {
    let pauseMs = PAUSE_MS;
    let good = 0;
    while (good < READS) {
      const answer = await this.#answer();
      if (answer === String(this.#usual)) {
        good += 1;
        continue;
      }
      good = 0;
      if (this.#waitedMs > this.#patienceMs)
        throw new Unreachable(`the deployment no longer answers as before: ${answer}`);
      await this.#wire.rest(pauseMs);
      this.#waitedMs += pauseMs;
      pauseMs = Math.min(pauseMs * 1.5, PAUSE_MS_MAX);
    }
  }

  async #answer(): Promise<string> {
    try {
      const { status } = await this.#wire.send(this.#ask);
      return status === this.#usual
        ? String(status)
        : `a plain read is answered ${status}${status === 401 ? "; have the credentials expired?" : ""}`;
    } catch (error) {
      if (error instanceof NoReply) return error.message;
      throw error;
    }
  }
}

import { StoreUnavailable } from "../storage/customers/customer-store.ts";
import type { Caller } from "../storage/tokens/token-store.ts";
import { withinTime } from "../telemetry/within-time.ts";
import type { TokenLookup } from "./authentication.ts";

/** How long what the store said counts: an outage within which no alert may fall silent. */
const REMEMBER_MS = 3_600_000;
/** The maximum number of tokens that are remembered. More monitors than these are not known to exist. */
const REMEMBERED_MAX = 100;

type Remembered = { readonly caller: Caller; readonly atMs: number };

/**
 * Looks up the tokens of scrapes. While the store does not answer, a token for metrics that it confirmed within the last
 * hour is still good for them: otherwise no scrape would show that the store does not answer.
 */
export class MonitorTokens implements TokenLookup {
  readonly #tokens: TokenLookup;
  /** By digest: a token that is remembered for an hour must not stand in a memory dump. */
  readonly #remembered = new Map<string, Remembered>();

  constructor(tokens: TokenLookup) {
    this.#tokens = tokens;
  }

  async find(token: string, nowMs: number, address?: string): Promise<Caller | null> {
    const answer = this.#ask(token, nowMs, address);
    const known = this.#remembered.get(digestOf(token));
    if (known === undefined || nowMs - known.atMs >= REMEMBER_MS) return await answer;
    if (known.caller.expiry !== null && nowMs >= known.caller.expiry.atMs) return await answer;
    return await withinTime(unlessUnavailable(answer, known.caller), known.caller);
  }

  async #ask(token: string, nowMs: number, address?: string): Promise<Caller | null> {
    const caller = await this.#tokens.find(token, nowMs, address);
    const digest = digestOf(token);
    this.#remembered.delete(digest);
    if (caller !== null && caller.tenant === null && this.#remembered.size < REMEMBERED_MAX)
      this.#remembered.set(digest, { caller, atMs: nowMs });
    return caller;
  }
}

function digestOf(token: string): string {
  return Bun.SHA256.hash(token, "hex");
}

/** @returns `otherwise` where the store says that it cannot answer */
function unlessUnavailable(answer: Promise<Caller | null>, otherwise: Caller): Promise<Caller | null> {
  return answer.catch((error: unknown) => {
    if (error instanceof StoreUnavailable) return otherwise;
    throw error;
  });
}

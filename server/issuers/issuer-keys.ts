import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import type { Issuer } from "../domain/policy/issuer.ts";
import { DocumentRefused, type FetchLimits, fetchDocument } from "./fetch-document.ts";

/** The public keys of an issuer, as one fetch found them. */
export type KeySet = JWTVerifyGetKey;

type KeyTiming = {
  /** Between two fetches; while they succeed, a key that the issuer has withdrawn is accepted at most that long. */
  readonly refreshMs: number;
  /** After a fetch that failed. */
  readonly retryMs: number;
  /** Between two fetches for tokens whose key is unknown: anyone can send such tokens. */
  readonly unknownKeyMs: number;
};

const KEY_TIMING: KeyTiming = { refreshMs: 600_000, retryMs: 30_000, unknownKeyMs: 60_000 };
/** The documents of large issuers have some 10 KiB. */
const FETCH_LIMITS: FetchLimits = { timeoutMs: 5_000, bytesMax: 256 * 1024 };

export type KeyFetch = {
  readonly issuer: string;
  /** Null where the keys were fetched. */
  readonly fault: string | null;
  /** Whether tokens of the issuer can be verified now. */
  readonly hasKeys: boolean;
};

export type IssuerKeysOptions = {
  readonly timing?: KeyTiming;
  readonly limits?: FetchLimits;
  /** ms from any fixed moment. */
  readonly clock?: () => number;
  readonly onFetch: (fetched: KeyFetch) => void;
};

/**
 * The keys of one issuer, found by OpenID Connect Discovery 1.0, section 4. A fetch that fails leaves
 * those of the one before in force, since the tokens that they signed are as good as before.
 */
export class IssuerKeys {
  readonly #issuer: Issuer;
  readonly #timing: KeyTiming;
  readonly #limits: FetchLimits;
  readonly #clock: () => number;
  readonly #onFetch: IssuerKeysOptions["onFetch"];
  #current: KeySet | null = null;
  #text = "";
  #fetchedAtMs = 0;
  #underWay: Promise<void> | null = null;
  #unknownKeyAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;

  constructor(
    issuer: Issuer,
    {
      timing = KEY_TIMING,
      limits = FETCH_LIMITS,
      clock = () => performance.now(),
      onFetch,
    }: IssuerKeysOptions,
  ) {
    this.#issuer = issuer;
    this.#timing = timing;
    this.#limits = limits;
    this.#clock = clock;
    this.#onFetch = onFetch;
  }

  /** Another object only where the keys are others. Null until they were fetched for the first time. */
  get current(): KeySet | null {
    return this.#current;
  }

  /** In ms since 1970; 0 before the first. */
  get fetchedAtMs(): number {
    return this.#fetchedAtMs;
  }

  /** Fetches now, and from then on again and again. One fetch at a time: callers share it. It never fails. */
  refresh(): Promise<void> {
    this.#underWay ??= this.#fetch().finally(() => {
      this.#underWay = null;
    });
    return this.#underWay;
  }

  /** Waits for a fetch that is under way; begins one where the last for an unknown key was long enough ago. */
  async refreshForUnknownKey(): Promise<void> {
    if (this.#underWay !== null) return this.#underWay;
    if (this.#clock() - this.#unknownKeyAt < this.#timing.unknownKeyMs) return;
    this.#unknownKeyAt = this.#clock();
    await this.refresh();
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #fetch(): Promise<void> {
    const { name } = this.#issuer;
    let fault: string | null = null;
    try {
      const document = await fetchKeys(this.#issuer, this.#limits);
      const text = JSON.stringify(document);
      if (text !== this.#text) this.#current = createLocalJWKSet(document);
      this.#text = text;
      this.#fetchedAtMs = Date.now();
    } catch (error) {
      fault = error instanceof Error ? error.message : String(error);
    }
    if (this.#isStopped) return;
    this.#onFetch({ issuer: name, fault, hasKeys: this.#current !== null });
    if (this.#timer !== null) clearTimeout(this.#timer);
    const { refreshMs, retryMs } = this.#timing;
    this.#timer = setTimeout(() => void this.refresh(), fault === null ? refreshMs : retryMs).unref();
  }
}

/** @throws DocumentRefused, or jose's own error where the document is no key set */
async function fetchKeys({ url, algorithms }: Issuer, limits: FetchLimits): Promise<JSONWebKeySet> {
  const configuration = await fetchDocument(
    `${url.replace(/\/$/, "")}/.well-known/openid-configuration`,
    limits,
  );
  const { issuer, jwks_uri: address } = configuration;
  // Section 4.3: what speaks for another issuer is not believed.
  if (issuer !== url) throw new DocumentRefused(`${url} calls itself ${JSON.stringify(issuer)}`);
  if (typeof address !== "string") throw new DocumentRefused(`${url} names no jwks_uri`);
  // The policy accepts http for an issuer of this machine alone; what an issuer elsewhere names must not lead here.
  if (url.startsWith("https:") && !address.startsWith("https:"))
    throw new DocumentRefused(
      `${url} names keys at ${address}; the keys of an https issuer must be at an https address`,
    );
  const { keys } = await fetchDocument(address, limits);
  if (!Array.isArray(keys)) throw new DocumentRefused(`${address} holds no keys`);
  const usable = keys.filter((key) => isUsable(key, algorithms));
  if (usable.length > 0) return { keys: usable };
  throw new DocumentRefused(`${address} holds no key for ${algorithms.join(" or ")}`);
}

const KEY_TYPES: Readonly<Record<string, string>> = { RS: "RSA", PS: "RSA", ES: "EC", Ed: "OKP" };

/** Whether it may verify one of these algorithms; a key set may hold keys to encrypt with, and those of others. */
function isUsable(key: unknown, algorithms: readonly string[]): boolean {
  if (typeof key !== "object" || key === null || !("kty" in key)) return false;
  const { kty } = key;
  return algorithms.some((algorithm) => KEY_TYPES[algorithm.slice(0, 2)] === kty);
}

/** Everything that is sent goes through here: pace, budget, masking, the ledger, and what 429 asks for. */

import type { Exchange, Report } from "../report/schema.ts";
import type { CallerHeader } from "../target/caller-header.ts";
import type { Maker } from "../target/journal.ts";
import { type Masking, masking } from "../target/mask.ts";
import type { RunOptions } from "../target/options.ts";
import type { Profile } from "../target/profile.ts";
import { VERSION } from "../version.ts";
import { Acknowledged } from "./acknowledged.ts";
import { bodyText, headerValue, headerValues, type Reply } from "./http-reply.ts";
import { Onlooker } from "./onlooker.ts";
import { CouldNotRun, Interrupted, NoReply, Unreachable } from "./outcome-signal.ts";
import type { Outgoing } from "./request-bytes.ts";
import type { Result } from "./result.ts";
import type { Connection, Held } from "./socket-transport.ts";
import { accepted } from "./status.ts";
import { Transport } from "./transport.ts";
import { type Slip, Unguarded } from "./unguarded.ts";

/**
 * `garbled`: the headers of the main caller, each with a credential that nobody has. `lengthened`: each with its own
 * credential and a few characters more.
 */
export type Caller = "main" | "limited" | "other-tenant" | "anonymous" | "garbled" | "lengthened" | "metrics";

export type Ask = {
  /** Rule id, `set-up` or `clean-up`: whose request it is. */
  readonly rule: string;
  readonly purpose: string;
  readonly caller: Caller;
  readonly method: string;
  readonly url: string;
  /** The address of the customer, where `url` spells it otherwise. */
  readonly ownUrl?: string;
  /** Who reads the customer, where that is not the main caller. */
  readonly reader?: Maker;
  readonly headers: readonly (readonly [string, string])[];
  readonly body?: string | undefined;
  /** A connection is used for request after request. */
  readonly via?: "undici" | "socket" | Connection | undefined;
  /** How the message is framed; over a socket alone. */
  readonly framing?: Outgoing["framing"];
};

/** A request of the kit's own, beside the rules. */
export const ownAsk = (purpose: string, method: string, url: string, more: Partial<Ask> = {}): Ask => ({
  rule: "set-up",
  purpose,
  caller: "main",
  method,
  url,
  headers: [],
  ...more,
});

/** The scheme stays, and so does a header that is no credential. Which cookie counts is unknown, so each changes. */
function garbled(header: CallerHeader): CallerHeader {
  if (header.shown === header.value) return header;
  const value = isCookie(header)
    ? header.value.replace(/=[^;]*/g, "=kit-wrong-credential")
    : header.value.replace(/\S+$/, "kit-wrong-credential");
  return { ...header, value, shown: value };
}

/** A decoder of base64 may stop at `=`, and would find the credential itself; of cookies it is unknown which counts. */
const canBeLengthened = (header: CallerHeader) =>
  header.shown !== header.value && !isCookie(header) && !header.value.endsWith("=");

function lengthened(header: CallerHeader): CallerHeader {
  if (!canBeLengthened(header)) return garbled(header);
  return { ...header, value: `${header.value}-kit`, shown: `${header.shown}-kit` };
}

const isCookie = ({ name }: CallerHeader) => name.toLowerCase() === "cookie";

/** A reply as checks look at it; `exchange` is what may be shown of it. */
export type Seen = {
  readonly exchange: Exchange;
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  /** The ETag field value; undefined where none came. */
  readonly tag: string | undefined;
  readonly tags: readonly string[];
  readonly text: string;
  /** The body where it is a JSON object. */
  readonly object: Readonly<Record<string, unknown>> | undefined;
};

/** What came of a held request. */
type Released = {
  readonly exchange: Exchange;
  /** undefined: no complete reply came. */
  readonly seen: Seen | undefined;
  /** Whether the reply, or the end of the connection, came before the request was complete. */
  readonly early: boolean;
};

/** Sent unless a probe sends its own. */
const USUAL: readonly [string, string][] = [
  ["User-Agent", `customers-conformance/${VERSION}`],
  ["Accept", "application/json, */*;q=0.5"],
];
const BODY_CHARACTERS_SHOWN = 4096;
const WAITS_MAX = 6;
/** A longer pause is not worth making: so long a wait means a quota. */
const WAIT_MS_MAX = 30_000;
/** A service that takes few connections at once leaves the others waiting; a race does not wait with them. */
const OPEN_MS_MAX = 2000;
const CLEAN_UP_RESERVE = 100;

export class Wire {
  /** Puts `$NAME` in the place of every secret. */
  readonly mask = (text: string): string => this.#masking.mask(text);
  readonly ledger: Report["ledger"] = [];
  readonly transport: Transport;
  readonly onlooker = new Onlooker();
  readonly acknowledged = new Acknowledged();
  readonly unguarded = new Unguarded();
  readonly startedAt = performance.now();
  readonly #profile: Profile;
  readonly #options: RunOptions;
  #nextSlot = 0;
  #masking: Masking;
  /** Of the main caller; the header command may renew them. */
  #mainHeaders: readonly CallerHeader[];
  #renewedAt = performance.now();
  /** Why nothing more is sent: the service wants a longer pause than a run can make. */
  #quota: string | undefined;
  #cleaning = false;

  constructor(profile: Profile, options: RunOptions) {
    this.#profile = profile;
    this.#options = options;
    this.#masking = masking(profile.secrets);
    this.#mainHeaders = profile.main;
    this.transport = new Transport(profile);
  }

  /** While cleaning up the reserve may be used, and an interruption no longer stops it. */
  beginCleaning(): void {
    this.#cleaning = true;
    this.#quota = undefined;
  }

  get requests(): number {
    return this.ledger.length;
  }

  /** @throws NoReply when no complete reply came. */
  async send(ask: Ask): Promise<Seen> {
    for (let wait = 0; ; wait += 1) {
      await this.#permit();
      const outgoing = this.#outgoing(ask);
      const ended = this.#watch(ask);
      const result =
        typeof ask.via === "object"
          ? await ask.via.send(outgoing)
          : ask.via === "socket" || ask.framing !== undefined
            ? await this.transport.sockets.send(outgoing)
            : await this.transport.send(outgoing);
      const exchange = this.#record(ask, outgoing, result);
      const answer = result.reply === null ? undefined : seen(exchange, result.reply);
      ended(exchange, answer);
      if (result.reply === null || answer === undefined) throw new NoReply(exchange);
      if (result.reply.status === 401 && ask.caller === "main" && this.#renew()) continue;
      const pauseMs = pauseAsked(result.reply);
      if (pauseMs === undefined) return answer;
      if (pauseMs > WAIT_MS_MAX) throw this.#quotaSpent(result.reply.status, pauseMs);
      if (wait >= WAITS_MAX)
        throw new CouldNotRun(
          `the service kept answering ${result.reply.status} (too many requests); try a lower --rate`,
        );
      await this.rest(pauseMs);
    }
  }

  /**
   * Asks the header command for new credentials, at most once a minute.
   * @returns whether there are any: a request that was answered 401 is then worth another try
   */
  #renew(): boolean {
    const { renew } = this.#profile;
    const now = performance.now();
    if (renew === undefined || now - this.#renewedAt < this.#options.renewalMs) return false;
    this.#renewedAt = now;
    const printed = renew();
    if (typeof printed === "string") return false;
    const renewed = new Map(printed.headers.map((header) => [header.name.toLowerCase(), header]));
    this.#mainHeaders = [
      ...this.#mainHeaders.filter(({ name }) => !renewed.has(name.toLowerCase())),
      ...printed.headers,
    ];
    this.#masking = masking(this.#profile.secrets);
    return true;
  }

  /** The first of these ends the run. The clean-up tries once more, and gives up at the next. */
  #quotaSpent(status: number, pauseMs: number): Unreachable | CouldNotRun {
    const seconds = Math.round(pauseMs / 1000);
    this.#quota ??= `the quota of requests is used up: the service answers ${status} and asks to wait ${seconds} s. Run again later, or with a lower --rate`;
    return this.#cleaning ? new CouldNotRun(this.#quota) : new Unreachable(this.#quota);
  }

  /** All but the end of the request is sent; `release` sends it. A failure stands in the exchange and is not thrown. */
  async hold(ask: Ask): Promise<{ opened: boolean; release(): Promise<Released> }> {
    await this.#permit();
    const outgoing = this.#outgoing(ask);
    const ended = this.#watch(ask);
    const held: Held = await this.transport.sockets.hold(
      outgoing,
      Math.min(OPEN_MS_MAX, this.#profile.timeoutMs),
    );
    return {
      opened: held.opened,
      release: async () => {
        const result = await held.release();
        const exchange = this.#record({ ...ask, via: "socket" }, outgoing, result);
        const answer = result.reply === null ? undefined : seen(exchange, result.reply);
        ended(exchange, answer);
        return { exchange, seen: answer, early: result.early };
      },
    };
  }

  /** From here on each connection serves one request, if the server closes them without saying so. */
  async adaptToClosing(ask: Ask): Promise<void> {
    if (await this.transport.sockets.closesUnannounced(this.#outgoing(ask)))
      await this.transport.withoutKeepAlive();
  }

  /** Whether `lengthened` differs from `garbled`. */
  get hasLengthened(): boolean {
    return this.#mainHeaders.some(canBeLengthened);
  }

  callerHeaders(caller: Caller): readonly CallerHeader[] {
    if (caller === "main") return this.#mainHeaders;
    if (caller === "limited") return this.#profile.limited?.headers ?? [];
    if (caller === "other-tenant") return this.#profile.otherTenant ?? [];
    if (caller === "metrics") return this.#profile.metrics.headers;
    if (caller === "garbled") return this.#mainHeaders.map(garbled);
    if (caller === "lengthened") return this.#mainHeaders.map(lengthened);
    return [];
  }

  async #permit(): Promise<void> {
    if (this.#options.signal?.aborted && !this.#cleaning) throw new Interrupted("interrupted");
    if (this.#quota !== undefined && this.#cleaning) throw new CouldNotRun(this.#quota);
    const limit =
      this.#options.budget - (this.#cleaning ? 0 : Math.min(CLEAN_UP_RESERVE, this.#options.budget / 4));
    if (this.requests >= limit)
      throw new CouldNotRun(`the budget of ${this.#options.budget} requests is spent`);
    const rate = this.#options.rate ?? this.#profile.rate;
    if (rate === undefined) return;
    const now = performance.now();
    const slot = Math.max(now, this.#nextSlot);
    this.#nextSlot = slot + 1000 / rate;
    if (slot > now) await this.rest(slot - now);
  }

  /** Waits, unless the run is interrupted. */
  async rest(ms: number): Promise<void> {
    const signal = this.#cleaning ? undefined : this.#options.signal;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, ms);
      function done() {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      }
      signal?.addEventListener("abort", done);
    });
  }

  /** Tells the onlooker of an exchange with a customer; returns what to call when it has ended. */
  #watch(ask: Ask): (exchange: Exchange, answer: Seen | undefined) => void {
    const { method, url, ownUrl = url, caller, reader = "main", headers } = ask;
    const { pathname } = new URL(ownUrl);
    const { search } = new URL(url);
    if (method !== "GET" && method !== "HEAD") {
      this.onlooker.writeBegins(pathname);
      this.acknowledged.writeBegins(pathname);
      const mustFail = this.#whyItMustFail(method, pathname, headers);
      return (exchange, answer) => {
        const status = answer?.status;
        const replaced = accepted(status ?? 0) ? headerValue(headers, "if-match") : undefined;
        if (mustFail !== undefined && accepted(status ?? 0))
          this.unguarded.accepted(
            { url: ownUrl, reader },
            { kind: mustFail, exchange },
            this.#newTag(pathname, answer?.tag),
          );
        this.onlooker.writeEnds(pathname, answer?.tag, replaced);
        this.acknowledged.wrote(pathname, method, status);
      };
    }
    // Another caller, or a compressing proxy, may be shown another tag of the same state.
    const plain = caller === reader && !headers.some(([name]) => name.toLowerCase() === "accept-encoding");
    const looked = this.acknowledged.readBegins(pathname, search);
    return (_exchange, answer) => {
      if (!plain || answer === undefined) return;
      const { status, tag, object } = answer;
      if (tag !== undefined && status === 200) this.onlooker.read(pathname, tag);
      if (method === "GET") this.unguarded.read(pathname, status, tag);
      if (method === "GET" && !this.#cleaning) looked(status, tag, object);
    };
  }

  /** As far as the answers so far tell; undefined: it may be accepted. A DELETE of what is deleted may be (RFC 9110 9.2.2). */
  #whyItMustFail(method: string, path: string, headers: Ask["headers"]): Slip["kind"] | undefined {
    if (!/^(?:PUT|PATCH|DELETE)$/.test(method) || this.acknowledged.of(path).deleted) return undefined;
    const sent = headerValues(headers, "if-match").join(", ").trim();
    if (sent === "") return "missing";
    return this.onlooker.isFormer(path, sent) ? "stale" : undefined;
  }

  /** A tag that this customer was not seen to have before. */
  #newTag(path: string, tag: string | undefined): string | undefined {
    return tag === undefined || this.onlooker.knownTags(path).has(tag) ? undefined : tag;
  }

  #outgoing(ask: Ask): Outgoing {
    const general = [
      ...USUAL.filter(([name]) => headerValue(ask.headers, name.toLowerCase()) === undefined),
      ...this.callerHeaders(ask.caller).map(({ name, value }): [string, string] => [name, value]),
    ];
    return {
      method: ask.method,
      url: ask.url,
      headers: [...general, ...ask.headers],
      body: ask.body,
      framing: ask.framing,
    };
  }

  #record(ask: Ask, outgoing: Outgoing, { reply, failure, sentAt, answeredAt }: Result): Exchange {
    const n = this.ledger.length + 1;
    const times = { startedMs: sentAt - this.startedAt, durationMs: answeredAt - sentAt };
    const credentials = new Map(this.callerHeaders(ask.caller).map(({ name, shown }) => [name, shown]));
    // The headers of the probe itself come last, and one may have the name of a credential.
    const own = outgoing.headers.length - ask.headers.length;
    const shown = (name: string, index: number) => (index < own ? credentials.get(name) : undefined);
    const { pathname, search } = new URL(ask.url);
    this.ledger.push({
      n,
      rule: ask.rule,
      caller: ask.caller,
      method: ask.method,
      path: this.mask(pathname + search),
      status: reply?.status ?? null,
      ...times,
    });
    const follows = typeof ask.via === "object" ? ask.via.last : undefined;
    if (typeof ask.via === "object") ask.via.last = n;
    return {
      n,
      purpose: ask.purpose,
      caller: ask.caller,
      via:
        (ask.via ?? "undici") === "undici" && ask.framing === undefined && !this.transport.socketOnly
          ? "undici"
          : "socket",
      ...(ask.framing === undefined ? {} : { framing: ask.framing }),
      ...(follows === undefined ? {} : { follows }),
      request: {
        method: ask.method,
        url: this.mask(ask.url),
        headers: outgoing.headers.map(([name, value], index) => [
          name,
          shown(name, index) ?? this.mask(value),
        ]),
        body: ask.body === undefined ? null : this.#masking.maskStart(ask.body, BODY_CHARACTERS_SHOWN),
      },
      reply:
        reply === null
          ? null
          : {
              status: reply.status,
              headers: reply.headers.map(([name, value]) => [name, this.mask(value)]),
              body: this.#masking.maskStart(bodyText(reply), BODY_CHARACTERS_SHOWN),
            },
      failure: failure === null ? null : this.mask(failure),
      ...times,
    };
  }

  connect(): Connection {
    return this.transport.sockets.connection();
  }

  async close(): Promise<void> {
    await this.transport.close();
  }
}

/** Milliseconds that 429, or 503 with Retry-After, asks to wait (RFC 9110 10.2.3); undefined: it does not ask. */
function pauseAsked({ status, headers }: Reply): number | undefined {
  const retryAfter = headerValue(headers, "retry-after");
  if (status !== 429 && !(status === 503 && retryAfter !== undefined)) return undefined;
  if (retryAfter === undefined) return 1000;
  const ms = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - Date.now();
  return Math.max(Number.isNaN(ms) ? 1000 : ms, 50);
}

function seen(exchange: Exchange, reply: Reply): Seen {
  const text = bodyText(reply);
  const tags = headerValues(reply.headers, "etag");
  return {
    exchange,
    status: reply.status,
    headers: reply.headers,
    tag: tags[0],
    tags,
    text,
    object: jsonObject(text),
  };
}

/** undefined: the text is no JSON object. */
function jsonObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

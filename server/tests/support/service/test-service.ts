import { createApp } from "../../../app.ts";
import { BUILT_IN_POLICY, readPolicyText } from "../../../config/policy-file.ts";
import { TrustedProxies } from "../../../domain/network/trusted-proxies.ts";
import type { RefusedToken } from "../../../domain/policy/issuer.ts";
import type { Policy } from "../../../domain/policy/policy.ts";
import { firstDayKept } from "../../../domain/rollout/write-count.ts";
import { Cors } from "../../../http/cors.ts";
import { CallerLimits } from "../../../http/limits/caller-limits.ts";
import type { KeyFetch } from "../../../issuers/issuer-keys.ts";
import { SignIn } from "../../../issuers/sign-in.ts";
import type { Storage } from "../../../storage/storage.ts";
import type { TokenHolder } from "../../../storage/tokens/token-store.ts";
import { countPages } from "../../../storage/write-counts/write-count-store.ts";
import { createLog, lineOf } from "../../../telemetry/log/log.ts";
import { RefusedTokenLog } from "../../../telemetry/log/refused-token-log.ts";
import { Metrics } from "../../../telemetry/metrics/metrics.ts";
import { WriteCounter } from "../../../telemetry/metrics/write-counter.ts";
import { ANY_WAY } from "../database/storage-ways.ts";
import { type Sighting, sightingsOf } from "../http/described-reply.ts";

type TestServiceOptions = {
  readonly policy?: string;
  /** One of its own where it is left out, in memory if the engine can. */
  readonly storage?: Storage;
  /** The tokens of an earlier service on the same storage. */
  readonly tokens?: Map<string, Promise<string>>;
  readonly metricsArePublic?: boolean;
  readonly corsOrigins?: readonly string[];
  readonly corsHeaders?: readonly string[];
  readonly publicUrl?: string;
  readonly trustedProxies?: readonly string[];
  /** How long a 412 waits for the audit trail. A quarter of a second may be too short on a busy machine. */
  readonly changesWaitMs?: number;
  readonly now?: () => number;
  /** By which the sign-in counts the time between two fetches of keys. */
  readonly clock?: () => number;
};

/** What comes back, read whole. */
export type Reply = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; undefined where there is none. Typed loosely: tests look at it from outside. */
  // biome-ignore lint/suspicious/noExplicitAny: a test's view of the wire
  readonly json: any;
  /** The ETag header, or "". */
  readonly etag: string;
};

/**
 * The service on a real socket and a real database, in this
 * process: with a clock and a log that a test can hold.
 */
export class TestService {
  readonly storage: Storage;
  readonly url: string;
  readonly port: number;
  /** Each log line, parsed. */
  readonly logLines: Record<string, unknown>[] = [];
  readonly metrics: Metrics;
  readonly writeCounter: WriteCounter;
  readonly signIn: SignIn;
  /** Of the keys of issuers. */
  readonly keyFetches: KeyFetch[] = [];
  readonly refusedTokens: RefusedToken[] = [];
  /** What its replies have shown of the OpenAPI document. */
  readonly sightings = new Set<Sighting>();
  readonly #app: ReturnType<typeof createApp>;
  readonly #now: () => number;
  #policy: Policy;
  readonly #tokens: Map<string, Promise<string>>;

  private constructor(storage: Storage, options: Omit<TestServiceOptions, "storage">) {
    this.#policy = policyOf(options.policy ?? BUILT_IN_POLICY);
    this.#now = options.now ?? Date.now;
    this.#tokens = options.tokens ?? new Map();
    this.storage = storage;
    const metricsArePublic = options.metricsArePublic ?? false;
    const log = createLog("info", (line) =>
      this.logLines.push(JSON.parse(lineOf(line)) as Record<string, unknown>),
    );
    this.metrics = new Metrics({
      hasCallerLabels: !metricsArePublic,
      version: "0.0.0-test",
      storageStats: () => this.storage.stats(),
      tokensToRenew: {
        expiring: () => this.storage.tokens.expiring(this.#now()),
        stillUsed: () => this.storage.tokens.stillUsed(this.#now()),
      },
      issuerKeys: () => this.signIn.fetchTimes(),
      auditRetention: () => null,
      certificateExpiry: () => Number.NaN,
      rollout: {
        counts: () => countPages(this.storage.writeCounts, firstDayKept(this.#now())),
        enforcement: () => this.#policy.enforcement,
        now: this.#now,
      },
      onWrite: (write, kind) => this.writeCounter.record(write, kind),
    });
    // Stored when a test says so, and at the end.
    this.writeCounter = new WriteCounter(this.storage.writeCounts, {
      gatherMs: 3_600_000,
      onFailure: (error) => {
        throw error;
      },
    });
    const refusedTokenLog = new RefusedTokenLog(log, options.clock);
    this.signIn = new SignIn({
      policy: () => this.#policy,
      ...(options.clock === undefined ? {} : { clock: options.clock }),
      onFetch: (fetched) => {
        this.keyFetches.push(fetched);
        this.metrics.issuers.onFetch(fetched);
      },
      onRefused: (refused) => {
        this.metrics.issuers.onRefused(refused);
        this.refusedTokens.push(refused);
        refusedTokenLog.record(refused);
      },
    });
    this.#app = createApp({
      store: this.storage.customers,
      audit: this.storage.audit,
      tokens: this.storage.tokens,
      signIn: this.signIn,
      requireReady: () => this.storage.ping(),
      policy: () => this.#policy,
      metrics: this.metrics,
      limits: new CallerLimits(this.metrics.limits, 0),
      metricsArePublic,
      cors: new Cors(options.corsOrigins ?? [], options.corsHeaders ?? []),
      publicUrl: options.publicUrl ?? "",
      changesWaitMs: options.changesWaitMs ?? 60_000,
      trustedProxies:
        options.trustedProxies === undefined ? null : new TrustedProxies(options.trustedProxies),
      log,
      now: this.#now,
      isStopping: () => false,
      closesConnections: () => false,
    });
    this.#app.listen({ hostname: "127.0.0.1", port: 0 });
    this.port = this.#app.server?.port ?? 0;
    this.url = `http://127.0.0.1:${this.port}`;
  }

  static async start({ storage, ...options }: TestServiceOptions = {}): Promise<TestService> {
    return new TestService(storage ?? (await ANY_WAY.open(crypto.randomUUID())), options);
  }

  /** Replaces the policy, as a reload does. */
  reload(policy: string): void {
    this.#policy = policyOf(policy);
  }

  /** A token of this caller; the same one for the same caller. `monitor` belongs to no tenant. */
  token({
    role = "admin",
    client = "test",
    tenant = "acme",
    scope,
  }: Partial<TokenHolder> = {}): Promise<string> {
    const caller: TokenHolder = { role, client, tenant: role === "monitor" ? null : tenant, scope };
    const key = JSON.stringify(caller);
    const token =
      this.#tokens.get(key) ??
      this.storage.tokens.create(caller, this.#now(), null).then((created) => created.token);
    this.#tokens.set(key, token);
    return token;
  }

  /** Sends one request. @param caller whose token to send, null for none */
  async send(
    method: string,
    path: string,
    {
      headers = {},
      body,
      caller = {},
    }: { headers?: Record<string, string>; body?: unknown; caller?: Partial<TokenHolder> | null } = {},
  ): Promise<Reply> {
    const authorization: Record<string, string> =
      caller === null ? {} : { authorization: `Bearer ${await this.token(caller)}` };
    const isText = typeof body === "string" || body instanceof Uint8Array || body === undefined;
    const response = await fetch(`${this.url}${path}`, {
      method,
      redirect: "manual",
      headers: { ...(isText ? {} : { "content-type": "application/json" }), ...authorization, ...headers },
      ...(body === undefined ? {} : { body: isText ? (body as string) : JSON.stringify(body) }),
    });
    const reply = await replyOf(response);
    // Whatever a test is about, no reply may have what the OpenAPI document does not describe.
    for (const sighting of sightingsOf(method, path, reply)) this.sightings.add(sighting);
    return reply;
  }

  /** Makes a customer in the tenant of the default caller, or of `caller`. @returns its id and entity-tag */
  async customer(
    fields: { name?: string; email?: string; status?: string } = {},
    caller: Partial<TokenHolder> = {},
  ): Promise<{ id: string; etag: string; path: string }> {
    const reply = await this.send("POST", "/customers?fields=id", {
      body: { name: "Ada", email: "ada@example.com", ...fields },
      caller,
    });
    if (reply.status !== 201) throw new Error(`no customer was made: ${reply.status} ${reply.text}`);
    const id = reply.json.id as string;
    return { id, etag: reply.etag, path: `/customers/${id}` };
  }

  async stop(): Promise<void> {
    await this.#app.stop(true);
    this.signIn.stop();
    await this.writeCounter.stop();
    await this.storage.close();
  }
}

function policyOf(text: string): Policy {
  const result = readPolicyText(text);
  if (!result.ok) throw new Error(result.faults.join("\n"));
  return result.policy;
}

export async function replyOf(response: Response): Promise<Reply> {
  const text = await response.text();
  const isJson = /json/.test(response.headers.get("content-type") ?? "") && text !== "";
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson ? JSON.parse(text) : undefined,
    etag: response.headers.get("etag") ?? "",
  };
}

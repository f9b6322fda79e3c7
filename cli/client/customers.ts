/**
 * `customers/client`: customers over HTTP, safe under concurrent writers. A write reads, sends the tag that
 * it read (If-Match), and on a conflict reads and sends again; after a lost reply it finds out what became
 * of the write.
 */
import { type Created, createUntilDecided } from "./creation.ts";
import type { Customer } from "./customer.ts";
import { eachHistoryPage, type HistoryEntry, historyEntry } from "./customer-history.ts";
import { CustomersError, demand, type Written } from "./customers-error.ts";
import { exactValues, type Fields } from "./field-values.ts";
import { type Casing, changeIntent, deletionIntent, type WriteIntent } from "./loop/intent.ts";
import { writeUntilDecided } from "./loop/loop.ts";
import type { OnConflict } from "./loop/write-job.ts";
import { isDone } from "./loop/write-outcome.ts";
import { eachPage } from "./pages.ts";
import { type Ports, type Reading, readCurrent, readUnless } from "./read-customer.ts";
import { startDeadline } from "./wire/deadline.ts";
import { fetchTransport } from "./wire/fetch-transport.ts";
import type { Transport } from "./wire/reply.ts";
import { canBeId, createCustomer } from "./wire/request.ts";
import { isReservedHeader } from "./wire/reserved-headers.ts";

export type { Customer, CustomerData } from "./customer.ts";
export type { HistoryEntry } from "./customer-history.ts";
export { CustomersError, type CustomersFailure, type Written } from "./customers-error.ts";
export type { Fields, Value } from "./field-values.ts";
export { JsonNumber } from "./json.ts";
export type { FieldConflict } from "./loop/field-conflicts.ts";
export type { OnConflict } from "./loop/write-job.ts";
export type { NamedChange } from "./named-changes.ts";
export type { Reply, Transport } from "./wire/reply.ts";

export type CustomersOptions = {
  /** The base URL, before /customers: http or https, without credentials, a query or a fragment. */
  url: string;
  /** Sent as `Authorization: Bearer …`. */
  token?: string | undefined;
  /**
   * Sent with every request, for deployments with another scheme. Headers that the library sets itself are refused, such
   * as If-Match and Content-Length; Content-Type, Accept and Prefer of a request replace those given here.
   */
  headers?: Readonly<Record<string, string>> | undefined;
  /** For each call that names none; 30,000 unless given. See CallOptions. */
  timeoutMs?: number | undefined;
  /** How this deployment spells members that it has not shown yet: `name` or `Name`. */
  casing?: Casing | undefined;
  /** The deployment honours Idempotency-Key: a creation is then repeated after a lost reply. */
  idempotencyKeysHonoured?: boolean | undefined;
  /**
   * In place of the runtime's own, which is looked up when `openCustomers` is called: for a proxy, say. It must neither
   * follow redirects nor repeat requests by itself. Where it rejects without a code such as ECONNREFUSED, the request
   * counts as sent: a reading then decides about a write, and a creation ends as `unknown-outcome`.
   */
  fetch?: typeof globalThis.fetch | undefined;
  /** In place of `fetch`. */
  transport?: Transport | undefined;
};

export type CallOptions = {
  /**
   * At least 0, in milliseconds, for the whole call with its retries and waits; of `list` and `history`, for each page.
   * That of `openCustomers` unless given. When it passes, a reading fails as `unreachable` or with the last refusal, a
   * write or a creation that may have been applied as `unknown-outcome`.
   */
  timeoutMs?: number | undefined;
  /** Ends the call early: `interrupted`, or `unknown-outcome` where a write may have been applied. */
  signal?: AbortSignal | undefined;
};

export type ReadOptions = CallOptions & {
  /** Names of fields, in any case; the server's default set unless given. An unknown one is the failure `invalid`. */
  fields?: readonly string[] | undefined;
};

export type ListOptions = ReadOptions & {
  /**
   * Customers with this status alone; case makes no difference. A deployment may refuse a status that it does not know
   * (`invalid`). One that ignores the filter is the failure `unfiltered`.
   */
  status?: string | undefined;
  /**
   * Customers with this address alone; case makes no difference. It is sent in the body of a search, so that it does not
   * end in the logs of URLs; where a deployment has no search, the failure is `not-found` or `not-offered`.
   */
  email?: string | undefined;
  /**
   * Customers of one request, a positive integer; the deployment's choice unless given. It changes how many requests are
   * made, not how many customers come. One that is too large for the deployment is the failure `invalid`.
   */
  pageSize?: number | undefined;
};

export type CreateOptions = CallOptions & {
  /** 1 to 255 visible ASCII characters: names this creation, so that repeating it creates once. */
  idempotencyKey?: string | undefined;
};

export type WriteOptions = CallOptions & {
  /**
   * When someone else wrote in between: `merge` (unless given) goes on where no field of this change was
   * changed, `reapply` sets it even if someone else wrote last, `fail` stops.
   */
  onConflict?: OnConflict | undefined;
  /**
   * Stops unless these fields have these values, at every reading: of many who expect the same, one
   * succeeds.
   */
  expect?: Readonly<Record<string, string>> | undefined;
  /** Writes this version or none. */
  ifMatch?: string | undefined;
  /** Writes that are sent at most. */
  attemptsMax?: number | undefined;
};

/** Every method throws a CustomersError where it does not reach what it is for, of kind `usage` for arguments that can't be sent. */
export type Customers = {
  /** The customer as it is now, never from a cache. */
  get(id: string, options?: ReadOptions): Promise<Customer>;
  /** Undefined where `tag` is still the current one. */
  getIfChanged(id: string, tag: string, options?: ReadOptions): Promise<Customer | undefined>;
  /** Every customer, page by page as they are taken. After a failure, what came is a part of the list. */
  list(options?: ListOptions): AsyncGenerator<Customer, void>;
  /**
   * Who changed the customer, the newest change first, page by page as they are taken. The failure is
   * `forbidden` without the operation `history`, and `not-offered` where a deployment has no history.
   */
  history(
    id: string,
    options?: CallOptions & { pageSize?: number | undefined },
  ): AsyncGenerator<HistoryEntry, void>;
  /**
   * A creation has no version to depend on, so it is sent again only where that creates nothing twice: where the request
   * never left, after 429, and after a lost reply with `idempotencyKeysHonoured`. Else the failure is `unknown-outcome`: the
   * customer may exist, and repeating the call with the same `idempotencyKey` is safe where the deployment honours keys.
   */
  create(fields: Fields, options?: CreateOptions): Promise<Created>;
  /**
   * Sets the named fields; all others keep what they hold. A change of name, email or both is sent as a PUT, which every
   * deployment has (specification 4.2), anything else as a PATCH.
   */
  update(id: string, fields: Fields, options?: WriteOptions): Promise<Written>;
  delete(id: string, options?: WriteOptions): Promise<Written>;
};

const TIMEOUT_MS = 30_000;

/** Throws a TypeError for a URL, token or header that can't be sent; the message names the option, never its value. */
export function openCustomers(options: CustomersOptions): Customers {
  const { url, token, headers, casing = "lower", fetch = globalThis.fetch } = options;
  const sent: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  demandOption(canBeHeaders(sent), "token: holds a character that a header can't carry");
  demandOption(
    canBeHeaders(headers),
    "headers: a name or a value holds a character that a header can't carry",
  );
  for (const name of Object.keys(headers ?? {})) {
    demandOption(!isReservedHeader(name), `headers: ${name} may not be given: the client decides it`);
    const twice = token !== undefined && name.toLowerCase() === "authorization";
    demandOption(!twice, `headers: ${name} is given by token already`);
  }
  const transport = options.transport ?? fetchTransport({ url, headers: { ...sent, ...headers }, fetch });
  const ports = ({ timeoutMs = options.timeoutMs ?? TIMEOUT_MS, signal }: CallOptions): Ports => {
    demand(timeoutMs >= 0, `timeoutMs must be at least 0, not ${timeoutMs}`);
    // One of its own for each call: Node warns of more than ten listeners on one signal.
    const interrupted = AbortSignal.any(signal === undefined ? [] : [signal]);
    return { transport, deadline: startDeadline(timeoutMs, interrupted) };
  };

  const checked = (id: string): string => {
    demand(typeof id === "string" && canBeId(id), `"${id}" is not a customer id`);
    return id;
  };

  const shown = (id: string, reading: Reading): Customer => {
    if (reading.kind === "read") return reading.customer;
    throw new CustomersError(`customer ${id}`, reading);
  };

  async function write(
    id: string,
    intent: WriteIntent,
    call: WriteOptions,
    asksForChanges: boolean,
  ): Promise<Written> {
    const { onConflict = "merge", ifMatch, attemptsMax } = call;
    const known = ["merge", "reapply", "fail"].includes(onConflict);
    demand(known, `onConflict must be merge, reapply or fail, not "${onConflict}"`);
    const some = attemptsMax === undefined || attemptsMax >= 1;
    demand(some, `attemptsMax must be at least 1, not ${attemptsMax}`);
    const expect = Object.entries(call.expect ?? {}).map(([field, value]) => ({ field, value }));
    const job = {
      id: checked(id),
      intent,
      onConflict,
      expect,
      ifMatch,
      maxAttempts: attemptsMax,
      asksForChanges,
    };
    const outcome = await writeUntilDecided(ports(call), job);
    if (isDone(outcome)) return outcome;
    throw new CustomersError(`customer ${id}`, outcome);
  }

  return {
    async get(id, call = {}) {
      demandWhole("fields", call.fields);
      return shown(id, await readCurrent(ports(call), checked(id), { fields: call.fields }));
    },
    async getIfChanged(id, tag, call = {}) {
      demandWhole("fields", call.fields);
      demand(canBeHeaders({ "if-none-match": tag }), "tag holds a character that a header can't carry");
      const reading = await readUnless(ports(call), checked(id), tag, call.fields);
      return reading.kind === "not-modified" ? undefined : shown(id, reading);
    },
    async *list(call = {}) {
      const { status, email, fields, pageSize } = call;
      demandPageSize(pageSize);
      demandWhole("fields", fields);
      demandWhole("status", [status]);
      for await (const page of eachPage(() => ports(call), { status, email, fields, limit: pageSize })) {
        if (page.kind !== "page") throw new CustomersError("customers", page);
        yield* page.items;
      }
    },
    async *history(id, call = {}) {
      demandPageSize(call.pageSize);
      for await (const page of eachHistoryPage(() => ports(call), checked(id), call.pageSize)) {
        if (page.kind !== "page") throw new CustomersError(`history of customer ${id}`, page);
        yield* page.items.map(historyEntry);
      }
    },
    async create(fields, call = {}) {
      const { idempotencyKey = crypto.randomUUID() } = call;
      const sendable = /^[!-~]{1,255}$/.test(idempotencyKey);
      demand(sendable, "idempotencyKey must be 1 to 255 visible ASCII characters");
      const request = createCustomer(exactValues(fields), idempotencyKey);
      const creation = await createUntilDecided(ports(call), request, options.idempotencyKeysHonoured);
      if (creation.kind === "created") return creation;
      throw new CustomersError("creation", creation);
    },
    update: async (id, fields, call = {}) => {
      const alsoRead = Object.keys(call.expect ?? {});
      const change = exactValues(fields);
      const intent = changeIntent({ id, change, alsoRead, casing, representation: true });
      return write(id, intent, call, true);
    },
    delete: async (id, call = {}) => {
      // Without Prefer: in a page of another origin the deployment would have to allow the header (CORS).
      return write(id, deletionIntent(id, Object.keys(call.expect ?? {})), call, false);
    },
  };
}

/** The message names the option, never its value: that may be a secret. */
function demandOption(ok: boolean, mistake: string): void {
  if (!ok) throw new TypeError(mistake);
}

function demandPageSize(size: number | undefined): void {
  const ok = size === undefined || (Number.isSafeInteger(size) && size >= 1);
  demand(ok, `pageSize must be a positive integer, not ${size}`);
}

/** Half of a surrogate pair has no UTF-8, so no URL can carry it. */
function demandWhole(option: string, texts: readonly (string | undefined)[] = []): void {
  demand(
    texts.every((text = "") => typeof text === "string" && text.isWellFormed()),
    `${option} must be well-formed text`,
  );
}

/** The error of `Headers` itself quotes the value, which is a secret. */
function canBeHeaders(headers: Readonly<Record<string, string>> | undefined): boolean {
  try {
    new Headers(headers);
    return true;
  } catch {
    return false;
  }
}

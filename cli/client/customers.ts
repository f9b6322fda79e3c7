/**
 * `customers/client`: customers over HTTP, safe under concurrent writers. A write reads, sends the tag that
 * it read (If-Match), and on a conflict reads and sends again; after a lost reply it finds out what became
 * of the write.
 */
import { type Created, type CreationStopped, createUntilDecided } from "./creation.ts";
import { type Customer, parseJsonOrUndefined, plainText } from "./customer.ts";
import { eachHistoryPage, type HistoryEntry, historyEntry } from "./customer-history.ts";
import { isJsonArray, isJsonObject, type Json, JsonNumber } from "./json.ts";
import { type Casing, changeIntent, deletionIntent, type WriteIntent } from "./loop/intent.ts";
import { writeUntilDecided } from "./loop/loop.ts";
import type { OnConflict } from "./loop/write-job.ts";
import { isDone, type WriteOutcome } from "./loop/write-outcome.ts";
import { eachPage, type ListFailure } from "./pages.ts";
import { type Ports, type Reading, readCurrent, readUnless } from "./read-customer.ts";
import type { ReadRefusal } from "./refusal.ts";
import { startDeadline } from "./wire/deadline.ts";
import { fetchTransport } from "./wire/fetch-transport.ts";
import type { Transport } from "./wire/reply.ts";
import { canBeId, createCustomer } from "./wire/request.ts";

export type { Customer, CustomerData } from "./customer.ts";
export type { HistoryEntry } from "./customer-history.ts";
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
  /** For deployments with another scheme. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** For each call with all of its retries; 30,000 unless given. */
  timeoutMs?: number | undefined;
  /** How this deployment spells members that it has not shown yet: `name` or `Name`. */
  casing?: Casing | undefined;
  /** The deployment honours Idempotency-Key: a creation is then repeated after a lost reply. */
  idempotencyKeysHonoured?: boolean | undefined;
  fetch?: typeof globalThis.fetch | undefined;
  /** In place of `fetch`. */
  transport?: Transport | undefined;
};

export type CallOptions = { timeoutMs?: number | undefined; signal?: AbortSignal | undefined };

export type ReadOptions = CallOptions & {
  /** The server's default set unless given. */
  fields?: readonly string[] | undefined;
};

export type ListOptions = ReadOptions & {
  status?: string | undefined;
  email?: string | undefined;
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

/** What a value may be: `JsonNumber` where its digits must stay as they are. */
export type Value =
  | null
  | boolean
  | string
  | number
  | JsonNumber
  | readonly Value[]
  | { readonly [name: string]: Value };
/** Named fields and their new values; null removes a member (RFC 7396). */
export type Fields = Readonly<Record<string, Value>>;

/** `written`: a reply said so. `as-wanted`: the customer is so, and no reply says that this is our doing. */
export type Written = Extract<WriteOutcome, { kind: "written" | "unchanged" | "as-wanted" }>;

/** Why a call failed, by `kind`; of a conflict, `changes` names who else wrote, where the server says it. All but `unknown-outcome`: nothing of the call was applied. */
export type CustomersFailure = Exclude<WriteOutcome, Written> | ReadRefusal | ListFailure | CreationStopped;

export class CustomersError extends Error {
  readonly failure: CustomersFailure;

  constructor(what: string, failure: CustomersFailure) {
    super(`${what}: ${inWords(failure)}`);
    this.name = "CustomersError";
    this.failure = failure;
  }
}

/** Every method throws a CustomersError where it does not reach what it is for. */
export type Customers = {
  get(id: string, options?: ReadOptions): Promise<Customer>;
  /** Undefined where `tag` is still the current one. */
  getIfChanged(id: string, tag: string, options?: ReadOptions): Promise<Customer | undefined>;
  /** Every customer, page by page as they are taken. */
  list(options?: ListOptions): AsyncGenerator<Customer, void>;
  /**
   * Who changed the customer, the newest change first, page by page as they are taken. The failure is
   * `forbidden` without the operation `history`, and `not-offered` where a deployment has no history.
   */
  history(
    id: string,
    options?: CallOptions & { pageSize?: number | undefined },
  ): AsyncGenerator<HistoryEntry, void>;
  create(fields: Fields, options?: CreateOptions): Promise<Created>;
  /** Sets the named fields. */
  update(id: string, fields: Fields, options?: WriteOptions): Promise<Written>;
  /** Sets name and email, which every deployment can (specification 4.2). */
  replace(id: string, fields: { name: string; email: string }, options?: WriteOptions): Promise<Written>;
  delete(id: string, options?: WriteOptions): Promise<Written>;
};

const TIMEOUT_MS = 30_000;

/** Throws a TypeError for a URL, token or header that can't be sent; the message names the option, never its value. */
export function openCustomers(options: CustomersOptions): Customers {
  const { url, token, headers, casing = "lower", fetch = globalThis.fetch } = options;
  const sent: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  demand(canBeHeaders(sent), "token: holds a character that a header can't carry");
  demand(canBeHeaders(headers), "headers: a name or a value holds a character that a header can't carry");
  const transport = options.transport ?? fetchTransport({ url, headers: { ...sent, ...headers }, fetch });
  const ports = ({ timeoutMs = options.timeoutMs ?? TIMEOUT_MS, signal }: CallOptions): Ports => {
    demand(timeoutMs >= 0, `timeoutMs: ${timeoutMs} is no time in milliseconds`);
    // One of its own for each call: Node warns of more than ten listeners on one signal.
    const interrupted = AbortSignal.any(signal === undefined ? [] : [signal]);
    return { transport, deadline: startDeadline(timeoutMs, interrupted) };
  };

  const checked = (id: string): string => {
    demand(canBeId(id), `"${id}" is not a customer id`);
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
    demand(["merge", "reapply", "fail"].includes(onConflict), `onConflict: "${onConflict}" is unknown`);
    demand(attemptsMax === undefined || attemptsMax >= 1, `attemptsMax: ${attemptsMax} is less than 1`);
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

  function change(id: string, fields: Fields, call: WriteOptions): Promise<Written> {
    const alsoRead = Object.keys(call.expect ?? {});
    const intent = changeIntent({ id, change: members(fields), alsoRead, casing, representation: true });
    return write(id, intent, call, true);
  }

  return {
    async get(id, call = {}) {
      return shown(id, await readCurrent(ports(call), checked(id), { fields: call.fields }));
    },
    async getIfChanged(id, tag, call = {}) {
      const reading = await readUnless(ports(call), checked(id), tag, call.fields);
      return reading.kind === "not-modified" ? undefined : shown(id, reading);
    },
    async *list(call = {}) {
      const { status, email, fields, pageSize } = call;
      for await (const page of eachPage(() => ports(call), { status, email, fields, limit: pageSize })) {
        if (page.kind !== "page") throw new CustomersError("customers", page);
        yield* page.items;
      }
    },
    async *history(id, call = {}) {
      for await (const page of eachHistoryPage(() => ports(call), checked(id), call.pageSize)) {
        if (page.kind !== "page") throw new CustomersError(`history of customer ${id}`, page);
        yield* page.items.map(historyEntry);
      }
    },
    async create(fields, call = {}) {
      const request = createCustomer(members(fields), call.idempotencyKey ?? crypto.randomUUID());
      const creation = await createUntilDecided(ports(call), request, options.idempotencyKeysHonoured);
      if (creation.kind === "created") return creation;
      throw new CustomersError("creation", creation);
    },
    update: async (id, fields, call = {}) => change(id, fields, call),
    replace: async (id, { name, email }, call = {}) => change(id, { name, email }, call),
    delete: async (id, call = {}) => {
      // Without Prefer: in a page of another origin the deployment would have to allow the header (CORS).
      return write(id, deletionIntent(id, Object.keys(call.expect ?? {})), call, false);
    },
  };
}

/** A mistake of the program, such as a variable that was never set; no reply could say so. */
function demand(ok: boolean, mistake: string): void {
  if (!ok) throw new TypeError(mistake);
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

function members(fields: Fields): ReadonlyMap<string, Json> {
  return new Map(
    Object.entries(fields).map(([field, value]) => {
      demand(value !== undefined, `"${field}" is undefined`);
      return [field, exact(value)];
    }),
  );
}

/** As JSON whose numbers keep their digits. */
function exact(value: Value): Json {
  if (typeof value === "number") return new JsonNumber(String(value));
  if (value === null || typeof value !== "object" || value instanceof JsonNumber) return value;
  return isJsonArray<Value>(value) ? value.map(exact) : members(value);
}

function inWords(failure: CustomersFailure): string {
  const { kind } = failure;
  const reply = "unclear" in failure ? failure.unclear : "reply" in failure && failure.reply;
  if (!reply) return kind;
  if (reply.kind !== "complete") return `${kind}: ${reply.detail}`;
  const problem = parseJsonOrUndefined(reply.text);
  const detail = isJsonObject(problem) && problem.get("detail");
  return `${kind} (${reply.status})${detail ? `: ${plainText(detail)}` : ""}`;
}

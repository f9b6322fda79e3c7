import { expect } from "bun:test";
import { type RawConnection, rawRequest } from "../support/http/raw-connection.ts";
import type { RawReply } from "../support/http/raw-exchange.ts";
import { ADA, type QueryCase, type Verdict } from "./arbitrary-requests.ts";
import { type Step, TENANTS } from "./arbitrary-steps.ts";
import {
  CustomerModel,
  earlyRefusal,
  lateRefusal,
  type ModelCaller,
  projected,
  type Sent,
} from "./customer-model.ts";
import { expectCreated, expectRead, expectRefusal } from "./model-expectations.ts";

const ALL = ["id", "name", "email", "status"];
const WRITES = ["create", "replace", "patch", "delete"];
export const ROLES: Readonly<Record<string, Pick<ModelCaller, "read" | "operations">>> = {
  admin: { read: ALL, operations: ["get", "list", ...WRITES] },
  clerk: { read: ["id", "name"], operations: ["get", "list", "create", "replace", "patch"] },
  viewer: { read: ALL, operations: ["get", "list"] },
  blind: { read: [], operations: ["get", "list", ...WRITES] },
  monitor: { read: [], operations: ["metrics"] },
};
const ROLE_TABLES = Object.entries(ROLES).map(
  ([role, { read, operations }]) =>
    `[roles.${role}]\nread = ${JSON.stringify(read)}\noperations = ${JSON.stringify(operations)}\n`,
);
/** The roles as rows, and no limit of wrong tokens, which the model does not know. */
export const POLICY = `${ROLE_TABLES.join("")}[limits.address]\nunlimited = true\n`;

const FIRST: Omit<Step<"create">, "caller"> = {
  kind: "create",
  query: { query: "", fields: null },
  body: ADA,
  key: null,
  hours: 0,
};

/** Makes the token of a caller, or gives the one that it made. */
type ModelTokens = { token(caller: { role: string; tenant: string }): Promise<string> };

/** A request of one customer as it was sent, to be sent again. */
type CustomerRequest = Omit<Step<"customer">, "kind" | "target" | "tag" | "noneMatch"> & {
  readonly id: string;
  readonly ifMatch: readonly string[];
  readonly noneMatch: string | null;
};

/** The first outcome under an idempotency key, and the request that had it. */
type KeptOutcome = {
  readonly request: string;
  readonly expiresMs: number;
  readonly outcome: Outcome;
  /** Whose fields the outcome may show; null where the request itself says them. */
  readonly of: string | null;
};
type Outcome = {
  readonly status: number;
  readonly etag: string | undefined;
  readonly location: string | undefined;
  readonly body: string;
};

/** One run: the steps one after another against the service and the model, each answer compared. */
export class ModelRun {
  readonly #number: number;
  readonly #tokens: ModelTokens;
  readonly #connection: Pick<RawConnection, "send">;
  readonly #clock: { nowMs: number };
  readonly #model = new CustomerModel();
  readonly #kept = new Map<string, KeptOutcome>();
  #last: CustomerRequest | null = null;

  constructor(
    number: number,
    tokens: ModelTokens,
    connection: Pick<RawConnection, "send">,
    clock: { nowMs: number },
  ) {
    this.#number = number;
    this.#tokens = tokens;
    this.#connection = connection;
    this.#clock = clock;
  }

  /** Two customers for each tenant. */
  async begin(): Promise<void> {
    for (const tenant of [...TENANTS, ...TENANTS]) {
      await this.#create({ ...FIRST, caller: { role: "admin", tenant } });
    }
  }

  async take(step: Step<"customer" | "again" | "create" | "pages">): Promise<void> {
    if (step.kind === "create") return this.#create(step);
    if (step.kind === "pages") return this.#pages(step);
    if (step.kind === "customer") this.#last = this.#request(step);
    if (this.#last !== null) return this.#customer(this.#last);
  }

  /** The request of a step, its tags taken from what is stored now. */
  #request({ target, tag, noneMatch, ...step }: Step<"customer">): CustomerRequest {
    const id = this.#id(target);
    const { tenant } = this.#caller(step.caller);
    const current = this.#model.of(tenant).get(id.toLowerCase())?.tag;
    const other = this.#tag(target.pick);
    return {
      ...step,
      id,
      ifMatch: tag.lines(current ?? other, other),
      noneMatch: noneMatch.line(current ?? '"x"'),
    };
  }

  async #customer(request: CustomerRequest): Promise<void> {
    const { method, id, query, body, ifMatch, noneMatch, prefers, key } = request;
    const caller = this.#caller(request.caller);
    const customer = this.#model.of(caller.tenant).get(id.toLowerCase()) ?? null;
    const isRead = method === "GET" || method === "HEAD";
    const reply = await this.#send(
      method,
      `/customers/${id}?${query.query}`,
      request.caller,
      [
        ...ifMatch.map((line) => `If-Match: ${line}`),
        ...(noneMatch === null ? [] : [`If-None-Match: ${noneMatch}`]),
        ...(prefers ? ["Prefer: return=representation"] : []),
        ...(key === null ? [] : [`Idempotency-Key: ${key.sent}`]),
        ...(isRead || body.contentType === null ? [] : [`Content-Type: ${body.contentType}`]),
      ],
      isRead ? null : body.bytes(id),
    );
    // What a DELETE carries means nothing, but may not be too long either.
    const ofDelete: Verdict = method === "DELETE" && body.verdict.PUT === 413 ? 413 : {};
    const verdict = method === "PUT" || method === "PATCH" ? body.verdict[method] : ofDelete;
    const noneMatches = customer !== null && namesTag(noneMatch, customer.tag);
    const sent: Sent = { caller, method, ifMatch, noneMatches, query, customer, verdict };
    const early = earlyRefusal(sent);
    if (early !== null) return expectRefusal(reply, early, method, customer);
    const shown = prefers ? shownBy(query.fields) : "none";
    const set = typeof verdict === "number" ? verdict : FIELDS.map((name) => verdict[name]);
    const canonical = [method, id.toLowerCase(), ifMatch.join(", ").trim(), noneMatch?.trim(), set, shown];
    const isKeyed = key !== null && !isRead && UUID.test(id);
    const owner = isKeyed ? ownerOf(request.caller, key.meant) : null;
    if (this.#isReplayed(owner, canonical, reply, method)) return;
    const late = lateRefusal(sent);
    if (late !== null) return expectRefusal(reply, late, method, customer);
    if (customer === null || typeof verdict === "number") throw new Error("the model refuses neither");
    if (isRead) {
      // A copy from before a field of the default set was hidden must not be confirmed.
      const isNarrowed =
        query.fields === null && !["id", "name", "email"].every((name) => caller.read.includes(name));
      return expectRead(
        reply,
        method,
        customer,
        projected(customer, caller, query),
        noneMatches && !isNarrowed,
      );
    }
    expect(reply.headers.get("idempotency-replayed")).toBeUndefined();
    if (method === "DELETE") {
      this.#model.remove(caller.tenant, customer.id);
      this.#forgetBodies(customer.id);
      expect([reply.status, reply.body, reply.headers.get("etag")]).toEqual([204, "", undefined]);
      return this.#keep(owner, canonical, reply);
    }
    const next = { ...customer, ...verdict, tag: this.#newTag(reply) };
    this.#model.put(caller.tenant, next);
    this.#keep(owner, canonical, reply, customer.id);
    if (!prefers) {
      expect([reply.status, reply.body]).toEqual([204, ""]);
      return;
    }
    expect([reply.status, reply.headers.get("preference-applied")]).toEqual([200, "return=representation"]);
    expect(JSON.parse(reply.body)).toStrictEqual(projected(next, caller, query));
  }

  async #create(step: Step<"create">): Promise<void> {
    this.#clock.nowMs += step.hours * 3_600_000;
    const { query, body, key } = step;
    const caller = this.#caller(step.caller);
    const reply = await this.#send(
      "POST",
      `/customers?${query.query}`,
      step.caller,
      [
        ...(key === null ? [] : [`Idempotency-Key: ${key.sent}`]),
        ...(body.contentType === null ? [] : [`Content-Type: ${body.contentType}`]),
      ],
      body.bytes("01a00000-0000-7000-8000-000000000000"),
    );
    const verdict = body.verdict.POST;
    const sent = {
      caller,
      method: "POST",
      ifMatch: [],
      noneMatches: false,
      query,
      customer: undefined,
      verdict,
    } as const;
    const early = earlyRefusal(sent);
    if (early !== null) return expectRefusal(reply, early, "POST", null);
    const owner = key === null ? null : ownerOf(step.caller, key.meant);
    const set =
      typeof verdict === "number"
        ? verdict
        : { name: verdict.name ?? "?", email: verdict.email ?? "?", status: verdict.status ?? "active" };
    const canonical = ["POST", set, shownBy(query.fields)];
    if (this.#isReplayed(owner, canonical, reply, "POST")) return;
    const late = lateRefusal(sent);
    if (late !== null || typeof set === "number") return expectRefusal(reply, late ?? "?", "POST", null);
    expect([reply.status, reply.headers.get("idempotency-replayed")]).toEqual([201, undefined]);
    const id = (reply.headers.get("location") ?? "").slice("/customers/".length);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(this.#model.ids).not.toContain(id);
    const made = { ...set, id, tag: this.#newTag(reply) };
    this.#model.put(caller.tenant, made);
    this.#keep(owner, canonical, reply);
    expectCreated(reply, made, projected(made, caller, query));
  }

  /**
   * Whether a key decides the answer, which is then the first
   * outcome again, or that another request had the key.
   */
  #isReplayed(owner: string | null, request: readonly unknown[], reply: RawReply, method: string): boolean {
    const kept = owner === null ? undefined : this.#kept.get(owner);
    if (kept === undefined || kept.expiresMs <= this.#clock.nowMs) return false;
    if (kept.request !== JSON.stringify(request)) {
      expectRefusal(reply, "idempotency-key-reused", method, null);
      return true;
    }
    expect(reply.headers.get("idempotency-replayed")).toBe("true");
    expect(outcomeOf(reply)).toEqual(kept.outcome);
    return true;
  }

  #keep(owner: string | null, request: readonly unknown[], reply: RawReply, of: string | null = null): void {
    if (owner === null) return;
    const expiresMs = this.#clock.nowMs + 24 * 3_600_000;
    this.#kept.set(owner, { request: JSON.stringify(request), expiresMs, outcome: outcomeOf(reply), of });
  }

  /** No field outlives its customer. */
  #forgetBodies(id: string): void {
    for (const [owner, kept] of this.#kept) {
      if (kept.of === id)
        this.#kept.set(owner, { ...kept, outcome: { ...kept.outcome, status: 204, body: "" } });
    }
  }

  /**
   * Follows `next` to the end: each customer once, in the order of creation, whichever way it is asked for.
   */
  async #pages(step: Step<"pages">): Promise<void> {
    const { query, limit, status } = step;
    const caller = this.#caller(step.caller);
    const customers = [...this.#model.of(caller.tenant).values()];
    const email = typeof step.email === "number" ? (customers[step.email]?.email ?? null) : step.email;
    const filtered = [...(status === null ? [] : ["status"]), ...(email === null ? [] : ["email"])];
    const code = listRefusal(caller, query.fields, filtered);
    const filter = { limit, ...(status === null ? {} : { status }), ...(email === null ? {} : { email }) };
    const found: unknown[] = [];
    let pages = 0;
    for (let cursor: string | null = null; pages === 0 || cursor !== null; pages += 1) {
      const wanted = { ...filter, ...(cursor === null ? {} : { cursor }) };
      const reply = await this.#page(step, wanted);
      if (code !== null) return expectRefusal(reply, code, "GET", null);
      expect(reply.status).toBe(200);
      const { items, next } = JSON.parse(reply.body) as { items: unknown[]; next: string | null };
      const link = reply.headers.get("link");
      if (email === null) expect(link?.includes(`cursor=${next}`) ?? false).toBe(next !== null);
      found.push(...items);
      cursor = next;
      expect(pages).toBeLessThan(1000);
    }
    const wanted = customers.filter(
      (one) =>
        (status ?? one.status) === one.status &&
        (email ?? one.email).toLowerCase() === one.email.toLowerCase(),
    );
    expect(found).toStrictEqual(
      wanted.map((one) => ({ etag: one.tag, customer: projected(one, caller, query) })),
    );
    expect(pages).toBe(Math.max(1, Math.ceil(wanted.length / limit)));
  }

  /**
   * One page: by the query string, or where it is filtered by email, which stays out of URLs, by a search.
   */
  #page({ caller, query }: Step<"pages">, wanted: Record<string, string | number>): Promise<RawReply> {
    if (wanted["email"] !== undefined) {
      const lines = ["Content-Type: application/json"];
      const body = Buffer.from(JSON.stringify(wanted));
      return this.#send("POST", `/customers/search?${query.query}`, caller, lines, body);
    }
    const parameters = Object.entries(wanted).map(([name, value]) => `${name}=${value}`);
    const path = `/customers?${[...parameters, query.query].filter((part) => part !== "").join("&")}`;
    return this.#send("GET", path, caller, [], null);
  }

  /** What is stored is what the model says, tags included: no refused write left a trace. */
  async audit(): Promise<void> {
    for (const tenant of TENANTS) {
      await this.#pages({
        kind: "pages",
        caller: { role: "admin", tenant },
        query: { query: "fields=id,name,email,status", fields: ALL },
        limit: 500,
        status: null,
        email: null,
      });
    }
  }

  #caller({ role, tenant }: { role: string | null; tenant: string }): ModelCaller {
    const rights = ROLES[role ?? ""] ?? { read: [], operations: [] };
    return { role, tenant: `${tenant}-${this.#number}`, ...rights };
  }

  #id({ kind, pick }: { kind: string; pick: number }): string {
    const ids = [...this.#model.ids];
    const id = ids[pick % Math.max(1, ids.length)] ?? "01a00000-0000-7000-8000-000000000000";
    if (kind === "never made") return "01a00000-0000-7000-8000-00000000ffff";
    if (kind === "malformed")
      return ["x", "%zz", `${id}0`, id.replaceAll("-", ""), `%7B${id}%7D`][pick % 5] ?? "x";
    return kind === "upper case" ? id.toUpperCase() : id;
  }

  /** Some tag that was once sent: of this customer or of another, now or before. */
  #tag(pick: number): string {
    const { tags } = this.#model;
    return tags[pick % Math.max(1, tags.length)] ?? '"BBBBBBBBBBBBBBBB"';
  }

  #newTag(reply: RawReply): string {
    const tag = reply.headers.get("etag") ?? "";
    expect(tag).toMatch(/^"[A-Za-z0-9_-]{16}"$/);
    expect(this.#model.tags).not.toContain(tag);
    return tag;
  }

  async #send(
    method: string,
    path: string,
    { role, tenant }: { role: string | null; tenant: string },
    lines: readonly string[],
    body: Uint8Array | null,
  ): Promise<RawReply> {
    const token =
      role === null
        ? `cst_${"x".repeat(40)}`
        : await this.#tokens.token({ role, tenant: `${tenant}-${this.#number}` });
    const reply = await this.#connection.send(
      rawRequest(method, path, [`Authorization: Bearer ${token}`, ...lines], body),
    );
    if (reply === null) throw new Error(`${method} ${path}: the connection was closed without an answer`);
    const { read } = this.#caller({ role, tenant });
    // Every address of a customer ends so; none may reach a caller who may not read it.
    if (!read.includes("email")) expect(reply.body).not.toContain("@example.com");
    return reply;
  }
}

function listRefusal(
  caller: ModelCaller,
  fields: readonly string[] | string | null,
  filtered: readonly string[],
): string | null {
  if (caller.role === null) return "unauthenticated";
  if (!caller.operations.includes("list")) return "forbidden-operation";
  if (typeof fields === "string") return fields;
  return [...(fields ?? []), ...filtered].some((field) => !caller.read.includes(field))
    ? "forbidden-field"
    : null;
}

const FIELDS = ["name", "email", "status"] as const;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function shownBy(fields: QueryCase["fields"]): unknown {
  return Array.isArray(fields) ? ALL.filter((name) => fields.includes(name)) : "default";
}

/** A key belongs to the token of its caller. */
function ownerOf({ role, tenant }: { role: string | null; tenant: string }, key: string): string {
  return `${role} ${tenant} ${key}`;
}

function outcomeOf({ status, headers, body }: RawReply): Outcome {
  return { status, etag: headers.get("etag"), location: headers.get("location"), body };
}

/** If-None-Match as RFC 9110, section 13.1.2 has it, for the lists of {@link NONE_MATCH}. */
function namesTag(header: string | null, tag: string): boolean {
  const value = header?.trim() ?? "";
  if (value === "*") return true;
  const members = value.match(/(?:W\/)?"[^"]*"/g) ?? [];
  const isList = value.replace(/(?:W\/)?"[^"]*"/g, "").replace(/[\s,]/g, "") === "";
  return isList && members.some((member) => member.replace(/^W\//, "") === tag);
}

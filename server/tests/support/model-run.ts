import { expect } from "bun:test";
import { type Step, TENANTS } from "./arbitrary-steps.ts";
import {
  CustomerModel,
  type ModelCaller,
  type ModelCustomer,
  projected,
  refusalOf,
} from "./customer-model.ts";
import { expectCreated, expectRead, expectRefusal } from "./model-expectations.ts";
import { type RawConnection, rawRequest } from "./raw-connection.ts";
import type { RawReply } from "./raw-exchange.ts";

const ALL = ["id", "name", "email", "status"];
const WRITES = ["create", "replace", "patch", "delete"];
/** The policy of the model, as rows. */
export const ROLES: Readonly<Record<string, Pick<ModelCaller, "read" | "operations">>> = {
  admin: { read: ALL, operations: ["get", "list", ...WRITES] },
  clerk: { read: ["id", "name"], operations: ["get", "list", "create", "replace", "patch"] },
  viewer: { read: ALL, operations: ["get", "list"] },
  blind: { read: [], operations: ["get", "list", ...WRITES] },
  monitor: { read: [], operations: ["metrics"] },
};
export const POLICY = Object.entries(ROLES)
  .map(
    ([role, { read, operations }]) =>
      `[roles.${role}]\nread = ${JSON.stringify(read)}\noperations = ${JSON.stringify(operations)}\n`,
  )
  .join("");

const FIRST: Omit<Step<"create">, "caller"> = {
  kind: "create",
  query: { query: "", fields: null },
  body: {
    shown: "Ada",
    contentType: "application/json",
    bytes: () => Buffer.from('{"name":"Ada","email":"ada@example.com"}'),
    verdict: { PUT: 422, PATCH: 422, POST: { name: "Ada", email: "ada@example.com" } },
  },
  key: null,
  hours: 0,
};

/** Makes the token of a caller, or gives the one that it made. */
type ModelTokens = { token(caller: { role: string; tenant: string }): Promise<string> };

/** One run: the steps one after another against the service and the model, each answer compared. */
export class ModelRun {
  readonly #number: number;
  readonly #tokens: ModelTokens;
  readonly #connection: Pick<RawConnection, "send">;
  readonly #clock: { nowMs: number };
  readonly #model = new CustomerModel();
  readonly #keys = new Map<string, { first: ModelCustomer; expiresMs: number }>();

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

  take(step: Step<"customer" | "create" | "pages">): Promise<void> {
    if (step.kind === "customer") return this.#customer(step);
    return step.kind === "create" ? this.#create(step) : this.#pages(step);
  }

  async #customer(step: Step<"customer">): Promise<void> {
    const { method, query, body } = step;
    const caller = this.#caller(step.caller);
    const id = this.#id(step.target);
    const customer = this.#model.of(caller.tenant).get(id.toLowerCase()) ?? null;
    const ifMatch = step.tag.lines(customer?.tag ?? this.#tag(step.target.pick), this.#tag(step.target.pick));
    const noneMatch = step.noneMatch.line(customer?.tag ?? '"x"');
    const isRead = method === "GET" || method === "HEAD";
    const reply = await this.#send(
      method,
      `/customers/${id}?${query.query}`,
      step.caller,
      [
        ...ifMatch.map((line) => `If-Match: ${line}`),
        ...(noneMatch === null ? [] : [`If-None-Match: ${noneMatch}`]),
        ...(step.prefers ? ["Prefer: return=representation"] : []),
        ...(isRead || body.contentType === null ? [] : [`Content-Type: ${body.contentType}`]),
      ],
      isRead ? null : body.bytes(id),
    );
    const verdict = method === "PUT" || method === "PATCH" ? body.verdict[method] : {};
    const code = refusalOf({ caller, method, ifMatch, query, customer, verdict });
    if (code !== null) return expectRefusal(reply, code, method, customer);
    if (customer === null || typeof verdict === "number") throw new Error("the model refuses neither");
    if (isRead)
      return expectRead(reply, method, customer, projected(customer, caller, query), step.noneMatch.matches);
    if (method === "DELETE") {
      this.#model.remove(caller.tenant, customer.id);
      expect([reply.status, reply.body, reply.headers.get("etag")]).toEqual([204, "", undefined]);
      return;
    }
    const next = { ...customer, ...verdict, tag: this.#newTag(reply) };
    this.#model.put(caller.tenant, next);
    if (!step.prefers) {
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
        ...(key === null ? [] : [`Idempotency-Key: ${key}`]),
        ...(body.contentType === null ? [] : [`Content-Type: ${body.contentType}`]),
      ],
      body.bytes("01a00000-0000-7000-8000-000000000000"),
    );
    const verdict = body.verdict.POST;
    const code = refusalOf({ caller, method: "POST", ifMatch: [], query, customer: undefined, verdict });
    if (code !== null || typeof verdict === "number") return expectRefusal(reply, code ?? "?", "POST", null);
    const set = {
      name: verdict.name ?? "?",
      email: verdict.email ?? "?",
      status: verdict.status ?? "active",
    };
    const earlier = this.#keys.get(`${caller.tenant} ${caller.role} ${key}`);
    if (key !== null && earlier !== undefined && earlier.expiresMs > this.#clock.nowMs) {
      const { id: _, tag: __, ...first } = earlier.first;
      if (JSON.stringify(first) !== JSON.stringify(set))
        return expectRefusal(reply, "idempotency-key-reused", "POST", null);
      expect([reply.status, reply.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
      return expectCreated(reply, earlier.first, projected(earlier.first, caller, query));
    }
    expect([reply.status, reply.headers.get("idempotency-replayed")]).toEqual([201, undefined]);
    const id = (reply.headers.get("location") ?? "").slice("/customers/".length);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(this.#model.ids).not.toContain(id);
    const made = { ...set, id, tag: this.#newTag(reply) };
    this.#model.put(caller.tenant, made);
    if (key !== null)
      this.#keys.set(`${caller.tenant} ${caller.role} ${key}`, {
        first: made,
        expiresMs: this.#clock.nowMs + 24 * 3_600_000,
      });
    expectCreated(reply, made, projected(made, caller, query));
  }

  /** Follows `next` to the end: each customer once, in the order of creation, whichever way it is asked for. */
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

  /** One page: by the query string, or where it is filtered by email, which stays out of URLs, by a search. */
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

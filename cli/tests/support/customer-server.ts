/**
 * A plain, sound customer server in memory, written from the specification and independent of server/.
 * The client's tests run against it, and against faulty proxies in front of it.
 */
import { type Customer, CustomerTable, type Values } from "./customer-table.ts";
import { type Dialect, OURS } from "./dialect.ts";

/** A write that was applied. `body` is the parsed request body, null for DELETE. */
export type AcceptedWrite = {
  method: string;
  id: string;
  ifMatch: string | null;
  idempotencyKey: string | null;
  body: unknown;
  tag: string;
};
export type SeenRequest = { method: string; path: string; headers: Record<string, string>; status: number };

export type CustomerServer = {
  /** The base URL with the dialect's base path, without a slash at the end. */
  url: string;
  dialect: Dialect;
  /** Writes accepted from clients, in order; those made by `add` and `change` are not among them. */
  writes: AcceptedWrite[];
  requests: SeenRequest[];
  readonly size: number;
  add(values: Partial<Values>): Customer;
  /** Somebody else's write, between two requests of the client under test. */
  change(id: string, values: Partial<Values> | "delete"): void;
  read(id: string): Customer | undefined;
  all(): Customer[];
  stop(): Promise<void>;
};

type Refusal = { status: number; code: string; headers?: Record<string, string> };
type Creation = { body: string; id: string };

const STATUSES = ["active", "suspended", "closed"];
const BODY_BYTES_MAX = 65_536;
const ITEM_METHODS = ["GET", "HEAD", "PUT", "DELETE"];

/** Starts on a free port of the loopback interface. */
export function startCustomerServer(dialect: Dialect = OURS): CustomerServer {
  const table = new CustomerTable(dialect.tag);
  const creations = new Map<string, Creation>();
  const writes: AcceptedWrite[] = [];
  const requests: SeenRequest[] = [];
  const { names } = dialect;

  function represent(customer: Customer, fields: string[] | null): string {
    const wanted = fields ?? dialect.defaultFields;
    const members = wanted.map((field) => {
      const key = field as keyof typeof names;
      return `${JSON.stringify(names[key])}:${JSON.stringify(customer[key])}`;
    });
    if (fields === null && dialect.extraMembers !== "") members.push(dialect.extraMembers);
    return `{${members.join(",")}}`;
  }

  function refuse({ status, code, headers = {} }: Refusal): Response {
    if (!dialect.problemDetails) return new Response(null, { status, headers });
    const problem = {
      type: `/problems/${code}`,
      title: code,
      status,
      code,
      instance: `urn:uuid:${crypto.randomUUID()}`,
    };
    return new Response(JSON.stringify(problem), {
      status,
      headers: { ...headers, "content-type": "application/problem+json", "cache-control": "no-store" },
    });
  }

  function reply(status: number, customer: Customer | null, fields: string[] | null, more = {}): Response {
    const headers = { "cache-control": "private, no-cache", vary: "Authorization", ...more };
    const tag = customer === null ? {} : { etag: customer.tag };
    if ([204, 304].includes(status) || customer === null)
      return new Response(null, { status, headers: { ...headers, ...tag } });
    return new Response(represent(customer, fields), {
      status,
      headers: { ...headers, ...tag, "content-type": "application/json" },
    });
  }

  function list(query: Map<string, unknown>, fields: string[] | null): Response {
    const limit = Number(query.get("limit") ?? 50);
    const from = Number(query.get("cursor") ?? 0);
    if (!Number.isInteger(limit) || limit < 1 || limit > 500 || !Number.isInteger(from)) {
      return refuse({ status: 400, code: "invalid-parameter" });
    }
    const match: Partial<Values> = {};
    for (const name of ["email", "status"] as const)
      if (query.has(name)) match[name] = String(query.get(name));
    const { customers, next } = table.page(from, limit, match);
    const items = customers.map(
      (item) => `{"etag":${JSON.stringify(item.tag)},"customer":${represent(item, fields)}}`,
    );
    const body = `{"items":[${items.join(",")}],"next":${next === null ? "null" : `"${next}"`}}`;
    return new Response(body, {
      headers: { "content-type": "application/json", "cache-control": "private, no-cache" },
    });
  }

  function create(request: Request, text: string, fields: string[] | null): Response {
    const key = dialect.idempotencyKeys ? request.headers.get("idempotency-key") : null;
    const earlier = key === null ? undefined : creations.get(key);
    if (earlier !== undefined) {
      const customer = table.read(earlier.id);
      if (earlier.body !== text) return refuse({ status: 422, code: "idempotency-key-reused" });
      return reply(201, customer ?? null, fields, { "idempotency-replayed": "true" });
    }
    const body = readBody(text, ["name", "email", "status"]);
    if (!body.ok) return refuse(body.refusal);
    const { name, email, status = "active" } = body.values;
    if (name === undefined || email === undefined) return refuse({ status: 422, code: "invalid-body" });
    const customer = table.add({ name, email, status });
    if (key !== null) creations.set(key, { body: text, id: customer.id });
    log(request, customer.id, body.values, customer.tag);
    return reply(201, customer, fields, { location: `${dialect.basePath}/customers/${customer.id}` });
  }

  function write(
    request: Request,
    id: string,
    ifMatch: string,
    text: string,
    fields: string[] | null,
  ): Response {
    const current = table.read(id);
    if (current === undefined) return refuse({ status: 404, code: "customer-not-found" });
    const stale = { status: 412, code: "precondition-failed", headers: { etag: current.tag } };
    if (ifMatch !== current.tag) return refuse(stale);
    const { method } = request;
    const body = readBody(text, method === "PUT" ? ["name", "email"] : ["name", "email", "status"]);
    if (method !== "DELETE") {
      if (!body.ok) return refuse(body.refusal);
      if (method === "PUT" && (body.values.name === undefined || body.values.email === undefined)) {
        return refuse({ status: 422, code: "invalid-body" });
      }
    }
    const values = method === "DELETE" ? "delete" : body.ok ? body.values : {};
    const outcome = table.write(id, ifMatch, values);
    if (outcome.kind !== "written") return refuse(stale);
    log(request, id, values === "delete" ? null : values, outcome.tag);
    if (values === "delete") return reply(204, null, fields);
    const wanted = request.headers.get("prefer")?.includes("return=representation") === true;
    return reply(wanted ? 200 : dialect.writeStatus, table.read(id) ?? null, fields);
  }

  function readBody(
    text: string,
    allowed: string[],
  ): { ok: true; values: Partial<Values> } | { ok: false; refusal: Refusal } {
    const invalid = { ok: false, refusal: { status: 422, code: "invalid-body" } } as const;
    if (text.length > BODY_BYTES_MAX)
      return { ok: false, refusal: { status: 413, code: "payload-too-large" } };
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      return { ok: false, refusal: { status: 400, code: "malformed-json" } };
    }
    if (typeof body !== "object" || body === null || Array.isArray(body)) return invalid;
    const values: Partial<Values> = {};
    for (const [member, value] of Object.entries(body)) {
      const field = allowed.find((name) => names[name as keyof typeof names] === member);
      if (field === undefined || typeof value !== "string" || !isValid(field, value)) return invalid;
      const text = value.trim();
      values[field as keyof Values] = field === "email" ? dialect.storedEmail(text) : text;
    }
    return { ok: true, values };
  }

  /** Of the writes of clients, in one page. */
  function history(id: string): Response {
    const ofThis = writes.filter((write) => write.id === id);
    if (ofThis.length === 0 && table.read(id) === undefined)
      return refuse({ status: 404, code: "customer-not-found" });
    const operations: Record<string, string> = { POST: "create", PUT: "replace", PATCH: "patch" };
    const items = ofThis.map(({ method, body, ifMatch, tag }) => ({
      time: "2026-11-28T10:14:03.120Z",
      client: "test",
      operation: operations[method] ?? "delete",
      changed: Object.keys(body ?? {}),
      requestId: "",
      etag: method === "DELETE" ? null : tag,
      previousEtag: ifMatch,
      withoutIfMatch: false,
      values: null,
    }));
    return Response.json({ items: items.toReversed(), next: null });
  }

  function log(request: Request, id: string, body: unknown, tag: string): void {
    const { method, headers } = request;
    writes.push({
      method,
      id,
      ifMatch: headers.get("if-match"),
      idempotencyKey: headers.get("idempotency-key"),
      body,
      tag,
    });
  }

  /** The checks in the order of the specification (4.2): credentials, 428, query, 404, 412, body. */
  async function handle(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const text = await request.text();
    const { method } = request;
    const { header, value } = dialect.credentials;
    if (!url.pathname.startsWith(`${dialect.basePath}/`))
      return refuse({ status: 404, code: "route-not-found" });
    const [, route, id, ...rest] = url.pathname.slice(dialect.basePath.length).split("/");
    const searching = method === "POST" && id === "search";
    const ofHistory = dialect.history && method === "GET" && rest.length === 1 && rest[0] === "history";
    if (
      route !== "customers" ||
      (rest.length > 0 && !ofHistory) ||
      (id === undefined && !dialect.collection)
    ) {
      return refuse({ status: 404, code: "route-not-found" });
    }
    const allowed =
      id === undefined ? ["GET", "POST"] : dialect.patch ? [...ITEM_METHODS, "PATCH"] : ITEM_METHODS;
    if (!allowed.includes(method) && !(searching && dialect.collection)) {
      return refuse({ status: 405, code: "method-not-allowed", headers: { allow: allowed.join(", ") } });
    }
    if (request.headers.get(header) !== value) {
      return refuse({ status: 401, code: "unauthenticated", headers: { "www-authenticate": "Bearer" } });
    }
    const ifMatch = request.headers.get("if-match") ?? "";
    if (["PUT", "PATCH", "DELETE"].includes(method) && ifMatch === "") {
      return refuse({ status: 428, code: "precondition-required" });
    }
    if (ofHistory) return history(id ?? "");
    const query = searching
      ? new Map(Object.entries(JSON.parse(text) as Record<string, unknown>))
      : url.searchParams;
    const fields = parseFields(query.get("fields"));
    if (fields === "unknown") return refuse({ status: 400, code: "unknown-field" });
    if (searching) return list(new Map(query), fields);
    if (id === undefined)
      return method === "GET" ? list(new Map(url.searchParams), fields) : create(request, text, fields);
    if (method !== "GET" && method !== "HEAD") return write(request, id, ifMatch, text, fields);
    const customer = table.read(id);
    if (customer === undefined) return refuse({ status: 404, code: "customer-not-found" });
    const known = request.headers.get("if-none-match");
    return known === customer.tag ? reply(304, customer, fields) : reply(200, customer, fields);
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 255,
    async fetch(request) {
      const response = await handle(request);
      const path = request.url.slice(new URL(request.url).origin.length);
      requests.push({
        method: request.method,
        path,
        headers: Object.fromEntries(request.headers),
        status: response.status,
      });
      return response;
    },
  });

  return {
    url: `http://127.0.0.1:${server.port}${dialect.basePath}`,
    dialect,
    writes,
    requests,
    get size() {
      return table.size;
    },
    add: (values) =>
      table.add({ name: "Ada Lovelace", email: "ada@example.com", status: "active", ...values }),
    change(id, values) {
      const tag = table.read(id)?.tag;
      if (tag === undefined || table.write(id, tag, values).kind !== "written")
        throw new Error(`no customer ${id}`);
    },
    read: (id) => table.read(id),
    all: () => table.page(0, Number.POSITIVE_INFINITY, {}).customers,
    stop: () => server.stop(true),
  };
}

function parseFields(parameter: unknown): string[] | null | "unknown" {
  if (parameter === null || parameter === undefined) return null;
  const fields = String(parameter)
    .split(",")
    .map((name) => name.trim().toLowerCase());
  return fields.every((name) => ["id", "name", "email", "status"].includes(name)) ? fields : "unknown";
}

function isValid(field: string, value: string): boolean {
  if (field === "status") return STATUSES.includes(value);
  if (field === "email") return /^[^\s@]+@[^\s@]+$/.test(value) && value.length <= 254;
  return value.trim() !== "" && value.length <= 200;
}

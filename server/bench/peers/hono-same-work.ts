// Hono on Bun and bun:sqlite, with its own middleware, doing the work of the service: bearer token by its digest,
// rights of the role, projection in SQL, entity-tags, problem documents, request id, a histogram, a log line a request.
// Each statement is a transaction of its own, power-loss durable.
import { Database, type Statement } from "bun:sqlite";
import { createHash, randomBytes } from "node:crypto";
import { type Context, Hono } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import { createMiddleware } from "hono/factory";
import { HTTPException } from "hono/http-exception";
import { requestId } from "hono/request-id";
import pino from "pino";
import { Histogram, Registry } from "prom-client";

const ROLES: Record<string, { read: string[]; operations: string[] } | undefined> = {
  admin: { read: ["id", "name", "email", "status"], operations: ["get", "replace"] },
  support: { read: ["id", "name", "status"], operations: ["get"] },
};
type Row = Record<string, string>;
type Caller = { client: string; role: string; tenant: string };
type Env = { Variables: { caller: Caller; requestId: string } };

const db = new Database(process.argv[2], { strict: true });
db.run("PRAGMA busy_timeout = 5000");
db.run("PRAGMA journal_mode = WAL");
db.run("PRAGMA synchronous = FULL");
const findToken = db.prepare<Caller, [Buffer, number]>(
  "SELECT client, role, tenant FROM tokens WHERE digest = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)",
);
const update = db.prepare(
  "UPDATE customers SET name = ?, email = ?, email_folded = ?, row_version = ? WHERE tenant = ? AND id = ? AND row_version = ?",
);
const selects = new Map<string, Statement<Row, [string, string]>>();
function select(fields: string[]): Statement<Row, [string, string]> {
  const columns = [...fields, "row_version"].join(", ");
  let statement = selects.get(columns);
  if (statement === undefined) {
    statement = db.prepare<Row, [string, string]>(
      `SELECT ${columns} FROM customers WHERE tenant = ? AND id = ?`,
    );
    selects.set(columns, statement);
  }
  return statement;
}

const registry = new Registry();
const durations = new Histogram({
  name: "http_request_duration_seconds",
  help: "Time to the answer.",
  labelNames: ["method", "route", "status"],
  registers: [registry],
});
const log = pino({ base: null }, pino.destination({ dest: 2, sync: false }));

function problem(c: Context, status: 400 | 401 | 403 | 404 | 412 | 422 | 428 | 500, code: string): Response {
  const body = {
    type: `/problems/${code}`,
    title: code,
    status,
    instance: `urn:uuid:${c.get("requestId")}`,
    code,
  };
  return c.body(JSON.stringify(body), status, { "content-type": "application/problem+json" });
}

const app = new Hono<Env>();
app.use(requestId());
app.use(
  createMiddleware<Env>(async (c, next) => {
    const startedAt = performance.now();
    await next();
    const durationMs = performance.now() - startedAt;
    const { method } = c.req;
    const route = c.req.path.startsWith("/customers/") ? "/customers/:id" : c.req.path;
    durations.observe({ method, route, status: c.res.status }, durationMs / 1000);
    const caller = c.get("caller") as Caller | undefined;
    log.info(
      {
        method,
        route,
        status: c.res.status,
        durationMs,
        requestId: c.get("requestId"),
        client: caller?.client,
      },
      "request",
    );
  }),
);
app.get("/metrics", async (c) => c.text(await registry.metrics()));
app.use(
  "/customers/*",
  bearerAuth({
    verifyToken: (token, c) => {
      const caller = findToken.get(createHash("sha256").update(token).digest(), Date.now());
      if (caller === null) return false;
      c.set("caller", caller);
      return true;
    },
  }),
);
app.use("/customers/*", etag({ retainedHeaders: [...RETAINED_304_HEADERS, "x-request-id"] }));
const requireOperation = (operation: string) =>
  createMiddleware<Env>(async (c, next) => {
    if (ROLES[c.get("caller").role]?.operations.includes(operation) !== true) {
      return problem(c, 403, "forbidden-operation");
    }
    await next();
  });

app.get("/customers/:id", requireOperation("get"), (c) => {
  const { role, tenant } = c.get("caller");
  const readable = ROLES[role]?.read ?? [];
  const fields = c.req.query("fields")?.split(",") ?? readable;
  if (fields.some((name) => ROLES["admin"]?.read.includes(name) !== true))
    return problem(c, 400, "unknown-field");
  if (fields.some((name) => !readable.includes(name))) return problem(c, 403, "forbidden-field");
  const row = select(fields).get(tenant, c.req.param("id"));
  if (row === null) return problem(c, 404, "customer-not-found");
  const { row_version, ...customer } = row;
  c.header("ETag", `"${row_version}"`);
  c.header("Cache-Control", "private, no-cache, no-transform");
  c.header("Vary", "Authorization");
  c.header("X-Content-Type-Options", "nosniff");
  return c.json(customer);
});
app.put("/customers/:id", requireOperation("replace"), async (c) => {
  const expected = c.req.header("If-Match");
  if (expected === undefined) return problem(c, 428, "precondition-required");
  const { name, email } = await c.req.json();
  if (typeof name !== "string" || typeof email !== "string") return problem(c, 422, "invalid-body");
  const { tenant } = c.get("caller");
  const id = c.req.param("id");
  const next = randomBytes(12).toString("base64url");
  const { changes } = update.run(name, email, email.toLowerCase(), next, tenant, id, expected.slice(1, -1));
  if (changes === 0) {
    return select([]).get(tenant, id) === null
      ? problem(c, 404, "customer-not-found")
      : problem(c, 412, "precondition-failed");
  }
  c.header("ETag", `"${next}"`);
  return c.body(null, 204);
});
app.notFound((c) => problem(c, 404, "route-not-found"));
app.onError((error, c) => {
  if (!(error instanceof HTTPException)) return problem(c, 500, "internal-error");
  if (error.status !== 401) return problem(c, 400, "malformed-request");
  c.header("WWW-Authenticate", "Bearer");
  return problem(c, 401, "unauthenticated");
});
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: app.fetch });
console.log(JSON.stringify({ url: `http://127.0.0.1:${server.port}` }));
// pino writes what it still has when the process exits.
process.once("SIGTERM", () => process.exit(0));

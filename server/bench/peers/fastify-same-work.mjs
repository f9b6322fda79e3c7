// Fastify on Node and better-sqlite3, with its plugins, doing the work of the service: bearer token by its digest,
// rights of the role, projection in SQL, entity-tags, problem documents, request id, a histogram, a log line a request.
// Each statement is a transaction of its own, power-loss durable.
import { createHash, randomBytes, randomUUID } from "node:crypto";
import bearerAuth from "@fastify/bearer-auth";
import Database from "better-sqlite3";
import Fastify from "fastify";
import metrics from "fastify-metrics";
import pino from "pino";

const ROLES = {
  admin: { read: ["id", "name", "email", "status"], operations: ["get", "replace"] },
  support: { read: ["id", "name", "status"], operations: ["get"] },
};

const db = new Database(process.argv[2]);
db.pragma("busy_timeout = 5000");
db.pragma("journal_mode = WAL");
db.pragma("synchronous = FULL");
const findToken = db.prepare(
  "SELECT client, role, tenant FROM tokens WHERE digest = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)",
);
const update = db.prepare(
  "UPDATE customers SET name = ?, email = ?, email_folded = ?, row_version = ? WHERE tenant = ? AND id = ? AND row_version = ?",
);
const selects = new Map();
function select(fields) {
  const columns = [...fields, "row_version"].join(", ");
  if (!selects.has(columns)) {
    selects.set(columns, db.prepare(`SELECT ${columns} FROM customers WHERE tenant = ? AND id = ?`));
  }
  return selects.get(columns);
}

const app = Fastify({
  loggerInstance: pino({ base: null }, pino.destination({ dest: 2, sync: false })),
  // One line a request instead of two, from the hook below.
  disableRequestLogging: true,
  requestIdHeader: "x-request-id",
  genReqId: () => randomUUID(),
});
app.decorateRequest("caller", null);
app.addHook("onRequest", async (request, reply) => {
  reply.header("x-request-id", request.id);
});
app.addHook("onResponse", async (request, reply) => {
  request.log.info(
    {
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      durationMs: reply.elapsedTime,
      client: request.caller?.client,
    },
    "request",
  );
});
await app.register(metrics, { endpoint: "/metrics", defaultMetrics: { enabled: false } });

function problem(request, reply, status, code) {
  const body = { type: `/problems/${code}`, title: code, status, instance: `urn:uuid:${request.id}`, code };
  return reply.code(status).type("application/problem+json").send(JSON.stringify(body));
}
app.setNotFoundHandler((request, reply) => problem(request, reply, 404, "route-not-found"));
app.setErrorHandler((error, request, reply) => {
  const status = error.statusCode ?? 500;
  return problem(request, reply, status, status === 401 ? "unauthenticated" : "malformed-request");
});

const requireOperation = (operation) => (request, reply, done) => {
  if (ROLES[request.caller.role]?.operations.includes(operation) === true) done();
  else problem(request, reply, 403, "forbidden-operation");
};
const BODY = {
  type: "object",
  required: ["name", "email"],
  properties: { name: { type: "string" }, email: { type: "string" } },
  additionalProperties: false,
};

await app.register(async (customers) => {
  await customers.register(bearerAuth, {
    keys: [],
    auth: (token, request) => {
      const caller = findToken.get(createHash("sha256").update(token).digest(), Date.now());
      request.caller = caller ?? null;
      return caller !== undefined;
    },
    errorResponse: () => ({ statusCode: 401 }),
  });
  customers.addHook("onSend", async (request, reply, payload) => {
    if (reply.statusCode !== 401) return payload;
    const body = {
      type: "/problems/unauthenticated",
      title: "unauthenticated",
      status: 401,
      instance: `urn:uuid:${request.id}`,
    };
    reply
      .header("www-authenticate", "Bearer")
      .type("application/problem+json")
      .removeHeader("content-length");
    return JSON.stringify(body);
  });
  customers.get("/customers/:id", { preHandler: requireOperation("get") }, (request, reply) => {
    const { role, tenant } = request.caller;
    const readable = ROLES[role].read;
    const fields = request.query.fields?.split(",") ?? readable;
    if (fields.some((name) => !ROLES.admin.read.includes(name)))
      return problem(request, reply, 400, "unknown-field");
    if (fields.some((name) => !readable.includes(name)))
      return problem(request, reply, 403, "forbidden-field");
    const row = select(fields).get(tenant, request.params.id);
    if (row === undefined) return problem(request, reply, 404, "customer-not-found");
    const { row_version, ...customer } = row;
    const tag = `"${row_version}"`;
    reply.headers({
      etag: tag,
      "cache-control": "private, no-cache, no-transform",
      vary: "Authorization",
      "x-content-type-options": "nosniff",
    });
    return request.headers["if-none-match"] === tag ? reply.code(304).send() : reply.send(customer);
  });
  const replace = { preHandler: requireOperation("replace"), schema: { body: BODY } };
  customers.put("/customers/:id", replace, (request, reply) => {
    const expected = request.headers["if-match"];
    if (expected === undefined) return problem(request, reply, 428, "precondition-required");
    const next = randomBytes(12).toString("base64url");
    const { name, email } = request.body;
    const { tenant } = request.caller;
    const { id } = request.params;
    const { changes } = update.run(name, email, email.toLowerCase(), next, tenant, id, expected.slice(1, -1));
    if (changes === 1) return reply.code(204).header("etag", `"${next}"`).send();
    return select([]).get(tenant, id) === undefined
      ? problem(request, reply, 404, "customer-not-found")
      : problem(request, reply, 412, "precondition-failed");
  });
});
const url = await app.listen({ port: 0, host: "127.0.0.1" });
console.log(JSON.stringify({ url }));
// pino writes what it still has when the process exits.
process.once("SIGTERM", () => process.exit(0));

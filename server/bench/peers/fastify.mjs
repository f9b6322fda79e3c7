// Fastify on Node and better-sqlite3: the same SELECT and the same conditional UPDATE, each its own transaction,
// power-loss durable. No authentication, no projection, no metrics.
import { randomBytes } from "node:crypto";
import Database from "better-sqlite3";
import Fastify from "fastify";

const db = new Database(process.argv[2]);
db.pragma("busy_timeout = 5000");
db.pragma("journal_mode = WAL");
db.pragma("synchronous = FULL");
const select = db.prepare(
  "SELECT name, email, row_version FROM customers WHERE tenant = 'default' AND id = ?",
);
const update = db.prepare(
  "UPDATE customers SET name = ?, email = ?, row_version = ? WHERE tenant = 'default' AND id = ? AND row_version = ?",
);

const app = Fastify();
app.get("/customers/:id", (request, reply) => {
  const row = select.get(request.params.id);
  if (row === undefined) return reply.code(404).send({ title: "not found" });
  return reply.header("ETag", `"${row.row_version}"`).send({ name: row.name, email: row.email });
});
app.put("/customers/:id", (request, reply) => {
  const expected = request.headers["if-match"];
  if (expected === undefined) return reply.code(428).send({ title: "precondition required" });
  const next = randomBytes(12).toString("base64url");
  const version = expected.slice(1, -1);
  const { name, email } = request.body;
  const { changes } = update.run(name, email, next, request.params.id, version);
  if (changes === 0) return reply.code(412).send({ title: "stale or missing" });
  return reply.code(204).header("ETag", `"${next}"`).send();
});
const url = await app.listen({ port: 0, host: "127.0.0.1" });
console.log(JSON.stringify({ url }));

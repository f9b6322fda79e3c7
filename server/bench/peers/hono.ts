// Hono on Bun and bun:sqlite: the same SELECT and the same conditional UPDATE, each its
// own transaction, power-loss durable. No authentication, no projection, no metrics.
import { Database } from "bun:sqlite";
import { Hono } from "hono";

const db = new Database(process.argv[2], { strict: true });
db.run("PRAGMA busy_timeout = 5000");
db.run("PRAGMA journal_mode = WAL");
db.run("PRAGMA synchronous = FULL");
const select = db.prepare(
  "SELECT name, email, row_version FROM customers WHERE tenant = 'default' AND id = ?",
);
const update = db.prepare(
  "UPDATE customers SET name = ?, email = ?, row_version = ? WHERE tenant = 'default' AND id = ? AND row_version = ?",
);

const app = new Hono();
app.get("/customers/:id", (c) => {
  const row = select.get(c.req.param("id")) as {
    name: string;
    email: string;
    row_version: string;
  } | null;
  if (row === null) return c.json({ title: "not found" }, 404);
  c.header("ETag", `"${row.row_version}"`);
  return c.json({ name: row.name, email: row.email });
});
app.put("/customers/:id", async (c) => {
  const expected = c.req.header("If-Match");
  if (expected === undefined) return c.json({ title: "precondition required" }, 428);
  const { name, email } = await c.req.json();
  const next = crypto.getRandomValues(new Uint8Array(12)).toBase64({ alphabet: "base64url" });
  const version = expected.slice(1, -1);
  const { changes } = update.run(name, email, next, c.req.param("id"), version);
  if (changes === 0) return c.json({ title: "stale or missing" }, 412);
  c.header("ETag", `"${next}"`);
  return c.body(null, 204);
});
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: app.fetch });
console.log(JSON.stringify({ url: `http://127.0.0.1:${server.port}` }));

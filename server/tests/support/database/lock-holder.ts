import { Database } from "bun:sqlite";

/** A process that holds the write lock of a database until its stdin ends: `bun lock-holder.ts FILE`. */
const [file = ""] = process.argv.slice(2);
const db = new Database(file, { readwrite: true, create: false });
db.run("PRAGMA busy_timeout = 60000");
db.run("BEGIN IMMEDIATE");
console.log("held");
for await (const _ of process.stdin);
db.run("ROLLBACK");
db.close();
console.log("released");

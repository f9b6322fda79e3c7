/**
 * The benchmark: `bun run bench`, or `bun run bench --quick` in under two minutes. With
 * `--engine postgres` it is about PostgreSQL: how it compares with other ways, and with SQLite.
 */
import { parseArgs } from "node:util";

const options = { engine: { type: "string", default: "sqlite" } } as const;
const { engine } = parseArgs({ options, strict: false }).values;
await import(engine === "postgres" ? "./postgres-benchmark.ts" : "./sqlite-benchmark.ts");

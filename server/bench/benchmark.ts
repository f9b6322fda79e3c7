/**
 * The benchmark: `bun run bench`, or `bun run bench --quick` in under two minutes. With
 * `--engine postgres` it is about PostgreSQL: how it compares with other ways, and with SQLite.
 */
import { parseArgs } from "node:util";

const options = { engine: { type: "string", default: "sqlite" } } as const;
const { engine } = parseArgs({ options, strict: false }).values;
if (engine !== "sqlite") throw new Error(`there is no benchmark of ${engine}`);
await import("./sqlite-benchmark.ts");

/**
 * `bun run bench:cli [--rounds N] [--rows N] [--imports N] [--against EXECUTABLE] [--json]`: how long a command takes beside
 * curl and an empty program, and how fast an import is. `--against` measures an earlier build in the same rounds.
 */
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compile } from "../../release/compile.ts";
import { PROGRAMS } from "../../release/programs.ts";
import { temporaryDirectory } from "../tests/support/client.ts";
import { measureImport } from "./import-speed.ts";
import { measureStartUp } from "./start-up.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    rows: { type: "string", default: "100000" },
    imports: { type: "string", default: "3" },
    against: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const rounds = wholeNumber("rounds", 1000);
const rows = wholeNumber("rows", 10_000_000);
const imports = wholeNumber("imports", 100);

function wholeNumber(name: "rounds" | "rows" | "imports", max: number): number {
  const value = Number(values[name]);
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return value;
  console.error(`--${name} takes a whole number from 1 to ${max}`);
  process.exit(2);
}

using directory = temporaryDirectory();
const client = PROGRAMS.find(({ name }) => name === "customers");
if (client === undefined) throw new Error("release/programs.ts has no customers");
const build = async (name: string, entrypoints = client.entrypoints) =>
  (await compile({ ...client, entrypoints }, { outfile: join(directory.path, name), commit: "bench" })).path;
const executable = await build("customers");
const empty = await build("empty", ["cli/bench/empty-program.ts"]);
const executables = { executable, ...(values.against === undefined ? {} : { against: values.against }) };

const startUp = await measureStartUp(executables, empty, rounds);
const imported = await measureImport(executables, rows, imports);
const [load = 0] = loadavg();
if (values.json) console.log(JSON.stringify({ rounds, startUp, imports, imported, load }));
else {
  const cells = (name: string, columns: readonly string[]) =>
    `${name.padEnd(26)}${columns.map((column) => column.padStart(11)).join("")}`;
  console.log(cells(`ms, ${rounds} rounds`, ["median", "best", "processor", "limit"]));
  for (const { name, medianMs, bestMs, processorMs, limitMs } of startUp) {
    const times = [medianMs, bestMs, processorMs].map((ms) => ms.toFixed(1));
    console.log(cells(name, [...times, limitMs === null ? "" : String(limitMs)]));
  }
  console.log(`\n${cells(`rows/s, ${imports} imports`, ["median", "best", "limit", "us/row", "peak MB"])}`);
  for (const { name, rows, medianRowsPerS, bestRowsPerS, limitRowsPerS, ...cost } of imported) {
    const rates = [medianRowsPerS, bestRowsPerS].map((rate) => rate.toFixed(0));
    const limit = limitRowsPerS === null ? "" : String(limitRowsPerS);
    const costs = [cost.processorUsPerRow, cost.peakMB].map((value) => value.toFixed(0));
    console.log(cells(`${rows} rows, ${name}`, [...rates, limit, ...costs]));
  }
  console.log(`\nload of the machine: ${load.toFixed(1)}`);
}

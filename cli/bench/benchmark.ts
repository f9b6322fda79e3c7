/**
 * `bun run bench:cli [--rounds N] [--rows N] [--imports N] [--against EXECUTABLE] [--json]`: how long a command takes beside
 * curl, and how fast an import is. `--against` measures an earlier build in the same rounds.
 */
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { temporaryDirectory } from "../tests/support/client.ts";
import { measureImport } from "./import.ts";
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
const executable = join(directory.path, "customers");
const build = Bun.spawn(
  [process.execPath, new URL("../../release/build.ts", import.meta.url).pathname, "customers", executable],
  { stdout: "ignore" },
);
if ((await build.exited) !== 0) process.exit(1);
const executables = { executable, ...(values.against === undefined ? {} : { against: values.against }) };

const startUp = await measureStartUp(executables, rounds);
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

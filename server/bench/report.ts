import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { type Measure, markdown } from "./measure.ts";

/** What else ran when the benchmark began. */
const [loadBefore = Number.NaN] = loadavg();

/** The machine and how busy it was, the runtime and the day, for the line above a table. */
export function surroundings(): string {
  const cpu = cpus();
  return `${cpu.length} × ${cpu[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}; load average before the run ${loadBefore.toFixed(1)}; Bun ${Bun.version}; ${new Date().toISOString().slice(0, 10)}`;
}

/**
 * Prints a report, keeps it as JSON in bench/results/, and puts it into PERFORMANCE.md.
 *
 * @param isKept whether PERFORMANCE.md gets it: the table after `<!-- NAME -->`, up to `<!-- end -->`
 */
export function report(
  name: string,
  heading: string,
  measures: readonly Measure[],
  { plan, marker, isKept }: { plan: object; marker: string; isKept: boolean },
): void {
  const text = markdown(measures, heading);
  console.log(text);
  const out = join(import.meta.dir, "results");
  mkdirSync(out, { recursive: true });
  writeFileSync(
    join(out, `${name}.json`),
    `${JSON.stringify({ machine: heading, plan, measures }, null, 2)}\n`,
  );
  if (!isKept) return;
  const document = join(import.meta.dir, "../PERFORMANCE.md");
  const before = readFileSync(document, "utf8");
  const from = before.indexOf(`<!-- ${marker} -->\n`);
  const to = before.indexOf("<!-- end -->", from);
  if (from === -1 || to === -1) throw new Error(`${document} has no place for ${marker}`);
  const start = from + `<!-- ${marker} -->\n`.length;
  writeFileSync(document, `${before.slice(0, start)}\n${text}\n${before.slice(to)}`);
}

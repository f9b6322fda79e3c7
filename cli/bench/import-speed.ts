/**
 * An import of many rows into this project's own service, which is started anew for each run, since a process keeps its speed
 * for life. Rounds are interleaved. A tenth of the rows shows whether memory grows with the input.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../tests/support/client.ts";
import { startService } from "../tests/support/service.ts";
import { environment, median, run } from "./measured-run.ts";

/** What the design asks for. */
const ROWS_PER_S_MIN = 5000;
const CONCURRENCY = 64;

export type Import = {
  name: string;
  rows: number;
  medianRowsPerS: number;
  bestRowsPerS: number;
  /** Of the client, in microseconds, as the median. */
  processorUsPerRow: number;
  peakMB: number;
  limitRowsPerS: number | null;
};

/** @param executables by name, such as this build and an earlier one. */
export async function measureImport(
  executables: Readonly<Record<string, string>>,
  rows: number,
  rounds: number,
): Promise<Import[]> {
  const tenth = Math.ceil(rows / 10);
  const cases = Object.entries(executables).flatMap(([name, path]) => [
    { name, path, rows, limitRowsPerS: ROWS_PER_S_MIN, runs: [] as Awaited<ReturnType<typeof run>>[] },
    { name, path, rows: tenth, limitRowsPerS: null, runs: [] as Awaited<ReturnType<typeof run>>[] },
  ]);
  for (let round = 0; round < rounds; round += 1)
    for (const each of cases) each.runs.push(await importOnce(each.path, each.rows));
  return cases.map(({ name, rows, limitRowsPerS, runs }) => ({
    name,
    rows,
    medianRowsPerS: (rows / median(runs.map(({ ms }) => ms))) * 1000,
    bestRowsPerS: (rows / Math.min(...runs.map(({ ms }) => ms))) * 1000,
    processorUsPerRow: (median(runs.map(({ processorMs }) => processorMs)) / rows) * 1000,
    peakMB: Math.max(...runs.map(({ peakBytes }) => peakBytes)) / 1e6,
    limitRowsPerS,
  }));
}

async function importOnce(executable: string, rows: number) {
  using directory = temporaryDirectory();
  const path = join(directory.path, "in.csv");
  const lines = Array.from({ length: rows }, (_, at) => `Customer ${at},c${at}@example.com`);
  await Bun.write(path, `name,email\n${lines.join("\n")}\n`);
  const service = await startService(["editor"]);
  try {
    const env = environment(service.url, service.tokens["editor"] ?? "");
    return await run([executable, "import", path, "--concurrency", String(CONCURRENCY)], env);
  } finally {
    await service.stop();
    rmSync(path);
  }
}

/** `replay`: one rule again, with every request and reply in full. */

import { join } from "node:path";
import type { Command } from "commander";
import { DEFAULT_OUT } from "../report/command-line.ts";
import { curlLine } from "../report/curl.ts";
import { readReport } from "../report/report-file.ts";
import type { Exchange } from "../report/schema.ts";
import { visible } from "../report/visible.ts";
import { print } from "./print.ts";
import { recordedFlags } from "./recorded-flags.ts";
import { REPORT_FILE } from "./report-files.ts";
import { printReport, run } from "./run.ts";
import { addRunOptions, type RunFlags } from "./run-flags.ts";
import { profileOf } from "./target-options.ts";

export function addReplayCommand(program: Command, end: (exitCode: number) => void): void {
  addRunOptions(program.command("replay <id>"))
    .description("run one rule again and show every request and reply")
    .option("--from <file>", "the report whose flags are used", join(DEFAULT_OUT, REPORT_FILE))
    .action(async (id: string, { from, ...flags }: RunFlags & { from: string }) =>
      end(await replay(id, from, flags)),
    );
}

/** @param from a report.json whose flags are used where this call gives none */
async function replay(id: string, from: string, flags: RunFlags): Promise<number> {
  const recorded =
    flags.baseUrl === undefined && flags.profile === undefined
      ? recordedFlags(readReport(from).options.arguments)
      : {};
  const merged: RunFlags = { ...recorded, ...flags, only: id };
  const report = await run(profileOf(merged, process.env), merged, wordsOf(merged), ({ trial }) => {
    for (const exchange of trial?.exchanges.values() ?? [])
      printExchange(exchange, trial?.exchanges ?? new Map());
  });
  printReport(report);
  return report.exitCode;
}

function printExchange(exchange: Exchange, all: ReadonlyMap<number, Exchange>): void {
  const { n, purpose, caller, via, request, reply, failure, durationMs } = exchange;
  const lines = [
    `── ${n}  ${purpose}  (${caller}, ${via}, ${durationMs.toFixed(1)} ms)`,
    `> ${request.method} ${request.url}`,
    ...request.headers.map(([name, value]) => `> ${name}: ${value}`),
    ...(request.body === null ? [] : [`> ${request.body}`]),
    ...(reply === null
      ? [`< ${failure ?? "no reply"}`]
      : [
          `< ${reply.status}`,
          ...reply.headers.map(([name, value]) => `< ${name}: ${value}`),
          ...(reply.body === "" ? [] : [`< ${reply.body}`]),
        ]),
    `  ${curlLine(exchange, all.get(exchange.follows ?? 0))}`,
    "",
  ];
  print(lines.map(visible).join("\n"));
}

/** Flags as words again, for the command line of the report. */
function wordsOf(flags: RunFlags): string[] {
  return Object.entries(flags).flatMap(([key, value]) => {
    const flag = `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    if (value === true) return [flag];
    if (value === undefined || value === false) return [];
    return (Array.isArray(value) ? value : [value]).flatMap((each) => [flag, String(each)]);
  });
}

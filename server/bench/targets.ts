import { readFileSync } from "node:fs";
import type { LoadOptions, LoadResult } from "./load.ts";

export type Target = {
  readonly name: string;
  readonly url: string;
  readonly token: string | null;
  readonly idsFile: string;
  readonly pids: () => readonly number[];
  readonly stop: () => Promise<void>;
};

/**
 * Starts a server that prints `{"url":…}` as its first line.
 * Its stderr is thrown away, unless a file is named for it.
 */
export async function startServer(
  name: string,
  command: readonly string[],
  options: {
    idsFile: string;
    cwd: string;
    token?: string;
    environment?: Record<string, string>;
    /** A file that gets its stderr. */
    stderr?: string;
  },
): Promise<Target> {
  const child = Bun.spawn([...command], {
    cwd: options.cwd,
    env: { ...process.env, ...options.environment },
    stdio: ["ignore", "pipe", options.stderr === undefined ? "ignore" : Bun.file(options.stderr)],
  });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  reader.releaseLock();
  if (value === undefined) throw new Error(`${name} did not start: ${command.join(" ")}`);
  const { url } = JSON.parse(new TextDecoder().decode(value).split("\n")[0] ?? "") as { url: string };
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await child.exited;
  };
  return { name, url, token: options.token ?? null, idsFile: options.idsFile, pids: () => [child.pid], stop };
}

/** How long a server is loaded before it is measured, and how long it is measured. */
export type Span = { readonly warmUpSeconds: number; readonly seconds: number };

/** Answers a second, and processor time for each. */
export type Spent = { readonly perSecond: number; readonly processorUs: number };

/** GETs of random customers by wrk, one thread: it takes no more than the other core. @throws Error at an answer that is not 2xx */
export async function wrk(
  target: Target,
  connections: number,
  { warmUpSeconds, seconds }: Span,
  fields = "name,email",
): Promise<Spent> {
  if (warmUpSeconds > 0) await getsByWrk(target, connections, warmUpSeconds, fields);
  const before = processorMs(target.pids());
  const count = await getsByWrk(target, connections, seconds, fields);
  const processor = processorMs(target.pids()) - before;
  return { perSecond: count / seconds, processorUs: (processor * 1000) / count };
}

/** @returns how many were answered */
async function getsByWrk(
  target: Target,
  connections: number,
  seconds: number,
  fields: string,
): Promise<number> {
  const child = Bun.spawn(
    [
      "wrk",
      "-t1",
      `-c${connections}`,
      `-d${seconds}`,
      "-s",
      `${import.meta.dir}/random-reads.lua`,
      target.url,
    ],
    {
      env: {
        ...process.env,
        BENCH_IDS: target.idsFile,
        BENCH_TOKEN: target.token ?? "",
        BENCH_FIELDS: fields,
      },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error("wrk failed");
  const errors = Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? "0");
  if (errors > 0) throw new Error(`${target.name}: ${errors} answers were not 2xx`);
  return Number(/(\d+) requests in/.exec(text)?.[1] ?? "0");
}

/** @throws Error at an answer that is neither 2xx nor a conflict */
export async function load(
  target: Target,
  options: Omit<LoadOptions, "url" | "token" | "idsFile">,
): Promise<LoadResult & { readonly processorMs: number }> {
  const { url, token, idsFile } = target;
  const child = Bun.spawn(
    [process.execPath, `${import.meta.dir}/load.ts`, JSON.stringify({ url, token, idsFile, ...options })],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let text = "";
  let before = 0;
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    if (text === "") before = processorMs(target.pids());
    text += chunk;
  }
  const processor = processorMs(target.pids()) - before;
  if ((await child.exited) !== 0) throw new Error("the load generator failed");
  const result = JSON.parse(text.split("\n")[1] ?? "") as LoadResult;
  if (Object.keys(result.unexpected).length > 0)
    throw new Error(`${target.name}: ${JSON.stringify(result.unexpected)}`);
  return { ...result, processorMs: processor };
}

/** PUTs of so many connections, each to its own customer. @throws Error at any other answer than success */
export async function writes(target: Target, connections: number, span: Span): Promise<Spent> {
  const result = await load(target, { connections, ...span, writes: 1 });
  if (result.stale > 0) throw new Error(`${target.name}: ${result.stale} conflicts`);
  const { count } = result.writes;
  return { perSecond: count / result.seconds, processorUs: (result.processorMs * 1000) / count };
}

/** @returns the processor time that processes have used, in ms */
export function processorMs(pids: readonly number[]): number {
  const ticks = pids.map((pid) => {
    const [utime, stime] = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ")
      .slice(11);
    return Number(utime) + Number(stime);
  });
  // Linux counts in hundredths of a second (USER_HZ).
  return ticks.reduce((sum, each) => sum + each, 0) * 10;
}

/** @returns resident memory in MiB */
export function residentMiB(pids: readonly number[]): number {
  const kib = pids.map((pid) => /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  return kib.reduce((sum, each) => sum + Number(each), 0) / 1024;
}

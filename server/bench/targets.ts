import { readFileSync } from "node:fs";
import type { LoadOptions, LoadResult } from "./load.ts";

export type Target = {
  readonly name: string;
  readonly url: string;
  readonly token: string | null;
  readonly idsFile: string;
  readonly pids: readonly number[];
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
  return { name, url, token: options.token ?? null, idsFile: options.idsFile, pids: [child.pid], stop };
}

type WrkResult = {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly errors: number;
};

/** GETs of random customers by wrk, one thread: it takes no more than the other core. */
export async function wrk(
  target: Target,
  connections: number,
  seconds: number,
  fields = "name,email",
): Promise<WrkResult> {
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
  const requests = Number(/(\d+) requests in/.exec(text)?.[1] ?? "0");
  return { requests, requestsPerSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1] ?? "0"), errors };
}

export async function load(
  target: Target,
  options: Omit<LoadOptions, "url" | "token" | "idsFile">,
): Promise<LoadResult> {
  const { url, token, idsFile } = target;
  const child = Bun.spawn(
    [process.execPath, `${import.meta.dir}/load.ts`, JSON.stringify({ url, token, idsFile, ...options })],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error("the load generator failed");
  return JSON.parse(text) as LoadResult;
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

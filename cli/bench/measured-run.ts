/** One run of a program: its time, its processor time and its memory. */

/** No profile of the operator's takes part. */
export function environment(url: string, token: string): Record<string, string> {
  const nowhere = "/dev/null";
  const { PATH = "" } = process.env;
  return { PATH, HOME: nowhere, XDG_CONFIG_HOME: nowhere, CUSTOMERS_URL: url, CUSTOMERS_TOKEN: token };
}

export async function run(command: readonly string[], env: Readonly<Record<string, string>>) {
  const start = performance.now();
  const child = Bun.spawn([...command], { env, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const exitCode = await child.exited;
  const ms = performance.now() - start;
  if (exitCode !== 0)
    throw new Error(`${command.join(" ")} ended with ${exitCode}: ${await child.stderr.text()}`);
  const usage = child.resourceUsage();
  return { ms, processorMs: Number(usage?.cpuTime.total ?? 0) / 1000, peakBytes: usage?.maxRSS ?? 0 };
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/**
 * How long an operator waits for the client, from starting the process to its end, beside curl doing the same GET, and an
 * empty program of the same build: no command can take less. Rounds are interleaved, so that a busy moment of the machine
 * strikes all alike.
 */
import { startCustomerServer } from "../tests/support/customer-server.ts";
import { TOKEN } from "../tests/support/dialect.ts";
import { environment, median, run } from "./measured-run.ts";

/** What the design allows the executable: milliseconds, as the median. */
const LIMITS_MS = { help: 60, version: 60, get: 50 } as const;

type Case = { name: string; command: string[]; limitMs?: number };
export type StartUp = {
  name: string;
  medianMs: number;
  bestMs: number;
  /** Processor time, as the median: it says more than the time where other processes are busy. */
  processorMs: number;
  limitMs: number | null;
};

/**
 * @param executables by name, such as this build and an earlier one.
 * @param empty the executable of a program that does nothing.
 */
export async function measureStartUp(
  executables: Readonly<Record<string, string>>,
  empty: string,
  rounds: number,
): Promise<StartUp[]> {
  const server = startCustomerServer();
  const { id } = server.add({ name: "Ada Lovelace", email: "ada@example.com" });
  const source = [process.execPath, new URL("../main.ts", import.meta.url).pathname];
  const cases: Case[] = [
    ...Object.entries(executables).flatMap(([name, path]): Case[] => [
      { name: `--help, ${name}`, command: [path, "--help"], limitMs: LIMITS_MS.help },
      { name: `--version, ${name}`, command: [path, "--version"], limitMs: LIMITS_MS.version },
      { name: `get, ${name}`, command: [path, "get", id], limitMs: LIMITS_MS.get },
    ]),
    { name: "floor, empty program", command: [empty] },
    { name: "--help, bun main.ts", command: [...source, "--help"] },
    { name: "--version, bun main.ts", command: [...source, "--version"] },
    { name: "get, bun main.ts", command: [...source, "get", id] },
  ];
  if (Bun.which("curl") === null) console.error("curl is not installed: no comparison with it");
  else {
    const get = ["curl", "-sS", "-H", `Authorization: Bearer ${TOKEN}`, `${server.url}/customers/${id}`];
    cases.push({ name: "GET, curl", command: get });
  }
  const env = environment(server.url, TOKEN);
  const runs = cases.map(() => [] as Awaited<ReturnType<typeof run>>[]);
  for (const { command } of cases) await run(command, env); // the first one reads the files from the disk
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, { command }] of cases.entries()) runs[at]?.push(await run(command, env));
  }
  await server.stop();
  return cases.map(({ name, limitMs = null }, at) => {
    const measured = runs[at] ?? [];
    const times = measured.map(({ ms }) => ms);
    return {
      name,
      medianMs: median(times),
      bestMs: Math.min(...times),
      processorMs: median(measured.map(({ processorMs }) => processorMs)),
      limitMs,
    };
  });
}

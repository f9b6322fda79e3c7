/**
 * `bun run bench:cli [--rounds N] [--json]`: how long an operator waits for the client, from starting the
 * process to its end, beside curl doing the same GET. Rounds are interleaved, so that a busy moment of the
 * machine strikes all alike; the median and the best are printed, in milliseconds.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { temporaryDirectory } from "../tests/support/client.ts";
import { startCustomerServer } from "../tests/support/customer-server.ts";
import { TOKEN } from "../tests/support/dialect.ts";

/** What the design allows the executable: milliseconds, as the median. */
const LIMITS_MS = { help: 60, version: 60, get: 130 } as const;

type Case = { name: string; command: string[]; limitMs?: number };
export type Figure = { name: string; medianMs: number; bestMs: number; limitMs: number | null };

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "20" }, json: { type: "boolean", default: false } },
});
const rounds = Number(values.rounds);
if (!Number.isSafeInteger(rounds) || rounds < 1 || rounds > 1000) {
  console.error("--rounds takes a whole number from 1 to 1000");
  process.exit(2);
}

using directory = temporaryDirectory();
const executable = join(directory.path, "customers");
const build = Bun.spawn(
  [process.execPath, new URL("../../release/build.ts", import.meta.url).pathname, "customers", executable],
  {
    stdout: "ignore",
  },
);
if ((await build.exited) !== 0) process.exit(1);
const server = startCustomerServer();
const { id } = server.add({ name: "Ada Lovelace", email: "ada@example.com" });

const source = [process.execPath, new URL("../main.ts", import.meta.url).pathname];
const url = `${server.url}/customers/${id}`;
const cases: Case[] = [
  { name: "--help, executable", command: [executable, "--help"], limitMs: LIMITS_MS.help },
  { name: "--version, executable", command: [executable, "--version"], limitMs: LIMITS_MS.version },
  { name: "get, executable", command: [executable, "get", id], limitMs: LIMITS_MS.get },
  { name: "--help, bun main.ts", command: [...source, "--help"] },
  { name: "--version, bun main.ts", command: [...source, "--version"] },
  { name: "get, bun main.ts", command: [...source, "get", id] },
];
if (Bun.which("curl") === null) console.error("curl is not installed: no comparison with it");
else cases.push({ name: "GET, curl", command: ["curl", "-sS", "-H", `Authorization: Bearer ${TOKEN}`, url] });

const env = {
  PATH: process.env["PATH"] ?? "",
  HOME: process.env["HOME"] ?? "",
  XDG_CONFIG_HOME: directory.path, // no profile of the operator's takes part
  CUSTOMERS_URL: server.url,
  CUSTOMERS_TOKEN: TOKEN,
};

async function runMs({ name, command }: Case): Promise<number> {
  const start = performance.now();
  const child = Bun.spawn(command, { env, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const exitCode = await child.exited;
  const elapsedMs = performance.now() - start;
  if (exitCode !== 0) throw new Error(`${name} ended with ${exitCode}: ${await child.stderr.text()}`);
  return elapsedMs;
}

const times = new Map<string, number[]>(cases.map(({ name }) => [name, []]));
for (const warmUp of cases) await runMs(warmUp);
for (let round = 0; round < rounds; round += 1) {
  for (const measured of cases) times.get(measured.name)?.push(await runMs(measured));
}
await server.stop();
rmSync(executable, { force: true });

const figures: Figure[] = cases.map(({ name, limitMs = null }) => {
  const sorted = (times.get(name) ?? []).toSorted((a, b) => a - b);
  return { name, medianMs: sorted[Math.floor(sorted.length / 2)] ?? 0, bestMs: sorted[0] ?? 0, limitMs };
});
if (values.json) console.log(JSON.stringify({ rounds, figures }));
else {
  console.log(`${"".padEnd(24)} median    best   limit   (ms, ${rounds} rounds)`);
  for (const { name, medianMs, bestMs, limitMs } of figures) {
    const columns = [medianMs.toFixed(1), bestMs.toFixed(1), limitMs === null ? "" : String(limitMs)];
    console.log(`${name.padEnd(24)}${columns.map((column) => column.padStart(8)).join("")}`);
  }
}

/**
 * `bun server/bench/flame-graph.ts read|write OUT.svg`: where a service that has warmed up spends its processor time, as a
 * flame graph. Samples of Linux' perf (Debian: linux-perf), in all threads; wider is more time, callers stand below.
 *
 * JavaScriptCore tells in a file which machine code belongs to which function (jitdump, linux/tools/perf/Documentation/
 * jitdump-specification.txt), so what it has compiled stands there by name. Bun's own code has no symbols: it is `bun`.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flameGraph } from "./flame-graph-svg.ts";
import { started } from "./rounds.ts";
import { benchToken, seedDatabase } from "./seeded-database.ts";
import { startServer, type Target, writes, wrk } from "./targets.ts";

const CONNECTIONS = 64;
const CUSTOMERS = 100_000;
const WARM_UP = { warmUpSeconds: 0, seconds: 10 };
const RECORDED = { warmUpSeconds: 0, seconds: 5 };
/** Prime, so that samples do not follow a timer. */
const SAMPLES_PER_SECOND = 997;

const [kind, out] = process.argv.slice(2);
if ((kind !== "read" && kind !== "write") || out === undefined) {
  console.error("usage: bun server/bench/flame-graph.ts read|write OUT.svg");
  process.exit(2);
}

const directory = mkdtempSync(join(tmpdir(), "customers-flame-"));
let symbols: string | null = null;
try {
  const seeded = seedDatabase(join(directory, "seed.db"), CUSTOMERS);
  const token = await benchToken(seeded);
  const samples = join(directory, "perf.data");
  const start = () =>
    startServer("service", [process.execPath, "../main.ts", "serve", "--print-url"], {
      ...{ cwd: import.meta.dir, idsFile: seeded.idsFile, token },
      environment: {
        ...{ NODE_ENV: "production", PORT: "0", DATABASE_URL: `sqlite:${seeded.path}` },
        ...{ BUN_JSC_useJITDump: "1", BUN_JSC_jitDumpDirectory: directory },
      },
    });
  const pid = await started({ name: "service", start }, (target) => record(target, samples));
  // Where perf looks for the names of code that lies in no file.
  symbols = `/tmp/perf-${pid}.map`;
  writeFileSync(symbols, compiledFunctions(readFileSync(jitDump(directory, pid))));
  const stacks = stacksOf(await perf("script", "-i", samples, "-F", "comm,ip,sym,dso"));
  if (stacks.length === 0) throw new Error("perf took no samples");
  const title = `${kind === "read" ? "GET ?fields=name,email" : "conditional PUT"}, ${CONNECTIONS} connections: processor time`;
  writeFileSync(out, flameGraph(title, stacks));
} finally {
  rmSync(directory, { recursive: true, force: true });
  if (symbols !== null) rmSync(symbols, { force: true });
}

/** Loads the service and records it once it is warm. @returns its process id */
async function record(target: Target, samples: string): Promise<number> {
  const run = kind === "read" ? wrk : writes;
  await run(target, CONNECTIONS, WARM_UP);
  const [pid = 0] = target.pids();
  const often = ["-F", `${SAMPLES_PER_SECOND}`];
  const what = ["-p", `${pid}`, "-o", samples, "sleep", `${RECORDED.seconds}`];
  await Promise.all([run(target, CONNECTIONS, RECORDED), perf("record", "-q", "-g", ...often, ...what)]);
  return pid;
}

/** @returns what it prints. @throws Error where perf fails */
async function perf(...args: string[]): Promise<string> {
  const child = Bun.spawn(["perf", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const [text, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`perf ${args[0]} failed: ${errors}`);
  return text;
}

function jitDump(directory: string, pid: number): string {
  const name = readdirSync(directory).find((file) => new RegExp(`^jit-(?:\\d+-)?${pid}\\.dump$`).test(file));
  if (name === undefined) throw new Error(`no jitdump of process ${pid}: does this Bun know useJITDump?`);
  return join(directory, name);
}

/** @returns the lines of a perf map: address, size and name, the first two in hexadecimal */
function compiledFunctions(dump: Buffer): string {
  const CODE_LOAD = 0;
  const lines: string[] = [];
  for (let at = dump.readUInt32LE(8); at + 16 <= dump.length; ) {
    const [id, bytes] = [dump.readUInt32LE(at), dump.readUInt32LE(at + 4)];
    if (bytes < 16) break; // The service ended within a record.
    if (id === CODE_LOAD && at + bytes <= dump.length) {
      const [address, size] = [dump.readBigUInt64LE(at + 32), dump.readBigUInt64LE(at + 40)];
      const name = dump.toString("utf8", at + 56, dump.indexOf(0, at + 56));
      lines.push(`${address.toString(16)} ${size.toString(16)} ${name}`);
    }
    at += bytes;
  }
  return `${lines.join("\n")}\n`;
}

/** @param script of `perf script`: a block for each sample, the innermost frame first. @returns callers first */
function stacksOf(script: string): string[][] {
  return script.split("\n\n").flatMap((block) => {
    const [head = "", ...frames] = block.trim().split("\n");
    if (frames.length === 0) return [];
    return [
      [
        head.trim(),
        ...frames
          .map(nameOf)
          .toReversed()
          .filter((name, at, all) => name !== all[at - 1]),
      ],
    ];
  });
}

function nameOf(line: string): string {
  const [, symbol = "", object = ""] = /^\s*[0-9a-f]+ (.*) \((.*)\)$/.exec(line) ?? [];
  const compiled = /^JSC-\w+: (.*?)(?:#\w+)?$/.exec(symbol);
  if (compiled !== null) return compiled[1] || "(anonymous)";
  if (symbol !== "[unknown]") return object.includes("kernel") ? `kernel: ${symbol}` : symbol;
  return /bun(?:\.exe)?$/.test(object) ? "bun" : (object.split("/").at(-1) ?? object);
}

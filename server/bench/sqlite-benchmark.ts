/**
 * On SQLite: `--only=read,write` prints a part. Everything that is compared runs in one call, in
 * turns, on loopback, each server started anew for each round: one process keeps its speed for life,
 * ±25 %. What counts is the median of the ratios of paired rounds. Needs wrk (Debian) and npm.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteStorage } from "../storage/sqlite/sqlite-storage.ts";
import { batchCeiling } from "./batch-ceiling.ts";
import type { LoadResult } from "./load.ts";
import { type Measure, measure, ratio, shown } from "./measure.ts";
import { report, surroundings } from "./report.ts";
import { rounds, type Server, started } from "./rounds.ts";
import { copyDatabase, integrity, type SeededDatabase, seedDatabase } from "./seeded-database.ts";
import { coldStarts } from "./start-up.ts";
import { load, residentMiB, startServer, type Target, wrk } from "./targets.ts";

const isQuick = process.argv.includes("--quick");
const only =
  process.argv
    .find((word) => word.startsWith("--only="))
    ?.slice(7)
    .split(",") ?? null;
const plan = isQuick
  ? {
      rounds: 1,
      seconds: 1,
      warmUpSeconds: 1,
      customers: 20_000,
      many: 50_000,
      few: 1_000,
      mixed: [20_000, 40_000],
      starts: 3,
    }
  : {
      rounds: 5,
      seconds: 4,
      warmUpSeconds: 1,
      customers: 100_000,
      many: 1_000_000,
      few: 1_000,
      mixed: [100_000, 1_000_000],
      starts: 10,
    };
const CONNECTIONS = 64;

requireTools();
const directory = mkdtempSync(join(tmpdir(), "customers-bench-"));
const measures: Measure[] = [];
try {
  const seeded = seedDatabase(join(directory, "seed.db"), plan.customers);
  const ours = await ourServer("ours", seeded);
  const peers = [
    peer(
      "Fastify 5 + better-sqlite3 on Node",
      ["node", "peers/fastify.mjs"],
      copyDatabase(seeded, "fastify"),
    ),
    peer("Hono on Bun + bun:sqlite", [process.execPath, "peers/hono.ts"], copyDatabase(seeded, "hono")),
  ];
  const ceiling = peer("Bun.serve, constant body", [process.execPath, "peers/constant.ts"], seeded);

  if (wants("read")) await measureReads(ours, ceiling, peers);
  if (wants("write")) await measureWrites(ours, peers, seeded);
  if (wants("mix")) await measureMix(ours);
  if (wants("contention")) await measureContention(ours);
  if (wants("size")) await measureSize();
  if (wants("growth")) await measureGrowth(ours);
  if (wants("memory")) await measureMemory();
  if (wants("start")) measures.push(...(await coldStarts(plan.starts)));
} finally {
  if (integrityFaults().length > 0) console.error(`damaged: ${integrityFaults().join(", ")}`);
  rmSync(directory, { recursive: true, force: true });
}
const text = `${surroundings()}; ${plan.rounds} rounds of ${plan.seconds} s. Our side logs a line a request, as in production.`;
const isWhole = only === null; // A part is no report.
report(isWhole ? (isQuick ? "quick" : "full") : "part", text, measures, {
  plan,
  marker: "results",
  isKept: isWhole && !isQuick,
});

async function measureReads(ours: Server, ceiling: Server, peers: readonly Server[]): Promise<void> {
  const what = `GET ?fields=name,email, ${CONNECTIONS} connections, ${plan.customers.toLocaleString("en-US")} customers`;
  const [mine = [], top = [], ...others] = await rounds(
    [ours, ceiling, ...peers],
    plan,
    async (target, seconds) => {
      const { requestsPerSecond, errors } = await wrk(target, CONNECTIONS, seconds);
      if (errors > 0) throw new Error(`${target.name}: ${errors} answers were not 2xx`);
      return requestsPerSecond;
    },
  );
  measures.push(ratio(what, ceiling.name, { atLeast: 0.6 }, mine, top, "req/s"));
  others.forEach((theirs, index) => {
    measures.push(ratio(what, peers[index]?.name ?? "", { atLeast: 1.5 }, mine, theirs, "req/s"));
  });
}

async function measureWrites(ours: Server, peers: readonly Server[], seeded: SeededDatabase): Promise<void> {
  const writesPerSecond = async (target: Target, seconds: number): Promise<number> => {
    const result = await load(target, { connections: CONNECTIONS, seconds, writes: 1 });
    requireExpected(target, result);
    return result.writes.count / result.seconds;
  };
  const what = `conditional PUT, ${CONNECTIONS} connections, each its own customer, power-loss durable`;
  const [mine = [], ...others] = await rounds([ours, ...peers], plan, writesPerSecond);
  others.forEach((theirs, index) => {
    measures.push(ratio(what, peers[index]?.name ?? "", { atLeast: 12 }, mine, theirs, "PUT/s"));
  });
  const ceilings: number[] = [];
  for (let round = 0; round < plan.rounds; round += 1) {
    ceilings.push(batchCeiling(copyDatabase(seeded, `batch${round}`), CONNECTIONS / 2, plan.seconds));
  }
  measures.push(
    ratio(
      what,
      `batches of ${CONNECTIONS / 2} straight into bun:sqlite`,
      { atLeast: 0.35 },
      mine,
      ceilings,
      "PUT/s",
    ),
  );

  const [alone = [], ...othersAlone] = await rounds([ours, ...peers], plan, async (target, seconds) => {
    return (await load(target, { connections: 1, seconds, writes: 1 })).writes.p50;
  });
  othersAlone.forEach((theirs, index) => {
    measures.push(
      ratio(
        "conditional PUT, 1 connection: p50",
        peers[index]?.name ?? "",
        { atMost: 1.3 },
        alone,
        theirs,
        "ms",
      ),
    );
  });
}

async function measureMix(ours: Server): Promise<void> {
  const pure: number[] = [];
  const mixed: number[] = [];
  const options = { connections: CONNECTIONS, seconds: plan.seconds };
  for (let round = 0; round < plan.rounds; round += 1) {
    await started(ours, async (target) => {
      pure.push((await load(target, { ...options, writes: 0 })).reads.p99);
      mixed.push((await load(target, { ...options, writes: 0.1 })).reads.p99);
    });
  }
  const what = `90 % GET, 10 % PUT, ${CONNECTIONS} connections: p99 of the GETs`;
  measures.push(ratio(what, "p99 of GETs alone", { atMost: 3 }, mixed, pure, "ms"));
}

async function measureContention(ours: Server): Promise<void> {
  const [results = []] = await rounds([ours], plan, async (target, seconds) => {
    const result = await load(target, { connections: CONNECTIONS, seconds, writes: 1, isContended: true });
    requireExpected(ours, result);
    return result;
  });
  const accepted = results.map(({ writes, seconds }) => writes.count / seconds);
  const stale = results.reduce((sum, result) => sum + result.stale, 0);
  const what = `${CONNECTIONS} connections read, change and write one customer until accepted`;
  measures.push(
    measure(what, "", null, accepted, "accepted/s", `${shown(stale)} times 412, no other refusal`),
  );
}

async function measureSize(): Promise<void> {
  const small = await ourServer("few", seedDatabase(join(directory, "few.db"), plan.few));
  const large = await ourServer("many", seedDatabase(join(directory, "many.db"), plan.many));
  const [few = [], many = []] = await rounds([small, large], plan, async (target, seconds) => {
    return (await wrk(target, CONNECTIONS, seconds)).requestsPerSecond;
  });
  const what = `GET throughput with ${plan.many.toLocaleString("en-US")} customers`;
  measures.push(
    ratio(what, `with ${plan.few.toLocaleString("en-US")}`, { atLeast: 0.9 }, many, few, "req/s"),
  );
}

/** How the cost of a read grows with connections and with fields. */
async function measureGrowth(ours: Server): Promise<void> {
  const cases: [number, string][] = [
    ...[1, 8, 64, 256].map((connections): [number, string] => [connections, "name,email"]),
    ...["name", "id,name,email,status"].map((fields): [number, string] => [CONNECTIONS, fields]),
  ];
  for (const [connections, fields] of cases) {
    const [rates = []] = await rounds(
      [ours],
      { ...plan, seconds: Math.ceil(plan.seconds / 2) },
      async (target, seconds) => (await wrk(target, connections, seconds, fields)).requestsPerSecond,
    );
    measures.push(measure(`GET ?fields=${fields}, ${connections} connections`, "", null, rates, "req/s"));
  }
}

async function measureMemory(): Promise<void> {
  const server = await ourServer("memory", seedDatabase(join(directory, "memory.db"), plan.customers));
  const [first = 0, last = 0] = plan.mixed;
  const [before, after, peak] = await started(server, async (target) => {
    const figures: number[] = [];
    for (let done = 0; done < last; done += first) {
      const requests = Math.min(first, last - done);
      requireExpected(target, await load(target, { connections: CONNECTIONS, requests, writes: 0.1 }));
      figures.push(residentMiB(target.pids));
    }
    return [figures[0] ?? 0, figures.at(-1) ?? 0, Math.max(...figures)];
  });
  const what = `memory after ${last.toLocaleString("en-US")} mixed requests`;
  const detail = `${shown(before)} → ${shown(after)} MiB, peak ${shown(peak)} MiB`;
  measures.push(
    measure(
      what,
      `after ${first.toLocaleString("en-US")}`,
      { atMost: 10 },
      [after - before],
      "MiB more",
      detail,
    ),
  );
}

async function ourServer(name: string, seeded: SeededDatabase): Promise<Server> {
  const storage = SqliteStorage.open(seeded.path);
  const { token } = await storage.tokens.create(
    { client: "bench", role: "admin", tenant: "default" },
    Date.now(),
    null,
  );
  await storage.close();
  const options = {
    cwd: import.meta.dir,
    idsFile: seeded.idsFile,
    token,
    // As in production: a log line for each request.
    environment: {
      PORT: "0",
      DATABASE_URL: `sqlite:${seeded.path}`,
      LOG_LEVEL: "info",
      NODE_ENV: "production",
    },
  };
  const command = [process.execPath, "../main.ts", "serve", "--print-url"];
  return { name, start: () => startServer(name, command, options) };
}

function peer(name: string, command: readonly string[], { path, idsFile }: SeededDatabase): Server {
  const options = { cwd: import.meta.dir, idsFile, environment: { NODE_ENV: "production" } };
  return { name, start: () => startServer(name, [...command, path], options) };
}

function requireExpected({ name }: { readonly name: string }, { unexpected }: LoadResult): void {
  if (Object.keys(unexpected).length > 0) throw new Error(`${name}: ${JSON.stringify(unexpected)}`);
}

function integrityFaults(): string[] {
  return [...new Bun.Glob("*.db").scanSync({ cwd: directory, absolute: true })].filter(
    (path) => integrity(path) !== "ok",
  );
}

function wants(part: string): boolean {
  return only === null || only.includes(part);
}

function requireTools(): void {
  if (Bun.which("wrk") === null) throw new Error("wrk is missing: install Debian's package wrk");
  const hasPeers = wants("read") || wants("write");
  const built = join(import.meta.dir, "node_modules/better-sqlite3/build/Release/better_sqlite3.node");
  if (!hasPeers || existsSync(built)) return;
  console.error("installing the peers (better-sqlite3 is compiled: some minutes)");
  const { success } = Bun.spawnSync(["npm", "install", "--no-audit", "--no-fund"], {
    cwd: import.meta.dir,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (!success) throw new Error("the peers could not be installed");
}

/**
 * On SQLite: `--only=read,write` prints a part; `--quick` measures reads and writes in a minute, and `--quick --compare
 * RESULTS.json` exits with 1 if one of them is 15 % worse than in that file, twice. Everything that is compared runs in
 * one call, in turns, on loopback, each server started anew for each round: one process keeps its speed for life,
 * ±25 %, once it has compiled its code. What counts is the median of the ratios of paired rounds. Needs wrk and strace (Debian) and npm.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batchCeiling } from "./batch-ceiling.ts";
import { comparison, measuresOf } from "./compare.ts";
import { diskSyncMs, SIMULATED_SYNC_MS, withSlowSync } from "./disk-sync.ts";
import type { LoadResult } from "./load.ts";
import { type Measure, measure, ratio, shown } from "./measure.ts";
import { report, surroundings } from "./report.ts";
import { rounds, type Server, started } from "./rounds.ts";
import { requireSameWork } from "./same-work.ts";
import { benchToken, copyDatabase, integrity, type SeededDatabase, seedDatabase } from "./seeded-database.ts";
import { coldStarts } from "./start-up.ts";
import { load, residentMiB, type Spent, startServer, type Target, writes, wrk } from "./targets.ts";

const isQuick = process.argv.includes("--quick");
const baseline = optionOf("compare");
// Read first: this run may be kept under the same name.
const before = baseline === null ? null : measuresOf(baseline);
const only = optionOf("only")?.split(",") ?? (isQuick ? ["read", "write"] : null);
const plan = isQuick
  ? {
      rounds: 3,
      seconds: 1,
      warmUpSeconds: 2,
      longWarmUpSeconds: 5,
      customers: 100_000,
      many: 200_000,
      few: 1_000,
      mixed: [20_000, 40_000],
      starts: 3,
    }
  : {
      rounds: 7,
      seconds: 2,
      warmUpSeconds: 3,
      longWarmUpSeconds: 10,
      customers: 100_000,
      many: 1_000_000,
      few: 1_000,
      mixed: [100_000, 1_000_000],
      starts: 10,
    };
const CONNECTIONS = 64;
/** Of 10,000 connections in all. */
const IDLE = 9_900;
const BUSY = 100;

/** A server that is compared: ours, or another. */
type Peer = Server & {
  /** @param stderr a file that gets it */
  readonly start: (stderr?: string) => Promise<Target>;
  /** On a disk that takes a millisecond more for each fdatasync. */
  readonly startSlowly: () => Promise<Target>;
  readonly doesSameWork: boolean;
};

requireTools();
const directory = mkdtempSync(join(tmpdir(), "customers-bench-"));
const syncMs = diskSyncMs(directory);
let measures: Measure[] = [];
let isWorse = false;
try {
  const seeded = seedDatabase(join(directory, "seed.db"), plan.customers);
  const token = await benchToken(seeded);
  const ours = ourServer("ours", seeded, token);
  const all = [
    peer("Hono on Bun, same work", [process.execPath, "peers/hono-same-work.ts"], seeded, token, true),
    peer("Fastify 5 on Node, same work", ["node", "peers/fastify-same-work.mjs"], seeded, token, true),
    peer("Hono on Bun + bun:sqlite", [process.execPath, "peers/hono.ts"], seeded, token, false),
    peer("Fastify 5 + better-sqlite3 on Node", ["node", "peers/fastify.mjs"], seeded, token, false),
  ];
  const peers = isQuick ? all.slice(0, 1) : all;
  const constant = [process.execPath, "peers/constant.ts"];
  const ceiling = peer("Bun.serve, constant body", constant, seeded, token, false);
  const noWork = peer("Bun.serve, no work", [process.execPath, "peers/no-work.ts"], seeded, token, false);
  if (wants("read") || wants("write")) await requireSameWorkOfAll([ours, ...peers], seeded);

  const measureParts = async (): Promise<Measure[]> => {
    measures = [];
    if (wants("read")) await measureReads(ours, ceiling, noWork, peers);
    if (wants("write")) await measureWrites(ours, peers, seeded);
    if (wants("mix")) await measureMix(ours);
    if (wants("idle")) await measureIdle(ours);
    if (wants("contention")) await measureContention(ours);
    if (wants("size")) await measureSize();
    if (wants("growth")) await measureGrowth(ours);
    if (wants("memory")) await measureMemory();
    if (wants("start")) measures.push(...(await coldStarts(plan.starts)));
    return measures;
  };
  await measureParts();
  if (before !== null) {
    const first = comparison(before, measures);
    console.log(first.text);
    if (first.worse.length > 0) {
      // How fast a process becomes is chance: what is worse once may be so by chance.
      console.log("Measured again, with every server started anew:\n");
      const again = comparison(before, await measureParts());
      console.log(again.text);
      isWorse = first.worse.some((row) => again.worse.includes(row));
    }
  }
} finally {
  if (integrityFaults().length > 0) console.error(`damaged: ${integrityFaults().join(", ")}`);
  rmSync(directory, { recursive: true, force: true });
}
const text = `${surroundings()}; fdatasync of the disk ${shown(syncMs)} ms; ${plan.rounds} rounds of ${plan.seconds} s. Our side logs a line a request, as in production.`;
const isWhole = only === null; // A part is no report.
report(isWhole ? "full" : isQuick ? "quick" : "part", text, measures, {
  plan,
  marker: "results",
  isKept: isWhole && !isQuick,
});
if (isWorse) process.exitCode = 1;

function perSecond(figures: readonly Spent[]): number[] {
  return figures.map((figure) => figure.perSecond);
}

function processorUs(figures: readonly Spent[]): number[] {
  return figures.map((figure) => figure.processorUs);
}

async function measureReads(
  ours: Server,
  ceiling: Server,
  noWork: Server,
  peers: readonly Peer[],
): Promise<void> {
  const what = `GET ?fields=name,email, ${CONNECTIONS} connections, ${plan.customers.toLocaleString("en-US")} customers`;
  const servers = [ours, ceiling, noWork, ...peers];
  const [mine = [], top = [], idle = [], ...others] = await rounds(servers, plan, (target, span) =>
    wrk(target, CONNECTIONS, span),
  );
  const compare = (name: string, theirs: readonly Spent[], goal: number): void => {
    measures.push(
      ratio(what, name, { atLeast: goal }, perSecond(mine), perSecond(theirs), "req/s"),
      ratio(
        `${what}: processor time`,
        name,
        { atMost: Math.round(100 / goal) / 100 },
        processorUs(mine),
        processorUs(theirs),
        "µs",
      ),
    );
  };
  compare(ceiling.name, top, 0.6);
  // How much of the ceiling is there for any service that reads its requests: it limits what the row above can reach.
  measures.push(ratio(noWork.name, ceiling.name, null, perSecond(idle), perSecond(top), "req/s"));
  measures.push(
    ratio(`${noWork.name}: processor time`, ceiling.name, null, processorUs(idle), processorUs(top), "µs"),
  );
  peers.forEach(({ name, doesSameWork }, index) => {
    compare(name, others[index] ?? [], doesSameWork ? 2 : 1);
  });
}

async function measureWrites(ours: Peer, peers: readonly Peer[], seeded: SeededDatabase): Promise<void> {
  const all = [ours, ...peers];
  const what = `conditional PUT, ${CONNECTIONS} connections, each its own customer, power-loss durable`;
  const [mine = [], ...others] = await rounds(all, plan, (target, span) => writes(target, CONNECTIONS, span));
  peers.forEach(({ name }, index) => {
    const theirs = others[index] ?? [];
    measures.push(
      ratio(what, name, { atLeast: 3 }, perSecond(mine), perSecond(theirs), "PUT/s"),
      ratio(`${what}: processor time`, name, { atMost: 1 }, processorUs(mine), processorUs(theirs), "µs"),
    );
  });
  const ceilings: number[] = [];
  for (let round = 0; round < plan.rounds; round += 1) {
    ceilings.push(batchCeiling(copyDatabase(seeded, `batch${round}`), CONNECTIONS / 2, plan.seconds));
  }
  const batches = `batches of ${CONNECTIONS / 2} straight into bun:sqlite`;
  measures.push(ratio(what, batches, { atLeast: 0.4 }, perSecond(mine), ceilings, "PUT/s"));

  // A lone connection sends too little to make a new process compile what it runs, so 64 warm it up.
  const [alone = [], ...othersAlone] = await rounds(all, plan, async (target, span) => {
    await writes(target, CONNECTIONS, span);
    return (await load(target, { ...span, connections: 1, warmUpSeconds: 1, writes: 1 })).writes.p50;
  });
  peers.forEach(({ name, doesSameWork }, index) => {
    const goal = { atMost: doesSameWork ? 1 : 1.3 };
    measures.push(
      ratio("conditional PUT, 1 connection: p50", name, goal, alone, othersAlone[index] ?? [], "ms"),
    );
  });
  if (isQuick) return;

  const slow = all.map((server) => ({ name: server.name, start: server.startSlowly }));
  const [mineSlow = [], ...othersSlow] = await rounds(slow, plan, (target, span) =>
    writes(target, CONNECTIONS, span),
  );
  peers.forEach(({ name }, index) => {
    const theirs = perSecond(othersSlow[index] ?? []);
    const slowly = `${what}, ${SIMULATED_SYNC_MS} ms more for each fdatasync`;
    measures.push(ratio(slowly, name, { atLeast: 12 }, perSecond(mineSlow), theirs, "PUT/s"));
  });
}

async function measureMix(ours: Server): Promise<void> {
  const pure: number[] = [];
  const mixed: number[] = [];
  const { warmUpSeconds, seconds } = plan;
  const options = { connections: CONNECTIONS, warmUpSeconds, seconds };
  for (let round = 0; round < plan.rounds; round += 1) {
    await started(ours, async (target) => {
      pure.push((await load(target, { ...options, writes: 0 })).reads.p99);
      mixed.push((await load(target, { ...options, writes: 0.1 })).reads.p99);
    });
  }
  const what = `90 % GET, 10 % PUT, ${CONNECTIONS} connections: p99 of the GETs`;
  measures.push(ratio(what, "p99 of GETs alone", { atMost: 2 }, mixed, pure, "ms"));
}

/** What connections that ask nothing cost those that do. */
async function measureIdle(ours: Server): Promise<void> {
  const alone: LoadResult[] = [];
  const beside: LoadResult[] = [];
  const options = { connections: BUSY, warmUpSeconds: plan.warmUpSeconds, seconds: plan.seconds, writes: 0 };
  for (let round = 0; round < plan.rounds; round += 1) {
    await started(ours, async (target) => {
      // Long enough that the order of the two says nothing.
      await load(target, { ...options, seconds: plan.longWarmUpSeconds });
      const measureAlone = async () => alone.push(await load(target, options));
      if (round % 2 === 0) await measureAlone();
      beside.push(await load(target, { ...options, idle: IDLE }));
      if (round % 2 === 1) await measureAlone();
    });
  }
  const what = `GETs on ${BUSY} connections beside ${IDLE.toLocaleString("en-US")} idle ones`;
  const rate = ({ reads, seconds }: LoadResult): number => reads.count / seconds;
  const p99 = ({ reads }: LoadResult): number => reads.p99;
  measures.push(
    ratio(what, "without idle ones", null, beside.map(rate), alone.map(rate), "req/s"),
    ratio(`${what}: p99`, "without idle ones", null, beside.map(p99), alone.map(p99), "ms"),
  );
}

async function measureContention(ours: Server): Promise<void> {
  const [results = []] = await rounds([ours], plan, (target, span) =>
    load(target, { connections: CONNECTIONS, ...span, writes: 1, isContended: true }),
  );
  const accepted = results.map(({ writes, seconds }) => writes.count / seconds);
  const stale = results.reduce((sum, result) => sum + result.stale, 0);
  const what = `${CONNECTIONS} connections read, change and write one customer until accepted`;
  measures.push(
    measure(what, "", null, accepted, "accepted/s", `${shown(stale)} times 412, no other refusal`),
  );
}

async function measureSize(): Promise<void> {
  const small = await seededServer("few", plan.few);
  const large = await seededServer("many", plan.many);
  // A page of the database that is read for the first time costs more than all else of a request. The warm-up reads
  // each customer that is asked for once.
  const onceAllIsRead = { ...plan, warmUpSeconds: plan.longWarmUpSeconds };
  const [few = [], many = []] = await rounds([small, large], onceAllIsRead, async (target, span) => {
    return (await wrk(target, CONNECTIONS, span)).perSecond;
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
      { ...plan, warmUpSeconds: plan.warmUpSeconds - 1, seconds: Math.ceil(plan.seconds / 2) },
      async (target, span) => (await wrk(target, connections, span, fields)).perSecond,
    );
    measures.push(measure(`GET ?fields=${fields}, ${connections} connections`, "", null, rates, "req/s"));
  }
}

async function measureMemory(): Promise<void> {
  const server = await seededServer("memory", plan.customers);
  const [first = 0, last = 0] = plan.mixed;
  const [before, after, peak] = await started(server, async (target) => {
    const figures: number[] = [];
    for (let done = 0; done < last; done += first) {
      const requests = Math.min(first, last - done);
      await load(target, { connections: CONNECTIONS, requests, writes: 0.1 });
      figures.push(residentMiB(target.pids()));
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

async function seededServer(name: string, customers: number): Promise<Server> {
  const seeded = seedDatabase(join(directory, `${name}.db`), customers);
  return ourServer(name, seeded, await benchToken(seeded));
}

function ourServer(name: string, seeded: SeededDatabase, token: string): Peer {
  const command = [process.execPath, "../main.ts", "serve", "--print-url"];
  // As in production: a log line for each request.
  const environment = { PORT: "0", DATABASE_URL: `sqlite:${seeded.path}`, LOG_LEVEL: "info" };
  return server(name, command, seeded, token, { doesSameWork: true, environment });
}

/** A peer gets a copy of the database, so that nobody's lock is another's delay. */
function peer(
  name: string,
  command: readonly string[],
  seeded: SeededDatabase,
  token: string,
  doesSameWork: boolean,
): Peer {
  const copy = copyDatabase(seeded, name.replace(/\W+/g, "-"));
  return server(name, [...command, copy.path], copy, token, { doesSameWork, environment: {} });
}

function server(
  name: string,
  command: readonly string[],
  { idsFile }: SeededDatabase,
  token: string,
  { doesSameWork, environment }: { doesSameWork: boolean; environment: Record<string, string> },
): Peer {
  const options = {
    ...{ cwd: import.meta.dir, idsFile, token },
    environment: { NODE_ENV: "production", ...environment },
  };
  const start = (stderr?: string): Promise<Target> =>
    startServer(name, command, stderr === undefined ? options : { ...options, stderr });
  const startSlowly = (): Promise<Target> => startServer(name, withSlowSync(command), options);
  return { name, doesSameWork, start, startSlowly };
}

async function requireSameWorkOfAll(servers: readonly Peer[], seeded: SeededDatabase): Promise<void> {
  for (const { doesSameWork, start } of servers) if (doesSameWork) await requireSameWork(start, seeded);
}

function integrityFaults(): string[] {
  return [...new Bun.Glob("*.db").scanSync({ cwd: directory, absolute: true })].filter(
    (path) => integrity(path) !== "ok",
  );
}

function wants(part: string): boolean {
  return only === null || only.includes(part);
}

function optionOf(option: string): string | null {
  const at = process.argv.findIndex((word) => word === `--${option}` || word.startsWith(`--${option}=`));
  if (at === -1) return null;
  return process.argv[at]?.split("=")[1] ?? process.argv[at + 1] ?? null;
}

function requireTools(): void {
  for (const tool of isQuick ? ["wrk"] : ["wrk", "strace"]) {
    if (Bun.which(tool) === null) throw new Error(`${tool} is missing: install Debian's package ${tool}`);
  }
  const hasPeers = wants("read") || wants("write");
  const built = join(import.meta.dir, "node_modules/better-sqlite3/build/Release/better_sqlite3.node");
  const plugin = join(import.meta.dir, "node_modules/fastify-metrics");
  if (!hasPeers || (existsSync(built) && existsSync(plugin))) return;
  console.error("installing the peers (better-sqlite3 is compiled: some minutes)");
  const { success } = Bun.spawnSync(["npm", "install", "--no-audit", "--no-fund"], {
    cwd: import.meta.dir,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (!success) throw new Error("the peers could not be installed");
}

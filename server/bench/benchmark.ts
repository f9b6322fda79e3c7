/**
 * The benchmark: `bun run bench`, or `bun run bench --quick` in under a minute;
 * `--only=read,write` prints a part. Everything that is compared runs in one call, in
 * turns, on loopback; what counts is the median of the ratios of paired rounds, since
 * absolute figures on a shared machine vary by tens of percent. Needs wrk (Debian) and npm.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { SqliteStorage } from "../storage/sqlite/sqlite-storage.ts";
import { batchCeiling } from "./batch-ceiling.ts";
import { type Measure, markdown, measure, ratio, shown } from "./measure.ts";
import { clientStarts, kitRuns } from "./other-programs.ts";
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
  ? { rounds: 1, seconds: 1, customers: 20_000, many: 50_000, few: 1_000, mixed: [20_000, 40_000], starts: 3 }
  : {
      rounds: 5,
      seconds: 4,
      customers: 100_000,
      many: 1_000_000,
      few: 1_000,
      mixed: [100_000, 1_000_000],
      starts: 10,
    };
const CONNECTIONS = 64;

requireTools();
const directory = mkdtempSync(join(tmpdir(), "customers-bench-"));
const running: Target[] = [];
const measures: Measure[] = [];
try {
  const seeded = seedDatabase(join(directory, "seed.db"), plan.customers);
  const ours = await startOurs("ours", seeded);
  const peers = [
    await start(
      "Fastify 5 + better-sqlite3 on Node",
      ["node", "peers/fastify.mjs"],
      copyDatabase(seeded, "fastify"),
    ),
    await start(
      "Hono on Bun + bun:sqlite",
      [process.execPath, "peers/hono.ts"],
      copyDatabase(seeded, "hono"),
    ),
  ];
  const ceiling = await start("Bun.serve, constant body", [process.execPath, "peers/constant.ts"], seeded);

  if (wants("read")) await measureReads(ours, ceiling, peers);
  if (wants("write")) await measureWrites(ours, peers, seeded);
  if (wants("mix")) await measureMix(ours);
  if (wants("contention")) await measureContention(ours);
  if (wants("size")) await measureSize();
  if (wants("growth")) await measureGrowth(ours);
  if (wants("memory")) await measureMemory();
  if (wants("start")) measures.push(...(await coldStarts(plan.starts)));
  if (wants("client")) measures.push(...(await clientStarts(plan.starts)));
  if (wants("kit")) measures.push(...(await kitRuns(ours, plan.rounds, join(directory, "kit"))));
} finally {
  await Promise.all(running.map((target) => target.stop()));
  if (integrityFaults().length > 0) console.error(`damaged: ${integrityFaults().join(", ")}`);
  rmSync(directory, { recursive: true, force: true });
}
report();

/** All of `targets` in each round, one after the other; every other round the other way about. */
async function rounds(
  targets: readonly Target[],
  run: (target: Target) => Promise<number>,
): Promise<number[][]> {
  const results: number[][] = targets.map(() => []);
  for (const target of targets) await run(target); // warm
  for (let round = 0; round < plan.rounds; round += 1) {
    const order = targets.map((_, index) => index);
    if (round % 2 === 1) order.reverse();
    for (const index of order) results[index]?.push(await run(targets[index] as Target));
  }
  return results;
}

async function measureReads(ours: Target, ceiling: Target, peers: readonly Target[]): Promise<void> {
  const what = `GET ?fields=name,email, ${CONNECTIONS} connections, ${plan.customers.toLocaleString("en-US")} customers`;
  const [mine = [], top = [], ...others] = await rounds([ours, ceiling, ...peers], async (target) => {
    const { requestsPerSecond, errors } = await wrk(target, CONNECTIONS, plan.seconds);
    if (errors > 0) throw new Error(`${target.name}: ${errors} answers were not 2xx`);
    return requestsPerSecond;
  });
  measures.push(ratio(what, ceiling.name, { atLeast: 0.6 }, mine, top, "req/s"));
  others.forEach((theirs, index) => {
    measures.push(ratio(what, peers[index]?.name ?? "", { atLeast: 1.5 }, mine, theirs, "req/s"));
  });
}

async function measureWrites(ours: Target, peers: readonly Target[], seeded: SeededDatabase): Promise<void> {
  const writesPerSecond = async (target: Target): Promise<number> => {
    const { writes, seconds, unexpected } = await load(target, {
      connections: CONNECTIONS,
      seconds: plan.seconds,
      writes: 1,
    });
    if (Object.keys(unexpected).length > 0) throw new Error(`${target.name}: ${JSON.stringify(unexpected)}`);
    return writes.count / seconds;
  };
  const what = `conditional PUT, ${CONNECTIONS} connections, each its own customer, power-loss durable`;
  const [mine = [], ...others] = await rounds([ours, ...peers], writesPerSecond);
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

  const [alone = [], ...othersAlone] = await rounds([ours, ...peers], async (target) => {
    return (await load(target, { connections: 1, seconds: plan.seconds, writes: 1 })).writes.p50;
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

async function measureMix(ours: Target): Promise<void> {
  const pure: number[] = [];
  const mixed: number[] = [];
  for (let round = 0; round < plan.rounds; round += 1) {
    const options = { connections: CONNECTIONS, seconds: plan.seconds };
    pure.push((await load(ours, { ...options, writes: 0 })).reads.p99);
    mixed.push((await load(ours, { ...options, writes: 0.1 })).reads.p99);
  }
  const what = `90 % GET, 10 % PUT, ${CONNECTIONS} connections: p99 of the GETs`;
  measures.push(ratio(what, "p99 of GETs alone", { atMost: 3 }, mixed, pure, "ms"));
}

async function measureContention(ours: Target): Promise<void> {
  const accepted: number[] = [];
  let stale = 0;
  for (let round = 0; round < plan.rounds; round += 1) {
    const result = await load(ours, {
      connections: CONNECTIONS,
      seconds: plan.seconds,
      writes: 1,
      isContended: true,
    });
    if (Object.keys(result.unexpected).length > 0) throw new Error(JSON.stringify(result.unexpected));
    accepted.push(result.writes.count / result.seconds);
    stale += result.stale;
  }
  const what = `${CONNECTIONS} connections read, change and write one customer until accepted`;
  measures.push(
    measure(what, "", null, accepted, "accepted/s", `${shown(stale)} times 412, no other refusal`),
  );
}

async function measureSize(): Promise<void> {
  const small = await startOurs("few", seedDatabase(join(directory, "few.db"), plan.few));
  const large = await startOurs("many", seedDatabase(join(directory, "many.db"), plan.many));
  const [few = [], many = []] = await rounds([small, large], async (target) => {
    return (await wrk(target, CONNECTIONS, plan.seconds)).requestsPerSecond;
  });
  const what = `GET throughput with ${plan.many.toLocaleString("en-US")} customers`;
  measures.push(
    ratio(what, `with ${plan.few.toLocaleString("en-US")}`, { atLeast: 0.9 }, many, few, "req/s"),
  );
}

/** How the cost of a read grows with connections and with fields. */
async function measureGrowth(ours: Target): Promise<void> {
  const cases: [number, string][] = [
    ...[1, 8, 64, 256].map((connections): [number, string] => [connections, "name,email"]),
    ...["name", "id,name,email,status"].map((fields): [number, string] => [CONNECTIONS, fields]),
  ];
  for (const [connections, fields] of cases) {
    const rates: number[] = [];
    for (let round = 0; round < plan.rounds; round += 1) {
      rates.push((await wrk(ours, connections, Math.ceil(plan.seconds / 2), fields)).requestsPerSecond);
    }
    measures.push(measure(`GET ?fields=${fields}, ${connections} connections`, "", null, rates, "req/s"));
  }
}

async function measureMemory(): Promise<void> {
  const target = await startOurs("memory", seedDatabase(join(directory, "memory.db"), plan.customers));
  const [first = 0, last = 0] = plan.mixed;
  const mixed = (requests: number) => load(target, { connections: CONNECTIONS, requests, writes: 0.1 });
  await mixed(first);
  const before = residentMiB(target.pid);
  let peak = before;
  for (let done = first; done < last; done += first) {
    await mixed(Math.min(first, last - done));
    peak = Math.max(peak, residentMiB(target.pid));
  }
  const after = residentMiB(target.pid);
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

async function startOurs(name: string, seeded: SeededDatabase): Promise<Target> {
  const storage = SqliteStorage.open(seeded.path);
  const { token } = await storage.tokens.create(
    { client: "bench", role: "admin", tenant: "default" },
    Date.now(),
    null,
  );
  await storage.close();
  const target = await startServer(name, [process.execPath, "../main.ts", "serve", "--print-url"], {
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
  });
  running.push(target);
  return target;
}

async function start(name: string, command: string[], seeded: SeededDatabase): Promise<Target> {
  const target = await startServer(name, [...command, seeded.path], {
    cwd: import.meta.dir,
    idsFile: seeded.idsFile,
    environment: { NODE_ENV: "production" },
  });
  running.push(target);
  return target;
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
  if (existsSync(join(import.meta.dir, "node_modules/better-sqlite3/build/Release/better_sqlite3.node")))
    return;
  console.error("installing the peers (better-sqlite3 is compiled: some minutes)");
  const { success } = Bun.spawnSync(["npm", "install", "--no-audit", "--no-fund"], {
    cwd: import.meta.dir,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (!success) throw new Error("the peers could not be installed");
}

function report(): void {
  const cpu = cpus();
  const machine = `${cpu.length} × ${cpu[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}; Bun ${Bun.version}; ${plan.rounds} rounds of ${plan.seconds} s; ${new Date().toISOString().slice(0, 10)}. Our side logs a line a request, as in production.`;
  const text = markdown(measures, machine);
  console.log(text);
  if (only !== null) return; // A part is no report.
  const out = join(import.meta.dir, "results");
  mkdirSync(out, { recursive: true });
  const name = isQuick ? "quick" : "full";
  writeFileSync(join(out, `${name}.md`), text);
  writeFileSync(join(out, `${name}.json`), `${JSON.stringify({ machine, plan, measures }, null, 2)}\n`);
}

/**
 * On PostgreSQL: batches against a statement a request through the same service, against SQLite, and one server
 * against three, which share a port. Everything runs in one call, in turns, on loopback, each server started anew
 * for each round; what counts is the median of the ratios of paired rounds. Takes seven minutes, `--quick` one. Needs
 * wrk and postgresql-15 (Debian).
 *
 * The processor time of a request, in servers and database together, says what a figure of throughput would be on
 * a machine that nobody else uses, and nothing waited for: other load moves it less.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copyDatabase } from "../storage/database-url/copy-database.ts";
import { SqliteStorage } from "../storage/sqlite/sqlite-storage.ts";
import { PostgresCluster } from "../tests/support/postgres/postgres-cluster.ts";
import { type Measure, ratio } from "./measure.ts";
import { report, surroundings } from "./report.ts";
import { rounds, type Server } from "./rounds.ts";
import { seedDatabase } from "./seeded-database.ts";
import { type Span, type Spent, startServer, type Target, writes, wrk } from "./targets.ts";

const isQuick = process.argv.includes("--quick");
const plan = isQuick
  ? { rounds: 1, seconds: 1, warmUpSeconds: 1, customers: 10_000 }
  : // Three servers share what one has to warm up with.
    { rounds: 5, seconds: 4, warmUpSeconds: 3, customers: 100_000 };
const CONNECTIONS = 64;
/** Servers of a kind beside the one. */
const MANY = 3;

if (Bun.which("wrk") === null) throw new Error("wrk is missing: install Debian's package wrk");
const directory = mkdtempSync(join(tmpdir(), "customers-bench-"));
// Commits reach the disk, as those of SQLite do. A vacuum would hit one round and not its pair.
const settings = { shared_buffers: "256MB", autovacuum: "off" };
const cluster = await PostgresCluster.start({ isDurable: true, settings });
const measures: Measure[] = [];
try {
  const { idsFile, path } = seedDatabase(join(directory, "seed.db"), plan.customers);
  const sqliteUrl = `sqlite:${path}`;
  const storage = SqliteStorage.open(path);
  const holder = { client: "bench", role: "admin", tenant: "default" };
  const { token } = await storage.tokens.create(holder, Date.now(), null);
  await storage.close();
  const postgresUrl = await cluster.createDatabase();
  await copyDatabase(sqliteUrl, postgresUrl);
  await cluster.query(postgresUrl, "VACUUM (ANALYZE) customers.customers");

  const service = [process.execPath, "../main.ts", "serve", "--print-url"];
  const oneStatement = [process.execPath, "one-statement-service.ts", postgresUrl];
  const access = { idsFile, token };
  const ours = group("PostgreSQL", service, postgresUrl, 1, access);
  const oursMany = group(`PostgreSQL, ${MANY} servers`, service, postgresUrl, MANY, access);
  const each = group("a statement a request, pg", oneStatement, postgresUrl, 1, access);
  const eachMany = group(
    `a statement a request, pg, ${MANY} servers`,
    oneStatement,
    postgresUrl,
    MANY,
    access,
  );
  const sqlite = group("SQLite", service, sqliteUrl, 1, access);
  const servers = [ours, oursMany, each, eachMany, sqlite];
  await compare("GET ?fields=name,email", 1.5, "req/s", servers, wrk);
  await compare("conditional PUT, durable", 3, "PUT/s", servers, writes);
} finally {
  await cluster.stop();
  rmSync(directory, { recursive: true, force: true });
}
const heading = `${surroundings()}; PostgreSQL 15 on the same machine; ${CONNECTIONS} connections, ${plan.customers.toLocaleString("en-US")} customers; ${plan.rounds} rounds of ${plan.seconds} s.`;
report(isQuick ? "quick.postgres" : "postgres", heading, measures, {
  plan,
  marker: "postgres results",
  isKept: !isQuick,
});

async function compare(
  what: string,
  goal: number,
  unit: string,
  servers: readonly Server[],
  run: (target: Target, connections: number, span: Span) => Promise<Spent>,
): Promise<void> {
  const figures = await rounds(servers, plan, (target, span) => run(target, CONNECTIONS, span));
  const rates = figures.map((rows) => rows.map(({ perSecond }) => perSecond));
  const costs = figures.map((rows) => rows.map(({ processorUs }) => processorUs));
  const [one = [], many = [], each = [], eachMany = [], sqlite = []] = rates;
  const [oneCost = [], manyCost = [], eachCost = [], , sqliteCost = []] = costs;
  const against = "a statement a request, pg";
  measures.push(
    ratio(`${what}, 1 server`, against, { atLeast: goal }, one, each, unit),
    ratio(`${what}, ${MANY} servers`, `${against}, ${MANY} servers`, { atLeast: goal }, many, eachMany, unit),
    ratio(`${what}, ${MANY} servers`, "1 server", { atLeast: 1 }, many, one, unit),
    ratio(`${what}, 1 server`, "SQLite", null, one, sqlite, unit),
    ratio(`${what}, 1 server: processor time`, against, null, oneCost, eachCost, "µs"),
    ratio(`${what}, ${MANY} servers: processor time`, "1 server", null, manyCost, oneCost, "µs"),
    ratio(`${what}, 1 server: processor time`, "SQLite", null, oneCost, sqliteCost, "µs"),
  );
}

/** So many servers of a command on one port. */
function group(
  name: string,
  command: readonly string[],
  databaseUrl: string,
  count: number,
  access: { readonly idsFile: string; readonly token: string },
): Server {
  const startOne = (port: string): Promise<Target> =>
    startServer(name, command, {
      ...access,
      cwd: import.meta.dir,
      environment: {
        PORT: port,
        REUSE_PORT: count > 1 ? "1" : "0",
        DATABASE_URL: databaseUrl,
        // As in production: a log line for each request.
        LOG_LEVEL: "info",
        NODE_ENV: "production",
      },
    });
  return {
    name,
    start: async () => {
      const first = await startOne("0");
      const others: Target[] = [];
      const stop = async (): Promise<void> => {
        for (const target of [first, ...others]) await target.stop();
      };
      try {
        while (others.length < count - 1) others.push(await startOne(new URL(first.url).port));
      } catch (error) {
        await stop();
        throw error;
      }
      const pids = () => [...[first, ...others].flatMap((target) => target.pids()), ...cluster.processIds];
      return { ...first, pids, stop };
    },
  };
}

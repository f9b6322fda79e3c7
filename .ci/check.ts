/**
 * The four test commands. `test` lints, type-checks and runs every *.test.ts; `services` runs those that start the
 * service as a process once more, with two services on one port and one database; `postgres` runs those that start
 * it in any way once more on PostgreSQL; `system` runs every *.system.ts. The last two need Debian packages.
 *
 * The exit code of `bun test` alone is not believed: a file without tests, a skipped test and a
 * `process.exit(0)` inside a test all end with 0. The JUnit file is read, and every test file must stand
 * in it with at least one test that ran.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { PostgresCluster } from "../server/tests/support/postgres/postgres-cluster.ts";
import { NOT_ON_POSTGRES } from "./not-on-postgres.ts";
import { tally } from "./tally.ts";

const SUITES = {
  test: { pattern: "{server,cli,conformance,release}/**/*.test.ts", lint: true },
  services: { pattern: "{server,cli,conformance}/**/*.test.ts", lint: false },
  postgres: { pattern: "server/**/*.test.ts", lint: false },
  system: { pattern: "{server,cli,conformance,release}/**/*.system.ts", lint: false },
} as const;

const name = process.argv[2];
if (name === undefined || !isSuite(name)) {
  console.error("usage: bun .ci/check.ts test|services|postgres|system [name filter of files …]");
  process.exit(2);
}
function isSuite(text: string): text is keyof typeof SUITES {
  return Object.hasOwn(SUITES, text);
}
const suite = SUITES[name];
const filters = process.argv.slice(3);
const root = new URL("..", import.meta.url).pathname;
const bun = process.execPath;

/**
 * The compiled programs that tests start. Built here, since test files share no memory and each would build them;
 * unless ARE_PROGRAMS_COMPILED is 1, where `test` has just built them from this tree.
 */
const client = `${root}dist/customers-under-test`;
const server = `${root}dist/customers-server-under-test`;
const kit = `${root}dist/customers-conformance-under-test`;

/** One server for all test files, which have databases of their own. */
let cluster: PostgresCluster | null = null;

/**
 * Most processes of these tests end before compiled code pays off, and before memory that they give back is wanted. Together
 * these settings save a sixth to a quarter of the processor time. The programs under test get the first two; system tests
 * run them as they are.
 */
const runtime =
  name === "system"
    ? {}
    : {
        BUN_JSC_thresholdForJITAfterWarmUp: "2000",
        BUN_JSC_thresholdForOptimizeAfterWarmUp: "20000",
        MIMALLOC_PURGE_DELAY: "-1",
      };

async function run(command: string[]): Promise<number> {
  const how = name === "services" ? { TEST_SERVICES: "2" } : {};
  const engine = cluster === null ? {} : { TEST_POSTGRES: cluster.url("postgres") };
  const programs = { TEST_SERVER: server, TEST_CLIENT: client, TEST_KIT: kit };
  const env = { ...process.env, ...runtime, ...how, ...engine, ...programs };
  const child = Bun.spawn(command, { cwd: root, env, stdio: ["ignore", "inherit", "inherit"] });
  return await child.exited;
}

async function step(title: string, command: string[]): Promise<void> {
  console.error(`— ${title}`);
  const code = await run(command);
  if (code !== 0) {
    console.error(`${title} failed (exit ${code})`);
    process.exit(1);
  }
}

function textOf(file: string): string {
  return readFileSync(`${root}${file}`, "utf8");
}

/** Starts the service as a process of its own; others take a directory or a command from that file. */
function startsProcess(file: string): boolean {
  return textOf(file).includes("/server-process.ts") && /\.(?:start|launch)\(/.test(textOf(file));
}

/** Starts the service as a process, or in that of the test; or asks for its data in one of several ways. */
function startsService(file: string): boolean {
  return /\/(?:server-process|test-service)\.ts"/.test(textOf(file));
}

function isOnPostgres(file: string): boolean {
  return !Object.keys(NOT_ON_POSTGRES).some((start) => file.startsWith(start));
}

const files = [...new Bun.Glob(suite.pattern).scanSync({ cwd: root })]
  // conformance/suite is the kit's own front for QA; it wants the report of a run and is started by a test of the kit.
  .filter((file) => !file.includes("node_modules/") && !file.startsWith("conformance/suite/"))
  .filter((file) => name !== "services" || startsProcess(file))
  .filter((file) => name !== "postgres" || (startsService(file) && isOnPostgres(file)))
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  .sort();
if (files.length === 0) {
  console.error(`no file matches ${suite.pattern}`);
  process.exit(1);
}

mkdirSync(`${root}dist`, { recursive: true });
const out = `${root}.ci/out`;
mkdirSync(out, { recursive: true });
const steps: Record<string, string[]> = {};
if (suite.lint && filters.length === 0) {
  steps["biome"] = [bun, "node_modules/@biomejs/biome/bin/biome", "ci", "."];
  // One checker: each further one checks much of the same again. What has not changed since an earlier run is not
  // checked anew; a file counts as changed by its content.
  const state = ["--incremental", "--tsBuildInfoFile", `${out}/tsc.tsbuildinfo`];
  steps["tsc"] = [bun, "node_modules/typescript/bin/tsc", "-p", ".", "--checkers", "1", ...state];
}
if (process.env["ARE_PROGRAMS_COMPILED"] !== "1") {
  if (files.some((file) => file.startsWith("cli/")))
    steps["compile the client"] = [bun, "release/build.ts", "customers", client];
  if (files.some((file) => file.startsWith("conformance/")))
    steps["compile the kit"] = [bun, "release/build.ts", "customers-conformance", kit];
  steps["compile the service"] = [bun, "release/build.ts", "customers-server", server];
}
await Promise.all(Object.entries(steps).map(([title, command]) => step(title, command)));

const junit = `${out}/${name}.xml`;
rmSync(junit, { force: true });
/** Durations of an earlier run: the slowest files start first. */
const timings = `${out}/${name}-timings.json`;
console.error(`— bun test: ${files.length} files`);
// Test files share nothing: each has its own databases, ports and processes. They spend half of their time waiting, so
// two for each core keep it busy. System tests give proxies a port that was free a moment ago, which another test
// could take.
const workers = Number(process.env["TEST_WORKERS"] ?? 2 * availableParallelism());
const parallel =
  name === "system" ? [] : [`--parallel=${workers}`, `--timings=${timings}`, "--update-timings"];
// A worker keeps the modules that it loaded for its next file, as `bun test` does with several files: to load
// and warm them up anew takes half a second of processor time a file.
if (name === "test") parallel.push("--no-isolate");
if (name === "postgres") {
  for (const [start, reason] of Object.entries(NOT_ON_POSTGRES))
    console.error(`not run: ${start}: ${reason}`);
  cluster = await PostgresCluster.start();
}
const exitCode = await run([
  bun,
  "test",
  "--timeout=300000", // On a machine with ten times its load a run of the kit took 120 s.
  ...parallel,
  "--reporter=junit",
  `--reporter-outfile=${junit}`,
  ...files.map((file) => `./${file}`),
]);

await cluster?.stop();

/** Of the files that ran, the ten that took longest, with their milliseconds: a rise in one is seen at once. */
function slowest(timings: string, ran: readonly string[]): [file: string, ms: number][] {
  if (!existsSync(timings)) return []; // The system tests, one after the other, write none.
  const { files }: { files: Record<string, number> } = JSON.parse(readFileSync(timings, "utf8"));
  return Object.entries(files)
    .filter(([file]) => ran.includes(file))
    .sort(([, a], [, b]) => b - a)
    .slice(0, 10);
}

const counts = await tally(junit);
const silent = files.filter((file) => !counts.files.has(file));
for (const file of silent) console.error(`${file}: ran no test`);
if (counts.skipped > 0) console.error(`${counts.skipped} tests were skipped: none may be`);
for (const [file, ms] of slowest(timings, files))
  console.error(`${(ms / 1000).toFixed(1).padStart(6)} s ${file}`);
console.log(`${counts.passed} passed, ${counts.failures.length} failed`);
process.exit(
  exitCode === 0 &&
    counts.failures.length === 0 &&
    counts.skipped === 0 &&
    silent.length === 0 &&
    counts.passed > 0
    ? 0
    : 1,
);

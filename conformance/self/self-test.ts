/**
 * `bun run conformance:self [name …]`: the kit against every faulty service, sound variant, failing environment and
 * target, in a thread a core. Unless something is selected or pinned, a fault is run against the rules that it breaks first,
 * and against all of them only where these do not do as pinned, and a variant in a short run. `--whole` runs everything whole.
 * Names select lines that contain them, `--only=IFM,FLD-03` rules, `--shard=1/2` a part.
 * `--write` pins in golden.json what the faults trip, `--widen` marks what differs from run to run. `--weather=20` tries
 * each environment at twenty moments; `--seed=N` repeats the moments of a run. `--json=FILE` keeps the verdicts.
 * Pinning, and a whole run in which everything holds, write MUTANTS.md, RULES.md, docs/coverage.md and run/proven.json.
 */
import { appendFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { coverageMarkdown } from "../report/coverage.ts";
import { rulesMarkdown } from "../report/rule-listing.ts";
import type { Verdict } from "./case.ts";
import { FAULTS } from "./faults.ts";
import { lookedAt, readGolden, updated, writeGolden } from "./golden.ts";
import { complaintsOf, type Line, linesOf, shortened } from "./matrix.ts";
import { mutants, proven } from "./mutants.ts";
import type { Answer } from "./worker.ts";

/** Lines that one thread has under way: they wait for their own sockets and timers much of the time. */
const AT_ONCE = 3;

function share(lines: readonly Line[], done: (answer: Answer) => void): Promise<void> {
  const queue = [...lines];
  const thread = () =>
    new Promise<void>((resolve) => {
      const worker = new Worker(new URL("./worker.ts", import.meta.url).href);
      let under = 0;
      const next = () => {
        const line = queue.shift();
        if (line !== undefined) {
          under += 1;
          worker.postMessage(line);
        } else if (under === 0) {
          worker.terminate();
          resolve();
        }
      };
      worker.onmessage = ({ data }: MessageEvent<Answer>) => {
        under -= 1;
        done(data);
        next();
      };
      worker.onerror = ({ message }) => {
        done({ crashed: message });
        under = 0;
        worker.terminate();
        resolve();
      };
      for (let n = 0; n < AT_ONCE; n += 1) next();
    });
  return Promise.all(Array.from({ length: availableParallelism() }, thread)).then(() => undefined);
}

const string = { type: "string" } as const;
const boolean = { type: "boolean", default: false } as const;
const { values: given, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ whole: boolean, write: boolean, widen: boolean },
    ...{ only: string, json: string, seed: string, shard: string, weather: string },
  },
});
const { widen, json } = given;
const only = given.only?.split(",");
const seed = Number(given.seed ?? Math.floor(Math.random() * 1_000_000));
const seeds = Array.from({ length: Number(given.weather ?? 1) }, (_, n) => seed + n);
const [shard = 1, shards = 1] = given.shard?.split("/").map(Number) ?? [];
const pinning = given.write || widen;
const isSelection = names.length > 0 || only !== undefined;
const isShort = !given.whole && !isSelection && !pinning;
const lines = linesOf(seeds)
  .filter(({ id }) => names.length === 0 || names.some((name) => id.includes(name)))
  .filter((_, index) => index % shards === shard - 1)
  .map((line) => (only === undefined ? line : { ...line, only }));
if (lines.length === 0) {
  console.error(`no line of the matrix is called ${names.join(" or ")}`);
  process.exit(2);
}

const golden = await readGolden();
const started = performance.now();
const verdicts: Verdict[] = [];
let bad = 0;
const unclear: Line[] = [];
await share(isShort ? lines.map(shortened) : lines, done);
await share(unclear, done);

function done(answer: Answer): void {
  if ("crashed" in answer) {
    bad += 1;
    console.log(`CRASH ${answer.crashed}`);
    return;
  }
  const { line, verdict } = answer;
  const complaints = pinning ? verdict.complaints : complaintsOf(verdict, golden, line.only);
  if (isShort && complaints.length > 0 && line.only !== undefined) {
    unclear.push({ kind: line.kind, id: line.id });
    return;
  }
  verdicts.push({ ...verdict, complaints });
  if (json !== undefined) appendFileSync(json, `${JSON.stringify({ ...verdict, complaints })}\n`);
  if (complaints.length > 0) bad += 1;
  if (complaints.length > 0 || names.length > 0) print(verdict, complaints);
}

function print({ kind, id, fired, exitCode, requests, durationMs }: Verdict, complaints: string[]): void {
  console.log(
    `${complaints.length === 0 ? "ok  " : "FAIL"} ${kind} ${id} (exit ${exitCode}, ${requests} requests, ${Math.round(durationMs)} ms) ${fired.join(" ")}`,
  );
  for (const complaint of complaints) console.log(`       ${complaint.replaceAll("\n", "\n         ")}`);
}

const { user, system } = process.cpuUsage();
const seconds = (ms: number) => (ms / 1000).toFixed(0);
console.log(
  `${verdicts.length} of ${lines.length} lines run in ${seconds(performance.now() - started)} s (${seconds((user + system) / 1000)} s of processors), ${bad} not as they should be; weather: --seed=${seed}`,
);
const now = pinning ? updated(golden, verdicts, FAULTS, widen) : lookedAt(golden, verdicts);
if (pinning || (given.whole && !isSelection && shards === 1 && bad === 0)) {
  await writeGolden(now);
  for (const [path, text] of [
    ["MUTANTS.md", mutants(now)],
    ["RULES.md", rulesMarkdown()],
    ["docs/coverage.md", coverageMarkdown()],
    ["run/proven.json", `${JSON.stringify(proven(now), null, 2)}\n`],
  ] as const)
    await Bun.write(new URL(`../${path}`, import.meta.url), text);
}
process.exit(bad > 0 || verdicts.length < lines.length ? 1 : 0);

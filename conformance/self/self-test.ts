/**
 * `bun run conformance:self [name …]`: the kit against every faulty service, sound variant, failing environment and
 * target, in a thread a core. Unless something is selected or pinned, a fault is run against the rules that it breaks first,
 * and against all of them only where these do not do as pinned, and variants in bundles and a short run. `--whole` runs
 * everything whole.
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
import {
  apartLines,
  complaintsOf,
  hiddenLines,
  type Line,
  linesOf,
  PLAIN_VARIANT,
  shortLines,
} from "./matrix.ts";
import { mutants, proven } from "./mutants.ts";
import type { Answer } from "./worker.ts";

/** Lines that one thread has under way: they wait for their own sockets and timers much of the time. */
const AT_ONCE = 3;

/** @param done is given each answer, and returns lines that are to be run because of it: they come next */
async function share(lines: readonly Line[], done: (answer: Answer) => readonly Line[]): Promise<void> {
  const queue = [...lines];
  let ended = () => {};
  const end = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const threads = Array.from({ length: availableParallelism() }, () => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url).href);
    const thread = { worker, under: 0, isDead: false };
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      thread.under -= 1;
      queue.unshift(...done(data));
      assign();
    };
    worker.onerror = ({ message }) => {
      done({ crashed: message });
      Object.assign(thread, { under: 0, isDead: true });
      assign();
    };
    return thread;
  });
  // A thread that has nothing to do is kept: an answer to another one may bring lines.
  function assign() {
    for (let n = 0; n < AT_ONCE; n += 1)
      for (const thread of threads.filter(({ isDead, under }) => !isDead && under <= n)) {
        const line = queue.shift();
        if (line === undefined) break;
        thread.under += 1;
        thread.worker.postMessage(line);
      }
    if (threads.every(({ under }) => under === 0)) ended();
  }
  assign();
  await end;
  for (const { worker } of threads) worker.terminate();
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
const lines = (isShort ? shortLines(seeds) : linesOf(seeds))
  .filter(({ id }) => names.length === 0 || names.some((name) => id.includes(name)))
  .filter(({ id }, index) => index % shards === shard - 1 || (isShort && id === PLAIN_VARIANT))
  .map((line) => (only === undefined ? line : { ...line, only }));
if (lines.length === 0) {
  console.error(`no line of the matrix is called ${names.join(" or ")}`);
  process.exit(2);
}

const golden = await readGolden();
const started = performance.now();
const verdicts: Verdict[] = [];
let bad = 0;
let planned = lines.length;
const shownAlone = new Set<string>();
await share(lines, done);

function done(answer: Answer): Line[] {
  if ("crashed" in answer) {
    bad += 1;
    console.log(`CRASH ${answer.crashed}`);
    return [];
  }
  const { line, verdict } = answer;
  const complaints = pinning ? verdict.complaints : complaintsOf(verdict, golden, line.only);
  const isBad = complaints.length > 0;
  // Where nothing fires, the rules of a short run may be too few for a fault that comes and goes.
  const isUnclear = line.kind === "fault" && line.only !== undefined && (isBad || verdict.fired.length === 0);
  if (isShort && isUnclear) return [{ kind: line.kind, id: line.id }];
  verdicts.push({ ...verdict, complaints });
  if (json !== undefined) appendFileSync(json, `${JSON.stringify({ ...verdict, complaints })}\n`);
  if (isBad) bad += 1;
  if (isBad || names.length > 0) print(verdict, complaints);
  const following = [...(isBad ? apartLines(line) : []), ...(line.kind === "variant" ? newlyHidden() : [])];
  planned += following.length;
  return following;
}

/** What the bundles that have been run leave to be shown by their variants alone. */
function newlyHidden(): Line[] {
  const hidden = hiddenLines(verdicts).filter(({ id }) => isShort && !shownAlone.has(id));
  for (const { id } of hidden) shownAlone.add(id);
  return hidden;
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
  `${verdicts.length} of ${planned} lines run in ${seconds(performance.now() - started)} s (${seconds((user + system) / 1000)} s of processors), ${bad} not as they should be; weather: --seed=${seed}`,
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
process.exit(bad > 0 || verdicts.length < planned ? 1 : 0);

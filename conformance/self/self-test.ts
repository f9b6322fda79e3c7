/**
 * `bun run conformance:self [name …]`: the kit against every faulty server, variant and target, in a thread a
 * core. Writes MUTANTS.md when everything holds; with names, or with `--only=IFM,FLD-03`, runs a part and
 * writes nothing. `--json=FILE` keeps the verdicts.
 */
import { availableParallelism } from "node:os";
import type { Verdict } from "./case.ts";
import { LINES, type Line } from "./matrix.ts";
import { mutants } from "./mutants.ts";
import type { Answer } from "./worker.ts";

/** Lines that one thread has under way: they wait for their own sockets and timers much of the time. */
const AT_ONCE = 3;
/** Complaints shown of one line; a run of that line alone shows them all. */
const COMPLAINTS_MAX = 40;
/** Of a machine with two cores and nothing else to do; so processor time is judged, which load does not stretch. */
const BUDGET_MS = 240_000;
const CORES = 2;

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

const names = process.argv.slice(2).filter((each) => !each.startsWith("--"));
const only = process.argv
  .find((each) => each.startsWith("--only="))
  ?.slice("--only=".length)
  .split(",");
const json = process.argv.find((each) => each.startsWith("--json="))?.slice("--json=".length);
const whole = names.length === 0 && only === undefined;
const lines = LINES.filter((line) => names.length === 0 || names.some((name) => line.id.includes(name))).map(
  (line) => (only === undefined ? line : { ...line, only }),
);
if (lines.length === 0) {
  console.error(`no line of the matrix is called ${names.join(" or ")}`);
  process.exit(2);
}
const started = performance.now();
const verdicts: Verdict[] = [];
const crashes: string[] = [];
await share(lines, (answer) => {
  if ("crashed" in answer) crashes.push(answer.crashed);
  else {
    verdicts.push(answer.verdict);
    if (answer.verdict.complaints.length > 0 || names.length > 0) print(answer.verdict);
  }
});

function print({ kind, id, ran, fired, exitCode, durationMs, complaints }: Verdict): void {
  console.log(
    `${complaints.length === 0 ? "ok  " : "FAIL"} ${kind} ${id} (ran ${ran}, exit ${exitCode}, ${Math.round(durationMs)} ms) ${fired.join(" ")}`,
  );
  for (const complaint of complaints.slice(0, names.length > 0 ? undefined : COMPLAINTS_MAX))
    console.log(`       ${complaint.replaceAll("\n", "\n         ")}`);
}

const tookMs = performance.now() - started;
const { user, system } = process.cpuUsage();
const processorMs = (user + system) / 1000;
const bad = verdicts.filter(({ complaints }) => complaints.length > 0).length;
for (const crash of crashes) console.log(`CRASH ${crash}`);
console.log(
  `${verdicts.length} of ${lines.length} lines run in ${(tookMs / 1000).toFixed(0)} s (${(processorMs / 1000).toFixed(0)} s of processors), ${bad} not as they should be`,
);
if (json !== undefined) await Bun.write(json, JSON.stringify(verdicts));
let faulty = bad + crashes.length > 0 || verdicts.length < lines.length;
if (whole) {
  const slow = processorMs / CORES > BUDGET_MS;
  if (slow) console.log(`needs more than ${BUDGET_MS / 1000} s on ${CORES} cores`);
  faulty ||= slow;
  if (!faulty) await Bun.write(new URL("../MUTANTS.md", import.meta.url), mutants());
}
process.exit(faulty ? 1 : 0);

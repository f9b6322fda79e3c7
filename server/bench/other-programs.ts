import { join } from "node:path";
import { type Measure, measure } from "./measure.ts";
import type { Target } from "./targets.ts";

const ROOT = join(import.meta.dir, "../..");

type ClientFigures = {
  readonly figures: readonly {
    readonly name: string;
    readonly medianMs: number;
    readonly bestMs: number;
    readonly limitMs: number | null;
  }[];
};

/** The client's start-up, measured by its own script beside curl. */
export async function clientStarts(rounds: number): Promise<Measure[]> {
  const script = join(ROOT, "cli/bench/start-up.ts");
  const { figures } = (await Bun.$`${process.execPath} ${script} --json --rounds ${rounds}`
    .quiet()
    .json()) as ClientFigures;
  return figures.map(({ name, medianMs, bestMs, limitMs }) => ({
    ...measure(
      `customers ${name}`,
      "",
      limitMs === null ? null : { atMost: limitMs },
      [bestMs, medianMs],
      "ms",
    ),
    median: medianMs,
    isReached: limitMs === null ? null : medianMs <= limitMs,
    detail: "median, and from the best to the median",
  }));
}

/** Whole runs of the kit against the service, from the start of its process to its end. */
export async function kitRuns({ url, token }: Target, rounds: number, out: string): Promise<Measure[]> {
  const runSeconds = async (...flags: string[]): Promise<number> => {
    const startedAt = performance.now();
    const command = [
      process.execPath,
      join(ROOT, "conformance/main.ts"),
      "run",
      "--base-url",
      url,
      "--out",
      out,
    ];
    const child = Bun.spawn(
      [...command, "--header-env", "Authorization: Bearer $BENCH_TOKEN", "--allow-incomplete", ...flags],
      {
        cwd: ROOT,
        env: { ...process.env, BENCH_TOKEN: token ?? "" },
        stdio: ["ignore", "ignore", "inherit"],
      },
    );
    const code = await child.exited;
    if (code !== 0) throw new Error(`the kit ended with ${code}`);
    return (performance.now() - startedAt) / 1000;
  };
  const whole: number[] = [];
  const quick: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    whole.push(await runSeconds());
    quick.push(await runSeconds("--quick"));
  }
  return [
    measure("conformance run against the service", "", { atMost: 5 }, whole, "s"),
    measure("conformance run --quick", "", null, quick, "s"),
  ];
}

/** Counters that cannot be compared: several processes behind one metrics URL, or a process that restarts. */
import { expect, test } from "bun:test";
import { runKit } from "../run/engine.ts";
import { type Seams, soundSeams } from "../self/service/seams.ts";
import { CREDENTIALS, type Faulty } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions, type RunOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";

const ONE = { labels: false, format: "prometheus", replicas: 1, guarded: true } as const;

/** A balancer in front of two processes, which sends each scrape to the other. */
function balanced(): Partial<Seams> {
  let scrapes = 0;
  return {
    around: (request, next) => {
      if (request.path !== "/metrics") return next(request);
      scrapes += 1;
      return next({ ...request, path: `/metrics/${scrapes % 2}` });
    },
  };
}

/** A balancer that sends each connection to one of two processes, and all scrapes to the first. */
function sticky(): Partial<Seams> {
  const first = new WeakMap<object, boolean>();
  let connections = 0;
  return {
    counted: (reply, { method, connection }) => {
      const known = first.get(connection) ?? connections++ % 2 === 0;
      first.set(connection, known);
      const counter = ({ 428: "required", 412: "failed" } as const)[reply.status];
      return method === "GET" || counter === undefined || !known ? [] : [counter];
    },
  };
}

/** Counters begin again at nothing after so many refused writes. @param says whether the start time tells of it */
function restarting(after: number, says: boolean): Partial<Seams> {
  let refused = 0;
  let base: Map<string, number> | undefined;
  return {
    counted: (reply, request) => {
      if (request.method === "GET" || (reply.status !== 412 && reply.status !== 428)) return [];
      refused += 1;
      return [reply.status === 428 ? "required" : "failed"];
    },
    scrape: (text) => {
      const values = [...text.matchAll(/^(http_\w+_total) (\d+)$/gm)];
      if (refused >= after && base === undefined)
        base = new Map(values.map(([, name = "", value]) => [name, Number(value)]));
      const since = text.replace(/^(http_\w+_total) (\d+)$/gm, (_, name, value) => {
        return `${name} ${Number(value) - (base?.get(name) ?? 0)}`;
      });
      if (!says) return since.replace(/.*process_start_time_seconds.*\n/g, "");
      return base === undefined ? since : since.replace("1.7e+09", "1.8e+09");
    },
  };
}

/** Counts each refusal so long after its answer, as counters do that are collected from elsewhere. */
const late =
  (lateMs: number): Faulty =>
  (service) => ({
    counted: (reply, { method }) => {
      const counter = ({ 428: "required", 412: "failed" } as const)[reply.status];
      if (method !== "GET" && counter !== undefined)
        setTimeout(() => service.replicas[0]?.add(counter, method, "a"), lateMs);
      return [];
    },
  });

const lagging = (lagMs: number) => `[metrics]\nlag-ms = ${lagMs}\n`;

const outcomes = (rules: readonly { id: string; outcome: string; reason: string }[]) =>
  rules.map(({ id, outcome, reason }) => `${id} ${outcome}: ${reason}`);

async function run(
  replicas: 1 | 2,
  faulty: Faulty,
  exclusive: boolean,
  {
    profileText = lagging(100),
    only = ["MET"],
    limits = {},
  }: { profileText?: string; only?: string[]; limits?: Partial<RunOptions> } = {},
) {
  const server = await startSoundServer({ ...PLAIN, metrics: { ...ONE, replicas } }, faulty);
  const line = (key: keyof typeof CREDENTIALS) => [`Authorization: Bearer ${CREDENTIALS[key]}`];
  const flags = {
    baseUrl: server.url,
    header: line("main"),
    metricsUrl: [`${server.url}/metrics`],
    metricsHeader: line("metrics"),
    profileText,
  };
  const options = { ...defaultOptions, mode: "quick", only, exclusive, ...limits } as const;
  const report = await runKit(readProfile(flags, {}), options);
  await server.close();
  return report;
}

test.each([true, false])(
  "two processes behind one metrics URL are not accused, and the remedy is named (exclusive: %p)",
  async (exclusive) => {
    const { rules } = await run(2, balanced, exclusive);
    expect(rules.filter(({ outcome }) => outcome === "violation")).toEqual([]);
    const open = rules.filter(({ outcome }) => outcome !== "pass");
    expect(open.length).toBeGreaterThan(5);
    for (const { reason } of open) expect(reason).toContain("--metrics-url");
  },
);

test("two processes, one of which alone can be scraped, are not accused, and the remedy is named", async () => {
  const { rules } = await run(1, sticky, true);
  expect(outcomes(rules.filter(({ outcome }) => outcome === "violation"))).toEqual([]);
  const open = rules.filter(({ outcome }) => outcome !== "pass");
  expect(open.length).toBeGreaterThan(2);
  for (const { reason } of open) expect(reason).toContain("--metrics-url");
});

test.each([
  [5, true],
  [20, false],
  [60, true],
  [60, false],
])(
  "a process that restarts after %p refusals is not accused (its start time says so: %p)",
  async (after, says) => {
    const { rules } = await run(1, () => restarting(after, says), true);
    expect(
      rules.filter(({ outcome }) => outcome === "violation").map(({ id, reason }) => [id, reason]),
    ).toEqual([]);
    const open = rules.filter(({ outcome }) => outcome !== "pass");
    if (says) expect(open.map(({ reason }) => reason).join("\n")).toContain("restarted");
  },
);

test("counters that come some time later are waited for, in a quick run too", async () => {
  const { rules } = await run(1, late(250), false, { profileText: "", only: ["MET-01", "MET-09"] });
  expect(outcomes(rules.filter(({ outcome }) => outcome !== "pass"))).toEqual([]);
});

test.each([true, false])(
  "counters that come later than the profile allows are not accused, and the reason names it (exclusive: %p)",
  async (exclusive) => {
    const { rules } = await run(1, late(200), exclusive, { profileText: lagging(100) });
    expect(outcomes(rules.filter(({ outcome }) => outcome === "violation"))).toEqual([]);
    const open = rules.filter(({ outcome }) => outcome !== "pass");
    expect(open.length).toBeGreaterThan(5);
    for (const { reason } of open) expect(reason).toContain("lag-ms");
  },
);

/** Where the profile names no lag, short ones in place of 2 s and 10 s. */
const unnamed = (counterWatchMs: number) => ({
  profileText: "",
  only: ["MET-01", "MET-02", "MET-09"],
  limits: { counterLagMs: 50, counterWatchMs },
});

test.each([true, false])(
  "where no lag is named, counters that still rise while they are watched are not accused (exclusive: %p)",
  async (exclusive) => {
    const { rules } = await run(1, late(300), exclusive, unnamed(30_000));
    for (const { id, outcome, reason } of rules)
      expect([id, outcome, reason]).toEqual([id, "inconclusive", expect.stringContaining("lag-ms")]);
  },
);

test("where no lag is named, counts that do not come while they are watched are lost", async () => {
  const lost: Faulty = () => ({ counted: () => [] });
  const { rules } = await run(1, lost, true, unnamed(100));
  expect(rules.map(({ outcome }) => outcome)).toEqual(["violation", "violation", "violation"]);
});

const nameless = (text: string) => text.replace(/.*process_start_time_seconds.*\n/g, "");

test("without the start of the process counters that are right are taken for right", async () => {
  const { rules } = await run(1, () => ({ scrape: nameless }), true, { only: ["MET-09"] });
  expect(rules.map(({ outcome }) => outcome)).toEqual(["pass"]);
});

test("without the start of the process losses over the whole run may be a restart, and the reason says so", async () => {
  let puts = 0;
  // Those of the first rules, which no window of MET-09 sees.
  const losing: Faulty = ({ deployment }) => ({
    scrape: nameless,
    counted: (reply, request) => {
      const sound = soundSeams(deployment).counted(reply, request);
      if (sound.length > 0) puts += 1;
      return sound.length > 0 && puts === 1 ? [] : sound;
    },
  });
  const { rules } = await run(1, losing, true, { only: ["IFM-04", "MET-09"] });
  const met09 = rules.find(({ id }) => id === "MET-09");
  expect([met09?.outcome, met09?.reason]).toEqual(["could-not-run", expect.stringContaining("export it")]);
});

/** A sound deployment whose environment fails is never accused: an answer that says nothing about a rule proves nothing. */
import { expect, test } from "bun:test";
import { runKit } from "../run/engine.ts";
import { profileFlags } from "../self/case.ts";
import { customerOf } from "../self/fault.ts";
import { setHeader } from "../self/service/http-socket.ts";
import type { Seams } from "../self/service/seams.ts";
import type { Faulty } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions } from "../target/options.ts";
import { type ProfileFlags, readProfile } from "../target/profile.ts";

type Deployed = { readonly url: string };

const OPTIONS = {
  ...defaultOptions,
  mode: "quick",
  rounds: 4,
  connections: 4,
  exclusive: true,
} as const;

async function run(
  faulty: Faulty,
  only: readonly string[],
  flags: (server: Deployed) => Partial<ProfileFlags> = () => ({}),
  deployment: Partial<typeof PLAIN> = {},
  { patienceMs }: { patienceMs: number } = defaultOptions,
) {
  const plain = { ...PLAIN, ...deployment };
  const server = await startSoundServer(plain, faulty);
  try {
    const profile = readProfile({ ...profileFlags(server, plain), ...flags(server) }, {});
    const report = await runKit(profile, { ...OPTIONS, only, patienceMs });
    const accused = report.rules
      .filter(({ outcome }) => outcome === "violation" || outcome === "warning" || outcome === "kit-error")
      .map(({ id, reason }) => `${id}: ${reason}`);
    return { report, accused };
  } finally {
    await server.close();
  }
}

const RULES = ["ETG-07", "IFM-01", "IFM-03", "IFM-04", "IFM-40", "IFM-41", "FLD-01", "FLD-03", "ATM-01"];
const isCustomers = (path: string) => path.includes("/customers");

/** The nth to the mth request for customers is answered with this status and never reaches the service. */
const down =
  (status: number, from: number, to: number): Faulty =>
  () => {
    let count = 0;
    const around: Seams["around"] = (request, next) => {
      if (isCustomers(request.path)) count += 1;
      const isDown = isCustomers(request.path) && count > from && count <= to;
      return isDown ? Promise.resolve({ status, headers: [], body: "down" }) : next(request);
    };
    return { around };
  };

// The self-test has every status, at any moment.
test.each([
  [401, 20],
  [503, 61],
])("six answers of %i from request %i on accuse nobody", async (status, from) => {
  const { report, accused } = await run(down(status, from, from + 6), RULES);
  expect(accused).toEqual([]);
  expect([0, 3]).toContain(report.exitCode);
});

test("credentials that expire end the run with 4, and accuse nobody", async () => {
  const expired = down(401, 60, Number.POSITIVE_INFINITY);
  const { report, accused } = await run(expired, RULES, () => ({}), {}, { patienceMs: 200 });
  expect(accused).toEqual([]);
  expect(report.exitCode).toBe(4);
  expect(report.headline).toContain("401");
});

test.each(["PATCH", "DELETE"])(
  "one %s that gets no answer, the first of the run, accuses nobody and hides nothing",
  async (method) => {
    let lost = false;
    const loses: Faulty = () => ({
      around(request, next) {
        if (lost || request.method !== method) return next(request);
        lost = true;
        return Promise.resolve({ status: 0, headers: [], raw: Buffer.alloc(0), hangUp: true });
      },
    });
    const { report, accused } = await run(loses, ["IFM-30", "IFM-31", "IFM-40", "IFM-41"]);
    expect(lost).toBe(true);
    expect(accused).toEqual([]);
    expect(report.exitCode).toBe(0);
  },
);

test("503 to any one of the writes that are accepted while another is open accuses nobody, though it was applied", async () => {
  for (let place = 1, writes = 1; place <= writes; place += 1) {
    writes = 0;
    const loses: Faulty = () => ({
      async around(request, next) {
        const reply = await next(request);
        if (!["PUT", "PATCH", "DELETE"].includes(request.method) || reply.status >= 300) return reply;
        writes += 1;
        return writes === place ? { status: 503, headers: [], body: "" } : reply;
      },
    });
    const { accused } = await run(loses, ["ATM-05"]);
    expect([place, accused]).toEqual([place, []]);
  }
});

test("502 to an applied write, another one at each attempt, accuses nobody", async () => {
  let sinceLost = 0;
  let lost = 0;
  const loses: Faulty = () => ({
    async around(request, next) {
      const reply = await next(request);
      if (request.method !== "PUT" || reply.status >= 300) return reply;
      sinceLost += 1;
      if (sinceLost < 30 + lost) return reply;
      sinceLost = 0;
      lost += 1;
      return { status: 502, headers: [], body: "" };
    },
  });
  const { accused } = await run(loses, ["FLD-20"]);
  expect(lost).toBeGreaterThanOrEqual(4);
  expect(accused).toEqual([]);
});

test.each([["PATCH"], ["DELETE"]])("a gateway that lets no %s through accuses nobody", async (blocked) => {
  const gateway: Faulty = () => ({
    around: (request, next) =>
      request.method === blocked
        ? Promise.resolve({ status: 405, headers: [["Allow", "GET, PUT"]], body: "" })
        : next(request),
  });
  const { report, accused } = await run(gateway, ["IFM-31", "IFM-41", "ENV-08", "ENV-09"]);
  expect(accused).toEqual([]);
  expect(report.exitCode).toBe(3);
});

const METRICS = ["IFM-03", "IFM-04", "MET"];

test("two processes behind one metrics URL are detected, and the remedy is named", async () => {
  const alternate: Faulty = () => {
    let count = 0;
    return {
      around: (request, next) => {
        if (!request.path.startsWith("/metrics")) return next(request);
        count += 1;
        return next({ ...request, path: `/metrics/${count % 2}` });
      },
    };
  };
  const metrics = { labels: false, format: "prometheus", replicas: 2, guarded: true } as const;
  const url = (server: Deployed) => ({
    metricsUrl: [`${server.url}/metrics`],
    profileText: "[metrics]\nlag-ms = 100\n",
  });
  const { report, accused } = await run(alternate, METRICS, url, { metrics });
  expect(accused).toEqual([]);
  expect(report.exitCode).toBe(3);
  expect(report.rules.map(({ reason }) => reason).join("\n")).toContain("--metrics-url, repeatable");
});

test.each([
  ["a closed port", () => ["http://127.0.0.1:9/metrics"]],
  ["a page that is none", ({ url }: Deployed) => [`${url}/metrics/7`]],
])("metrics at %s leave the MET rules untested", async (_, urls) => {
  const { report, accused } = await run(
    () => ({}),
    ["IFM-04", "MET"],
    (server) => ({ metricsUrl: urls(server) }),
  );
  expect(accused).toEqual([]);
  expect(report.exitCode).toBe(3);
});

test("blanks after the value of an ETag are no part of it (RFC 9112 5)", async () => {
  const padding: Faulty = () => ({
    async around(request, next) {
      const reply = await next(request);
      const tag = reply.headers.find(([name]) => name.toLowerCase() === "etag")?.[1];
      return tag === undefined ? reply : setHeader(reply, "ETag", `${tag} \t`);
    },
  });
  const { report, accused } = await run(padding, ["ETG", "IFM-03", "IFM-07", "ENV"]);
  expect(accused).toEqual([]);
  expect(report.exitCode).toBe(0);
});

const DELETE_APPLIED_MS = 300;

/** DELETE is checked and answered 202; what happens then comes later. */
const receives =
  (later: (attempt: Parameters<Seams["commit"]>[0]) => void): Faulty =>
  () => ({
    async commit(attempt) {
      await attempt.bodyRead();
      const refusal = attempt.decide();
      if (refusal !== undefined || attempt.request.method !== "DELETE") return refusal ?? attempt.apply();
      setTimeout(() => later(attempt), DELETE_APPLIED_MS);
      return { status: 202, headers: [], body: "" };
    },
  });

test.each([
  ["checked again", "pass", receives(({ decide, apply }) => decide() ?? apply())],
  ["not applied", "inconclusive", receives(() => undefined)],
  ["applied unchecked", "violation", receives(({ apply }) => apply())],
] as const)(
  "DELETE answered 202 is received and not applied yet: where it is then %s, ATM-04 is %s",
  async (_, outcome, faulty) => {
    const { report } = await run(faulty, ["ATM-04", "ATM-07"]);
    const [mixed, deletes] = report.rules.map(({ id, outcome, reason }) => ({ id, outcome, reason }));
    expect(mixed).toMatchObject({ id: "ATM-04", outcome });
    expect(deletes).toMatchObject({ id: "ATM-07", outcome: "inconclusive" });
    expect(deletes?.reason).toContain("202");
  },
);

test("a stale write beside somebody else's is not called applied", async () => {
  const written: Faulty = (service) => ({
    async around(request, next) {
      const customer = customerOf(request, service);
      if (customer !== undefined && (await request.body()).toString() === "{")
        customer.tag = service.deployment.tag(service.nextVersion(), customer.id);
      return await next(request);
    },
  });
  const { report, accused } = await run(written, ["IFM-07"]);
  expect(report.rules.map(({ reason }) => reason)).toEqual([
    "somebody wrote the customer beside PUT with a stale tag and broken JSON",
  ]);
  expect(accused).toEqual([]);
});

import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import { countOf, type WriteKind } from "../domain/rollout/write-count.ts";
import { DAY_MS, dayOf } from "../domain/text/iso-time.ts";
import { openStorage } from "../storage/database-url/open-storage.ts";
import { seriesOf } from "./support/service/metric-series.ts";
import { type ServerProcess, Workplace } from "./support/service/server-process.ts";

const ROLES = BUILT_IN_POLICY.slice(0, BUILT_IN_POLICY.indexOf("[enforcement]"));
const UNTIL = dayOf(Date.now() + 90 * DAY_MS);
const OBSERVE = `[enforcement]\nmode = "observe"\nuntil = ${UNTIL}\n`;
const WRITES = 8;

let place: Workplace;
beforeEach(async () => {
  place = new Workplace();
  await place.prepare();
});
afterEach(() => place.clear());

const policyFile = (): string => `${place.path}/policy.toml`;
const usePolicy = (enforcement: string): void => writeFileSync(policyFile(), `${ROLES}${enforcement}`);

async function tokenOf(client: string, role = "editor"): Promise<string> {
  const tenant = role === "monitor" ? [] : ["--tenant", "acme"];
  const { stdout } = await place.command(["token", "create", "--role", role, "--client", client, ...tenant]);
  return stdout.trim();
}

async function rollout(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await place.command(["rollout", ...args], { POLICY_FILE: policyFile() });
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

async function report(...args: string[]) {
  const lines = (await rollout("report", "--json", ...args)).split("\n").filter((line) => line !== "");
  return lines.map((line) => {
    const { client, state, version, method, withIfMatch, withoutIfMatch, refused, wouldBreak } =
      JSON.parse(line);
    return { client, state, version, method, withIfMatch, withoutIfMatch, refused, wouldBreak };
  });
}

/** @returns the statuses of some PUTs, each on a connection of its own, so that both services get some */
async function write(
  service: ServerProcess,
  token: string,
  isWith: boolean,
  version = "1.0",
): Promise<number[]> {
  const body = { name: "Ada", email: "ada@example.com" };
  const statuses: number[] = [];
  for (let n = 0; n < WRITES; n += 1) {
    const made = await service.send(token, "POST", "/customers?fields=id", { body });
    const ifMatch: Record<string, string> = isWith ? { "if-match": made.etag } : {};
    const headers = { ...ifMatch, "user-agent": `program/${version}` };
    statuses.push((await service.send(token, "PUT", `/customers/${made.json.id}`, { body, headers })).status);
  }
  return statuses;
}

const all = (status: number): number[] => Array.from({ length: WRITES }, () => status);

test("two services on one database are led through the four steps of a rollout by what their database counted", async () => {
  const [shop, billing, monitor] = [
    await tokenOf("shop"),
    await tokenOf("billing"),
    await tokenOf("prometheus", "monitor"),
  ];
  const start = () => place.start({ services: 2, env: { POLICY_FILE: policyFile() } });

  // 1 and 2: tags on reads, and a look at who does not send them back.
  usePolicy(OBSERVE);
  let service = await start();
  expect(await write(service, shop, false)).toEqual(all(204));
  expect(await write(service, billing, true, "2.1.0")).toEqual(all(204));
  expect(await service.end()).toBe(0);
  const row = { version: "1.0", method: "PUT", withIfMatch: 0, withoutIfMatch: 0, refused: 0, wouldBreak: 0 };
  const ofBilling = { ...row, client: "billing", version: "2.1.0", withIfMatch: WRITES };
  const ofShop = { ...row, client: "shop", withoutIfMatch: WRITES };
  expect(await report("--clean-days", "0")).toEqual([
    { ...ofBilling, state: "ready" },
    { ...ofShop, state: "would-break", wouldBreak: WRITES },
  ]);
  const text = await rollout("--clean-days", "0");
  expect(text).toContain(`The policy observes until ${UNTIL}. Enforced: none.`);
  expect(text).toMatch(/^shop +would-break +acme +1\.0 +PUT +8 +0 +0 +\d{4}-/m);
  expect(text).toContain(`${WRITES} of the writes since`);

  // 3: the ready ones.
  const plan = await rollout("plan", "--clean-days", "0");
  expect(plan).toContain('enforced_clients = ["billing"]');
  expect(plan).toContain("# shop is not ready: it wrote without If-Match at ");
  usePolicy(plan);
  const checked = await place.command(["policy", "check", policyFile()]);
  expect([checked.code, checked.stdout]).toEqual([0, expect.stringContaining(`observe until ${UNTIL}`)]);
  service = await start();
  expect(await write(service, billing, false, "2.2.0")).toEqual(all(428));
  expect(await write(service, billing, true, "2.1.0")).toEqual(all(204));
  expect(await write(service, shop, true, "1.1")).toEqual(all(204));
  const exposition = await service.send(monitor, "GET", "/metrics");
  expect(exposition.status).toBe(200);
  await service.end();
  expect(await report("--clean-days", "0")).toEqual([
    { ...ofBilling, state: "enforced", withIfMatch: 2 * WRITES },
    { ...ofBilling, state: "enforced", version: "2.2.0", withIfMatch: 0, refused: WRITES },
    { ...ofShop, state: "ready" },
    { ...ofShop, state: "ready", version: "1.1", withIfMatch: WRITES, withoutIfMatch: 0 },
  ]);
  // By days it is not known for long enough.
  expect((await report()).map(({ state }) => state)).toEqual([
    "refused",
    "refused",
    "would-break",
    "would-break",
  ]);

  // 4: all.
  const last = await rollout("plan", "--clean-days", "0");
  expect(last).toContain('mode = "strict"');
  usePolicy(last);
  expect((await place.command(["policy", "check", policyFile()])).code).toBe(0);
  service = await start();
  // Before further writes, which are in the series as soon as their counts are stored.
  const series = await untilSeries(service, monitor, 'customers_rollout_client_state{client="shop"');
  const labels = '{method="PUT",client="shop",client_version="1.0",tenant="acme"}';
  expect(series.get(`customers_rollout_writes_without_if_match${labels}`)).toBe(WRITES);
  expect(series.get(`customers_rollout_last_without_if_match_seconds${labels}`)).toBeGreaterThan(1.7e9);
  expect(series.get('customers_rollout_client_state{client="shop",state="refused"}')).toBe(1);
  expect(series.get('customers_rollout_clients{state="refused"}')).toBe(2);
  expect(await write(service, shop, false)).toEqual(all(428));
  expect(await write(service, shop, true)).toEqual(all(204));
  await service.end();
  expect((await report()).filter(({ refused }) => refused > 0).map(({ client }) => client)).toEqual([
    "billing",
    "shop",
  ]);
}, 180_000);

/** Where the database is a server, a scrape shows what the one before it asked for. */
async function untilSeries(
  service: ServerProcess,
  token: string,
  labels: string,
): Promise<Map<string, number>> {
  for (let scrapes = 0; scrapes < 200; scrapes += 1) {
    const { text } = await service.send(token, "GET", "/metrics");
    if (text.includes(labels)) return seriesOf(text);
  }
  throw new Error(`no scrape shows ${labels}`);
}

const NOW_MS = Date.now();
/** Counts of former days, as services added them. */
async function countDays(
  client: string,
  days: readonly (readonly [daysAgo: number, kind: WriteKind])[],
): Promise<void> {
  const storage = await openStorage(place.databaseUrl);
  const series = { tenant: "acme", client, version: "1.0", method: "PATCH" } as const;
  for (const [daysAgo, kind] of days)
    await storage.writeCounts.add([countOf(series, kind, NOW_MS - daysAgo * DAY_MS)]);
  await storage.close();
}

test("a client that regressed is named, in the report, in the plan and in the metrics; the ready ones are planned", async () => {
  usePolicy(OBSERVE);
  const clean = Array.from({ length: 12 }, (_, n) => [15 - n, "with"] as const);
  await countDays("shop", [...clean, [1, "allowed"]]);
  await countDays("billing", [...clean, [1, "with"]]);
  const text = await rollout();
  expect(text).toMatch(/^billing +ready /m);
  expect(text).toMatch(/^shop +regressed /m);
  expect(text).toContain("shop regressed: it had been clean, and wrote without If-Match again at ");
  const plan = await rollout("plan");
  expect(plan).toContain("# shop is not ready: it regressed");
  expect(JSON.parse(await rollout("plan", "--json"))).toEqual({
    mode: "observe",
    until: UNTIL,
    enforcedClients: ["billing"],
    enforcedMethods: [],
    newClients: ["billing"],
    newMethods: [],
  });
  const service = await place.start({ env: { POLICY_FILE: policyFile(), METRICS_ACCESS: "public" } });
  let series = new Map<string, number>();
  for (
    let scrapes = 0;
    scrapes < 200 && series.get('customers_rollout_clients{state="ready"}') !== 1;
    scrapes += 1
  )
    series = seriesOf((await service.send(null, "GET", "/metrics")).text);
  expect(series.get('customers_rollout_clients{state="regressed"}')).toBe(1);
  expect(series.get("customers_rollout_end_seconds")).toBe(Date.parse(UNTIL) / 1000);
});

test("a client that regresses after days with If-Match is named while it is let pass, and when it is refused, over restarts", async () => {
  const [shop, billing, monitor] = [
    await tokenOf("shop"),
    await tokenOf("billing"),
    await tokenOf("prometheus", "monitor"),
  ];
  const start = () => place.start({ services: 2, env: { POLICY_FILE: policyFile() } });
  const statesOf = async (of: ServerProcess, state: string) => {
    const series = await untilSeries(
      of,
      monitor,
      `customers_rollout_client_state{client="shop",state="${state}"}`,
    );
    return [
      series.get(`customers_rollout_clients{state="${state}"}`),
      series.get("customers_rollout_end_seconds"),
    ];
  };
  const enforceAsPlanned = async (): Promise<string> => {
    const plan = await rollout("plan");
    usePolicy(plan);
    expect((await place.command(["policy", "check", policyFile()])).code).toBe(0);
    return plan;
  };
  // Both have been clean since services counted them eight days ago.
  usePolicy(OBSERVE);
  const days = [9, 8, 7, 6, 5, 4, 3, 2, 1].map((daysAgo) => [daysAgo, "with"] as const);
  await countDays("shop", days);
  await countDays("billing", days);
  let service = await start();
  expect(await write(service, billing, true)).toEqual(all(204));
  expect(await write(service, shop, true)).toEqual(all(204));
  expect(await write(service, shop, false, "2.0")).toEqual(all(204));
  expect(await service.end()).toBe(0);
  const warnings = service.stderr.lines.filter((line) => line.includes('"allowedWithoutIfMatch":true'));
  expect(warnings).toHaveLength(WRITES);
  for (const line of warnings) expect(JSON.parse(line)).toMatchObject({ level: "warn", client: "shop" });

  // Named in the report, in the plan, which leaves it out, and in the metrics of services that started since.
  const text = await rollout();
  expect(text).toMatch(/^billing +ready /m);
  expect(text).toMatch(/^shop +regressed +acme +2\.0 +PUT +8 /m);
  expect(text).toMatch(/^shop regressed: it had been clean, and wrote without If-Match again at \d{4}-/m);
  const plan = await enforceAsPlanned();
  expect(plan).toStartWith("# New clients: billing. New methods: PATCH. ");
  expect(plan).toContain('enforced_clients = ["billing"]');
  expect(plan).toContain("# shop is not ready: it regressed, and wrote without If-Match at ");
  service = await start();
  expect(await statesOf(service, "regressed")).toEqual([1, Date.parse(UNTIL) / 1000]);
  expect(await write(service, billing, false)).toEqual(all(428));
  expect(await write(service, shop, false, "2.0")).toEqual(all(204));
  expect(await service.end()).toBe(0);

  // Enforced for all before it is fixed: it is refused, and still named.
  usePolicy('[enforcement]\nmode = "strict"\n');
  service = await start();
  expect(await write(service, shop, false, "2.0")).toEqual(all(428));
  expect(await write(service, shop, true, "2.1")).toEqual(all(204));
  expect(await service.end()).toBe(0);
  service = await start();
  expect(await statesOf(service, "refused")).toEqual([2, Number.NaN]);
  const last = await rollout();
  expect(last).toContain("The policy is strict: every write needs If-Match.");
  expect(last).toMatch(/^shop +refused +acme +2\.0 +PUT +16 +8 /m);
  expect(last).toMatch(/^shop regressed: /m);
  expect(last).toMatch(/^16 writes since \d{4}-\d\d-\d\d were refused with 428, of: billing, shop\.$/m);
  expect(last).not.toContain("Enforced for all today");
  await service.end();
}, 180_000);

test("--since leaves earlier days out of what is counted, and not out of what is judged", async () => {
  usePolicy(OBSERVE);
  await countDays("shop", [
    [20, "allowed"],
    [9, "with"],
    [2, "with"],
  ]);
  const [row] = await report("--since", "10d");
  expect(row).toMatchObject({ state: "ready", withIfMatch: 2, withoutIfMatch: 0 });
  expect(await report("--since", dayOf(NOW_MS - DAY_MS))).toEqual([]);
  expect(await rollout("--since", "0d")).toContain("No write was counted since");
});

test("without the policy file of the service, the report says so, and there is no plan that could be pasted", async () => {
  await countDays("shop", [[1, "allowed"]]);
  const report = await place.command(["rollout"]);
  expect([report.code, report.stdout]).toEqual([
    0,
    expect.stringMatching(/^No policy file is given, .*POLICY_FILE/),
  ]);
  expect(report.stdout).toMatch(/^shop +refused /m);
  const plan = await place.command(["rollout", "plan"]);
  expect(plan).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("Give POLICY_FILE") });
});

test.each([
  [["--since", "yesterday"], "must be a day such as"],
  [["--since", "2027-02-30"], "must be a day such as"],
  [["--clean-days", "x"], "must be a number of days"],
  [["plan", "--clean-days", "999"], "must be a number of days"],
])("rollout %p is refused", async (args, sentence) => {
  const { code, stdout, stderr } = await place.command(["rollout", ...args]);
  expect([code, stdout, stderr]).toEqual([1, "", expect.stringContaining(sentence)]);
});

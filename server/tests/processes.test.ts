import { afterEach, beforeEach, expect, test } from "bun:test";
import { seriesOf, type WriteCounter } from "./support/metric-series.ts";
import { type ServerProcess, Workplace } from "./support/server-process.ts";

let place: Workplace;
let service: ServerProcess;
let token: string;
let monitor: string;
beforeEach(async () => {
  place = new Workplace();
  service = await place.start({ args: ["--processes", "2"] });
  token = place.adminToken;
  const created = await place.run(["token", "create", "--role", "monitor", "--client", "prometheus"]);
  monitor = created.stdout.trim();
});
afterEach(() => place.clear());

type Write = { readonly from: string; readonly status: number; readonly to: string };

async function sample(): Promise<{ path: string; etag: string }> {
  const list = await service.send(token, "GET", "/customers?limit=1");
  const [{ etag, customer }] = list.json.items;
  return { path: `/customers/${customer.id}`, etag };
}

/** Reads, changes and writes until it has had so many accepted. Each request is a connection of its own: any process. */
async function writer(path: string, name: string, accepted: number, writes: Write[]): Promise<void> {
  for (let done = 0; done < accepted; ) {
    const { etag: from } = await service.send(token, "GET", `${path}?fields=name`);
    const headers = { "if-match": from };
    const reply = await service.send(token, "PATCH", path, { body: { name: `${name} ${done}` }, headers });
    writes.push({ from, status: reply.status, to: reply.etag });
    if (reply.status === 204) done += 1;
  }
}

async function scrape(): Promise<string> {
  return (await service.send(monitor, "GET", "/metrics")).text;
}

/** The sum of a counter over its callers. */
function total(exposition: string, name: WriteCounter): number {
  const series = [...seriesOf(exposition)].filter(([key]) => key.startsWith(`${name}{`));
  return series.reduce((sum, [, value]) => sum + value, 0);
}

test("writes through several processes make one line: each accepted one follows the one before it", async () => {
  const { path, etag } = await sample();
  const writes: Write[] = [];
  await Promise.all(Array.from({ length: 8 }, (_, n) => writer(path, `w${n}`, 10, writes)));
  expect(writes.filter(({ status }) => status !== 204 && status !== 412)).toEqual([]);
  const accepted = writes.filter(({ status }) => status === 204);
  const next = new Map(accepted.map(({ from, to }) => [from, to]));
  expect([accepted.length, next.size]).toEqual([80, 80]); // no tag was followed twice
  let at = etag;
  for (let step = 0; step < 80; step += 1) at = next.get(at) ?? "a gap";
  expect((await service.send(token, "GET", path)).etag).toBe(at);

  const text = await scrape();
  expect(total(text, "http_write_attempts_total")).toBe(writes.length);
  expect(total(text, "http_precondition_failed_total")).toBe(writes.length - 80);
}, 60_000);

test("customers made one after another, through either process, are listed in the order in which they were made", async () => {
  const made: string[] = [];
  for (let n = 0; n < 200; n += 1) {
    const body = { name: `n${n}`, email: "a@b" };
    made.push((await service.send(token, "POST", "/customers?fields=id", { body })).json.id);
  }
  const { json } = await service.send(token, "GET", "/customers?limit=500&fields=id");
  const listed = json.items.map(({ customer }: { customer: { id: string } }) => customer.id);
  expect(listed.slice(-made.length)).toEqual(made);
}, 60_000);

test("past 20 versions of a client those of all processes together are `other`, and every write counts once", async () => {
  const path = "/customers/01890000-0000-7000-8000-000000000000";
  const send = async (version: number): Promise<void> => {
    const headers = { "user-agent": `app/${version}.0.0` };
    expect((await service.send(token, "PUT", path, { headers, body: {} })).status).toBe(428);
  };
  for (let round = 0; round < 3; round += 1) {
    await Promise.all(Array.from({ length: 40 }, (_, version) => send(version)));
    await scrape();
  }
  const refused = [...seriesOf(await scrape())].filter(([series]) =>
    /^http_precondition_required_total\{.*client="admin"/.test(series),
  );
  const versions = new Map(
    refused.map(([series, value]) => [/client_version="([^"]*)"/.exec(series)?.[1], value] as const),
  );
  // The 20, and "other".
  expect(versions.size).toBe(21);
  expect([...versions.values()].reduce((sum, value) => sum + value, 0)).toBe(120);
  for (const [version, value] of versions)
    expect([version, value]).toEqual([version, version === "other" ? 60 : 3]);
}, 60_000);

test("a process that is killed is replaced; counters that were seen never fall", async () => {
  const { path } = await sample();
  await writer(path, "before", 10, []);
  const before = total(await scrape(), "http_write_attempts_total");
  expect(before).toBe(10);
  const [victim = 0] = service.children;
  process.kill(victim, "SIGKILL");
  const replaced = (): boolean => service.children.length === 2 && !service.children.includes(victim);
  while (!replaced()) await Bun.sleep(20);
  expect(total(await scrape(), "http_write_attempts_total")).toBe(before);
  await writer(path, "after", 10, []);
  expect(total(await scrape(), "http_write_attempts_total")).toBe(before + 10);
}, 60_000);

test("SIGTERM ends all of them, with exit code 0 and the database closed", async () => {
  const { path } = await sample();
  await writer(path, "w", 5, []);
  const pids = service.children;
  expect(await service.end("SIGTERM")).toBe(0);
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow();
  expect(await Bun.file(`${place.database}-wal`).exists()).toBe(false);
}, 60_000);

test("those of one that is gone do not stay behind", async () => {
  const pids = service.children;
  service.signal("SIGKILL");
  const isAlive = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  while (pids.some(isAlive)) await Bun.sleep(20);
  expect(await service.exited).toBe(137);
}, 60_000);

import { afterEach, beforeEach, expect, test } from "bun:test";
import { type ServerProcess, Workplace } from "./support/service/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

type Write = { readonly from: string; readonly status: number; readonly to: string };

/**
 * Reads, changes and writes until so many writes were accepted.
 * Each request has its own connection: either service answers.
 */
async function write(service: ServerProcess, path: string, accepted: number, writes: Write[]): Promise<void> {
  const token = place.adminToken;
  for (let done = 0; done < accepted; ) {
    const { etag: from } = await service.send(token, "GET", `${path}?fields=name`);
    const headers = { "if-match": from };
    const reply = await service.send(token, "PATCH", path, { body: { name: `n${done}` }, headers });
    writes.push({ from, status: reply.status, to: reply.etag });
    if (reply.status === 204) done += 1;
  }
}

test("writes through two services on one port are one chain: each accepted write follows the one before it", async () => {
  const service = await place.start({ services: 2 });
  const list = await service.send(place.adminToken, "GET", "/customers?limit=1");
  const [{ etag, customer }] = list.json.items;
  const path = `/customers/${customer.id}`;
  const writes: Write[] = [];
  await Promise.all(Array.from({ length: 8 }, () => write(service, path, 10, writes)));
  expect(writes.filter(({ status }) => status !== 204 && status !== 412)).toEqual([]);
  const accepted = writes.filter(({ status }) => status === 204);
  const next = new Map(accepted.map(({ from, to }) => [from, to]));
  expect([accepted.length, next.size]).toEqual([80, 80]);
  let at = etag;
  for (let step = 0; step < 80; step += 1) at = next.get(at) ?? "a gap";
  expect((await service.send(place.adminToken, "GET", path)).etag).toBe(at);
});

test("customers created one after another through either service are listed in the order of creation", async () => {
  const service = await place.start({ services: 2 });
  const created: string[] = [];
  for (let n = 0; n < 200; n += 1) {
    const body = { name: `n${n}`, email: "ada@example.com" };
    created.push((await service.send(place.adminToken, "POST", "/customers?fields=id", { body })).json.id);
  }
  const { json } = await service.send(place.adminToken, "GET", "/customers?limit=500&fields=id");
  const listed = json.items.map(({ customer }: { customer: { id: string } }) => customer.id);
  expect(listed.slice(-created.length)).toEqual(created);
});

test("a service without REUSE_PORT never shares its port, and one with it never joins such a port", async () => {
  for (const [first, second] of [
    ["0", "0"],
    ["0", "1"],
    ["1", "0"],
  ] as const) {
    const service = await place.start({ services: 1, env: { REUSE_PORT: first } });
    const outcome = await place.run([], { PORT: String(service.port), REUSE_PORT: second });
    expect([outcome.code, outcome.stderr]).toEqual([
      1,
      `Port ${service.port} on 127.0.0.1 is already in use. Choose another with PORT=… (0 picks a free one).\n`,
    ]);
    await service.end();
  }
});

import { afterAll, expect, test } from "bun:test";
import http from "node:http";
import { startCustomerServer } from "./support/customer-server.ts";
import { UNLIKE_OURS } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";
import { type Fault, startFaultyProxy } from "./support/faulty-proxy.ts";
import { startForwardProxy } from "./support/forward-proxy.ts";
import { startTlsFront } from "./support/tls-front.ts";

const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

function serve(dialect?: Parameters<typeof startCustomerServer>[0]) {
  const server = startCustomerServer(dialect);
  stops.push(server.stop);
  const { header, value } = server.dialect.credentials;
  const send = (path: string, method = "GET", headers = {}, body?: unknown, base = server.url) =>
    fetch(`${base}/customers${path}`, {
      method,
      headers: { [header]: value, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return { server, send };
}

async function behind(fault: Fault, dialect?: Parameters<typeof startCustomerServer>[0]) {
  const { server, send } = serve(dialect);
  const proxy = await startFaultyProxy(server.url, fault);
  stops.push(proxy.stop);
  const through = (path: string, method = "GET", headers = {}, body?: unknown) =>
    send(path, method, headers, body, proxy.url);
  const customer = server.add({});
  const put = (tag = customer.tag) =>
    through(`/${customer.id}`, "PUT", { "if-match": tag }, { name: "New", email: "new@example.com" });
  return { server, proxy, through, customer, put };
}

test("a write is accepted only with the current tag, and is in the log once", async () => {
  const { server, send } = serve();
  const { id, tag } = server.add({ name: "Old" });
  const body = { name: "New", email: "new@example.com" };
  expect((await send(`/${id}`, "PUT", {}, body)).status).toBe(428);
  expect((await send(`/${id}`, "PUT", { "if-match": '"stale"' }, body)).headers.get("etag")).toBe(tag);
  const accepted = await send(`/${id}`, "PUT", { "if-match": tag }, body);
  expect(accepted.status).toBe(204);
  expect((await send(`/${id}`, "PUT", { "if-match": tag }, body)).status).toBe(412);
  expect(server.writes).toEqual([
    { method: "PUT", id, ifMatch: tag, idempotencyKey: null, body, tag: accepted.headers.get("etag") ?? "" },
  ]);
  expect(server.read(id)).toEqual({ id, ...body, status: "active", tag: server.writes[0]?.tag ?? "" });
  expect((await send(`/${id}`, "DELETE", { "if-match": server.writes[0]?.tag })).status).toBe(204);
  expect((await send(`/${id}`)).status).toBe(404);
});

test("pages hold each customer once, and a repeated Idempotency-Key creates once", async () => {
  const { server, send } = serve();
  const body = { name: "Ada", email: "ada@example.com" };
  const [one, two] = [
    await send("", "POST", { "idempotency-key": "k" }, body),
    await send("", "POST", { "idempotency-key": "k" }, body),
  ];
  expect([one.status, two.status, two.headers.get("idempotency-replayed"), server.size]).toEqual([
    201,
    201,
    "true",
    1,
  ]);
  for (let n = 0; n < 6; n += 1) server.add({ name: `N${n}` });
  const seen: string[] = [];
  for (let cursor: string | null = "0"; cursor !== null; ) {
    const page = (await (await send(`?limit=3&fields=name&cursor=${cursor}`)).json()) as {
      items: { customer: { name: string } }[];
      next: string | null;
    };
    seen.push(...page.items.map((item) => item.customer.name));
    cursor = page.next;
  }
  expect(seen).toEqual(["Ada", "N0", "N1", "N2", "N3", "N4", "N5"]);
});

test("the deployment unlike ours differs in names, credentials, tags, statuses and members", async () => {
  const { server, send } = serve(UNLIKE_OURS);
  const { id, tag } = server.add({});
  const text = await (await send(`/${id}`)).text();
  expect(text).toContain(`{"Id":"${id}","Name":"Ada Lovelace"`);
  expect(text).toContain('"Balance":9007199254740993,"Rate":1.10');
  expect(tag).toMatch(/^".*[/].*, .*"$/);
  const put = await send(`/${id}`, "PUT", { "if-match": tag }, { Name: "New", Email: "new@example.com" });
  expect([put.status, (await put.text()).includes('"Name":"New"')]).toEqual([200, true]);
  expect((await send(`/${id}`, "PATCH", { "if-match": tag }, {})).status).toBe(405);
  expect((await fetch(`${server.url}/customers/${id}`)).status).toBe(401);
});

test("a dropped reply is an applied write, a dropped request is none", async () => {
  const reply = await behind(faults.dropReplies());
  await expect(reply.put()).rejects.toThrow();
  expect([reply.server.writes.length, (await reply.put()).status]).toEqual([1, 412]);
  const request = await behind(faults.dropRequests());
  await expect(request.put()).rejects.toThrow();
  expect([request.server.writes.length, (await request.put()).status]).toEqual([0, 204]);
});

test.each([
  ["weakenTags", faults.weakenTags(), /^W\//],
  ["weakenTagsOfCompressed", faults.weakenTagsOfCompressed(), /^W\//],
  ["suffixTags", faults.suffixTags(), /-gzip"$/],
  ["stripTags", faults.stripTags(), /^none$/],
] as const)("%s spoils the tag of a read", async (_, fault, expected) => {
  const { through, customer } = await behind(fault);
  const read = await through(`/${customer.id}`, "GET", { "accept-encoding": "gzip" });
  expect(read.headers.get("etag") ?? "none").toMatch(expected);
  expect(await read.json()).toMatchObject({ id: customer.id });
});

test("answers in place of the server's: 412 forever, 429, a gateway's 502 after the write", async () => {
  const stale = await behind(faults.staleForEver());
  expect([(await stale.put()).status, (await stale.put()).status, stale.server.writes.length]).toEqual([
    412, 412, 0,
  ]);
  const limited = await behind(faults.answerInstead(429, { retryAfter: 2 }));
  const refusal = await limited.put();
  expect([refusal.status, refusal.headers.get("retry-after"), (await limited.put()).status]).toEqual([
    429,
    "2",
    204,
  ]);
  const gateway = await behind(faults.answerAfterWrites(502));
  expect([(await gateway.put()).status, gateway.server.writes.length]).toEqual([502, 1]);
});

test("a body broken off half-way is no complete reply", async () => {
  const { through, customer } = await behind(faults.resetMidBody());
  const broken = through(`/${customer.id}`).then((response) => response.text());
  await expect(broken).rejects.toThrow();
  expect((await through(`/${customer.id}`)).status).toBe(200);
});

test("an interfering write makes a real 412", async () => {
  const { server } = serve();
  const { id, tag } = server.add({});
  const proxy = await startFaultyProxy(
    server.url,
    faults.interfere(() => server.change(id, { name: "Other" })),
  );
  stops.push(proxy.stop);
  const put = await fetch(`${proxy.url}/customers/${id}`, {
    method: "PUT",
    headers: { authorization: server.dialect.credentials.value, "if-match": tag },
    body: "{}",
  });
  expect([put.status, server.read(id)?.name, proxy.writesSeen]).toEqual([412, "Other", 1]);
});

test("the forward proxy passes requests on in absolute form", async () => {
  const { server } = serve();
  const proxy = await startForwardProxy();
  stops.push(proxy.stop);
  const status = await new Promise((resolve) => {
    const path = `${server.url}/customers/x`;
    http.get({ port: new URL(proxy.url).port, host: "127.0.0.1", path }, (reply) =>
      resolve(reply.statusCode),
    );
  });
  expect([status, proxy.seen]).toEqual([401, [`GET ${server.url}/customers/x`]]);
});

test("the TLS front is trusted with its authority and not without", async () => {
  const { server } = serve();
  const front = await startTlsFront(server.url);
  stops.push(front.stop);
  await expect(fetch(`${front.url}/customers/x`)).rejects.toThrow();
  expect((await fetch(`${front.url}/customers/x`, { tls: { ca: front.ca } })).status).toBe(401);
});

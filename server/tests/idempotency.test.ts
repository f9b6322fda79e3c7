import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { LATE_WAY } from "./support/database/storage-ways.ts";
import { RUNS } from "./support/random.ts";
import { type Reply, TestService } from "./support/service/test-service.ts";

const HOUR_MS = 3_600_000;
const LIFE_MS = 24 * HOUR_MS;

const directory = mkdtempSync(join(tmpdir(), "customers-"));
/** The thread of the writes, as in production, must live through it all. */
const deaths: string[] = [];
let nowMs = Date.UTC(2027, 0, 1);
const tokens = new Map<string, Promise<string>>();
const open = async (): Promise<TestService> =>
  await TestService.start({
    tokens,
    storage: await LATE_WAY.open(join(directory, "keys.db"), {
      onFault: (reason) => deaths.push(reason),
    }),
    now: () => nowMs,
  });
let service = await open();
afterAll(async () => {
  await service.stop();
  expect(deaths).toEqual([]);
  rmSync(directory, { recursive: true });
});

/**
 * A POST /customers with a key. The name holds `body`, so
 * that a stored customer shows which request made it.
 */
type Post = {
  readonly tenant: string;
  readonly client: string;
  readonly key: string;
  readonly body: string;
  /** The client goes away once its body is sent, and never learns what came of it. */
  readonly isInterrupted: boolean;
};
type Kept = { readonly id: string; readonly tag: string; readonly body: string; readonly atMs: number };

const owner = ({ tenant, client, key }: Post): string => `${tenant} ${client} ${key}`;
const nameOf = (post: Post): string => `${post.client} ${post.key} ${post.body}`;
const bodyOf = (post: Post): string => JSON.stringify({ name: nameOf(post), email: "ada@example.com" });

function send(post: Post): Promise<Reply> {
  const { tenant, client, key } = post;
  return service.send("POST", "/customers?fields=id,name", {
    caller: { tenant, client },
    headers: { "idempotency-key": key, "content-type": "application/json" },
    body: bodyOf(post),
  });
}

/** Sends all of it and leaves. @returns once the service is done with the request */
async function interrupt(post: Post): Promise<null> {
  const token = await service.token({ tenant: post.tenant, client: post.client });
  const requestId = crypto.randomUUID();
  const body = bodyOf(post);
  const head = [
    "POST /customers?fields=id,name HTTP/1.1",
    "Host: localhost",
    `Authorization: Bearer ${token}`,
    `X-Request-Id: ${requestId}`,
    `Idempotency-Key: ${post.key}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    // Answered with 100 as soon as the service waits for the body: so it surely got this far.
    "Expect: 100-continue",
  ];
  const socket = connect(service.port, "127.0.0.1", () => socket.write(`${head.join("\r\n")}\r\n\r\n`));
  socket.once("data", () => socket.end(body));
  await new Promise((resolve) => socket.once("close", resolve));
  while (!service.logLines.some((line) => line["requestId"] === requestId)) await new Promise(setImmediate);
  return null;
}

/** Everything in a tenant, oldest first. */
async function stored(tenant: string): Promise<{ id: string; tag: string; name: string }[]> {
  const reply = await service.send("GET", "/customers?fields=id,name&limit=500", {
    caller: { tenant, client: "auditor" },
  });
  expect([reply.status, reply.json.next]).toEqual([200, null]);
  return reply.json.items.map((item: { etag: string; customer: { id: string; name: string } }) => ({
    ...item.customer,
    tag: item.etag,
  }));
}

const anyPost = fc.record({
  tenant: fc.constantFrom("acme", "acme", "globex"),
  client: fc.constantFrom("shop", "shop", "billing"),
  key: fc.constantFrom("k1", "k2"),
  body: fc.constantFrom("a", "a", "b"),
  isInterrupted: fc.constantFrom(false, false, false, true),
});
const anyRace = fc.record({
  posts: fc.array(anyPost, { minLength: 1, maxLength: 8 }),
  passedMs: fc.constantFrom(0, 0, 1, HOUR_MS, LIFE_MS - 1, LIFE_MS),
});

test("for 24 hours a key of a token makes one customer, however often and at once it is sent, and whether or not its clients stay", async () => {
  const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
  console.log(`idempotency: SEED=${seed}`);
  let runs = 0;
  const law = fc.asyncProperty(fc.array(anyRace, { minLength: 1, maxLength: 6 }), async (races) => {
    runs += 1;
    const kept = new Map<string, Kept>();
    const known = new Set<string>();
    for (const { posts: drawn, passedMs } of races) {
      nowMs += passedMs;
      service.logLines.length = 0;
      const posts = drawn.map((post) => ({ ...post, tenant: `${post.tenant}-${runs}` }));
      const replies = await Promise.all(
        posts.map((post) => (post.isInterrupted ? interrupt(post) : send(post))),
      );
      const before = new Map(kept);
      const isLive = (post: Post): boolean => (before.get(owner(post))?.atMs ?? -Infinity) + LIFE_MS > nowMs;

      // What is new in the store: one customer at most for each key, none for a key that still lives.
      for (const tenant of [`acme-${runs}`, `globex-${runs}`]) {
        for (const { id, tag, name } of await stored(tenant)) {
          if (known.has(id)) continue;
          known.add(id);
          const maker = posts.find((post) => post.tenant === tenant && nameOf(post) === name);
          if (maker === undefined) throw new Error(`nobody sent ${name}`);
          expect([name, isLive(maker)]).toEqual([name, false]);
          expect(kept.get(owner(maker))).toBe(before.get(owner(maker)));
          kept.set(owner(maker), { id, tag, body: maker.body, atMs: nowMs });
        }
      }

      // What was answered: the customer of the key, in its
      // first version, or that the key came with another body.
      let made = 0;
      posts.forEach((post, index) => {
        const reply = replies[index];
        if (reply === null || reply === undefined) return;
        // A key that no longer lives is as good as new.
        expect(isLive(post)).toBe(kept.get(owner(post)) === before.get(owner(post)));
        const { id, tag, body } = kept.get(owner(post)) ?? { id: "none", tag: "none", body: "none" };
        if (post.body !== body) {
          expect([reply.status, reply.json.code]).toEqual([422, "idempotency-key-reused"]);
          return;
        }
        expect([reply.status, reply.etag, reply.headers.get("location")]).toEqual([
          201,
          tag,
          `/customers/${id}`,
        ]);
        expect(reply.json).toStrictEqual({ id, name: nameOf(post) });
        const isReplay = reply.headers.get("idempotency-replayed") === "true";
        if (isLive(post)) expect(isReplay).toBe(true);
        if (!isReplay) made += 1;
      });
      const fresh = [...kept.values()].filter(({ id }) => ![...before.values()].some((old) => old.id === id));
      // Each new customer was announced as new to one client at most: to none where its maker had gone away.
      expect(made).toBeLessThanOrEqual(fresh.length);
      if (!posts.some((post) => post.isInterrupted)) expect(made).toBe(fresh.length);
    }
  });
  await fc.assert(law, { seed, numRuns: 25 * RUNS });
});

test("a key outlives a restart of the service, and a change or the end of its customer", async () => {
  const post: Post = { tenant: "initech", client: "shop", key: "order-7", body: "a", isInterrupted: false };
  const first = await send(post);
  expect(first.status).toBe(201);
  const path = first.headers.get("location") ?? "";
  const caller = { tenant: "initech" };
  const changed = await service.send("PATCH", path, {
    caller,
    headers: { "if-match": first.etag },
    body: { status: "closed" },
  });
  expect(changed.status).toBe(204);
  await service.stop();
  service = await open();
  const again = await send(post);
  expect([again.status, again.etag, again.text]).toEqual([201, first.etag, first.text]);
  const removed = await service.send("DELETE", path, { caller, headers: { "if-match": changed.etag } });
  expect(removed.status).toBe(204);
  expect((await send(post)).headers.get("location")).toBe(path);
  expect(await stored("initech")).toEqual([]);
});

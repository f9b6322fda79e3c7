import { afterEach, beforeEach, expect, test } from "bun:test";
import { Random } from "./support/random.ts";
import { type ServerProcess, Workplace } from "./support/service/server-process.ts";
import type { Reply } from "./support/service/test-service.ts";

// `bun run torture` runs more of the same: 100 rounds of 64
// writers, on one service and on two that share port and database.
const ROUNDS = Number(process.env["ROUNDS"] ?? 5);
const WRITERS = Number(process.env["WRITERS"] ?? 8);
const ACKNOWLEDGED_MIN = 5;
const ACKNOWLEDGED_MAX = Math.max(60, WRITERS * 8);
/** Ends a test that hangs. Ten rounds of 64 writers on two services took more than 60 s. */
const ROUND_MS = 30_000;
const SERVE = { args: ["--no-samples"] };

type Customer = { readonly name: string; readonly email: string; readonly status: string };
type Tagged = { readonly etag: string; readonly customer: Customer };
/**
 * What the service may hold of one customer: what it
 * acknowledged last, or what a write without an answer makes.
 */
type Held = { acknowledged: Tagged | null; unanswered: Customer | null | undefined };

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

/** Everything in the service, by id. */
async function all(service: ServerProcess): Promise<Map<string, Tagged>> {
  const found = new Map<string, Tagged>();
  let path: string | null = "/customers?limit=500&fields=id,name,email,status";
  while (path !== null) {
    const { json, headers }: Reply = await service.send(place.adminToken, "GET", path);
    for (const { etag, customer } of json.items) {
      const { id, ...fields } = customer;
      found.set(id, { etag, customer: fields });
    }
    path = /<([^>]*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1] ?? null;
  }
  return found;
}

/** A stream of writes to customers of its own, each held against what the service answered. */
class Writer {
  readonly customers = new Map<string, Held>();
  /** A create without an answer, by the name and address that no other write has. */
  unansweredCreate: Customer | null = null;
  readonly #random: Random;
  readonly #label: string;
  #writes = 0;

  constructor(random: Random, label: string) {
    this.#random = random;
    this.#label = label;
  }

  /** Writes until the service is gone. @param onAcknowledged runs at each answer */
  async write(service: ServerProcess, token: string, onAcknowledged: () => void): Promise<void> {
    for (;;) {
      const reply = await this.#writeOne(service, token);
      if (reply === null) return;
      // Nobody else writes these customers: a refusal would be a write applied that was never answered.
      expect(reply.status).toBeOneOf([201, 204]);
      onAcknowledged();
    }
  }

  async #writeOne(service: ServerProcess, token: string): Promise<Reply | null> {
    const mine = [...this.customers].filter(([, held]) => held.acknowledged !== null);
    const [chosen] =
      mine.length < 3 || this.#random.next() < 0.2 ? [] : [this.#random.of(mine as [(typeof mine)[0]])];
    this.#writes += 1;
    const stamp = `${this.#label}-${this.#writes}`;
    const next = { name: stamp, email: `${stamp}@example.com` };
    if (chosen === undefined) {
      this.unansweredCreate = { ...next, status: "active" };
      const reply = await answered(service.send(token, "POST", "/customers", { body: next }));
      if (reply?.status === 201) {
        this.customers.set(reply.json.id, {
          acknowledged: { etag: reply.etag, customer: this.unansweredCreate },
          unanswered: undefined,
        });
        this.unansweredCreate = null;
      }
      return reply;
    }
    const [id, held] = chosen;
    const { etag, customer } = held.acknowledged as Tagged;
    const { method, body } = this.#change(next, customer);
    held.unanswered = method === "DELETE" ? null : { ...customer, ...body };
    const request = { headers: { "if-match": etag }, ...(method === "DELETE" ? {} : { body }) };
    const reply = await answered(service.send(token, method, `/customers/${id}`, request));
    if (reply?.status === 204) {
      held.acknowledged = held.unanswered === null ? null : { etag: reply.etag, customer: held.unanswered };
      held.unanswered = undefined;
    }
    return reply;
  }

  /**
   * Every change is one that nothing else makes, and touches
   * several members where it can, to show a half of it.
   */
  #change(
    next: { name: string; email: string },
    customer: Customer,
  ): { method: string; body: Partial<Customer> } {
    const status = customer.status === "active" ? "suspended" : "active";
    return this.#random.of([
      { method: "PUT", body: next },
      { method: "PUT", body: next },
      { method: "PATCH", body: { ...next, status } },
      { method: "PATCH", body: { name: next.name, status } },
      { method: "DELETE", body: {} },
    ]);
  }
}

/** @returns the reply, or null when none came whole: then nobody knows what became of the request */
async function answered(reply: Promise<Reply>): Promise<Reply | null> {
  return await reply.catch(() => null);
}

/** Holds what is stored against what was acknowledged, and takes it over as the start of the next round. */
function reconcile(writer: Writer, stored: Map<string, Tagged>): { applied: number; lost: number } {
  const seen = { applied: 0, lost: 0 };
  for (const [id, held] of writer.customers) {
    const found = stored.get(id) ?? null;
    stored.delete(id);
    if (held.unanswered === undefined) expect(found).toEqual(held.acknowledged);
    else {
      const isAsBefore = Bun.deepEquals(found, held.acknowledged);
      // Applied whole: the new members, the old of the rest, and another version.
      if (!isAsBefore) {
        expect(found?.customer ?? null).toEqual(held.unanswered);
        expect(found?.etag).not.toBe(held.acknowledged?.etag);
      }
      seen[isAsBefore ? "lost" : "applied"] += 1;
    }
    held.acknowledged = found;
    held.unanswered = undefined;
  }
  if (writer.unansweredCreate !== null) {
    const made = [...stored].filter(([, { customer }]) => customer.name === writer.unansweredCreate?.name);
    expect(made.length).toBeLessThanOrEqual(1);
    for (const [id, tagged] of made) {
      expect(tagged.customer).toEqual(writer.unansweredCreate);
      writer.customers.set(id, { acknowledged: tagged, unanswered: undefined });
      stored.delete(id);
    }
    seen[made.length === 1 ? "applied" : "lost"] += 1;
    writer.unansweredCreate = null;
  }
  return seen;
}

test(
  `kill -9 amid a stream of writes, ${ROUNDS} times: every acknowledged write is there, none is there by half`,
  async () => {
    const random = new Random();
    const writers = Array.from({ length: WRITERS }, (_, n) => new Writer(random, `w${n}`));
    const total = { acknowledged: 0, applied: 0, lost: 0 };
    for (let round = 0; round <= ROUNDS; round += 1) {
      const service = await place.start({ ...SERVE, env: { LOG_LEVEL: "warn" } });
      const stored = await all(service);
      for (const writer of writers) {
        const seen = reconcile(writer, stored);
        total.applied += seen.applied;
        total.lost += seen.lost;
      }
      // Nothing is there that nobody asked for.
      expect([...stored]).toEqual([]);
      expect(await place.faults()).toEqual([]);
      expect(service.stderr.text).toBe("");
      if (round === ROUNDS) break;
      let left = random.integer(ACKNOWLEDGED_MIN, ACKNOWLEDGED_MAX);
      const token = place.adminToken;
      const streams = writers.map((writer) =>
        writer.write(service, token, () => {
          total.acknowledged += 1;
          left -= 1;
          if (left === 0) service.signal("SIGKILL");
        }),
      );
      await Promise.all(streams);
      expect(await service.end("SIGKILL")).toBe(137);
    }
    console.log(
      `kill -9: seed ${random.seed}, ${total.acknowledged} writes acknowledged; of those without an answer ${total.applied} applied, ${total.lost} not`,
    );
    expect(await place.run(["check"])).toMatchObject({ code: 0, stderr: "" });
  },
  ROUNDS * ROUND_MS,
);

test("told to stop amid a stream of writes, every write that is applied is answered, and the exit code is 0", async () => {
  const random = new Random();
  console.log(`SIGTERM amid writes: seed ${random.seed}`);
  const writers = Array.from({ length: WRITERS }, (_, n) => new Writer(random, `w${n}`));
  for (let round = 0; round <= 2; round += 1) {
    const service = await place.start({ ...SERVE, env: { STOP_GRACE: "0.25" } });
    const stored = await all(service);
    for (const writer of writers) expect(reconcile(writer, stored).applied).toBe(0);
    expect([...stored]).toEqual([]);
    if (round === 2) break;
    let left = random.integer(ACKNOWLEDGED_MIN, ACKNOWLEDGED_MAX);
    const token = place.adminToken;
    const streams = writers.map((writer) =>
      writer.write(service, token, () => {
        left -= 1;
        if (left === 0) service.signal("SIGTERM");
      }),
    );
    await Promise.all(streams);
    expect(await service.exited).toBe(0);
  }
});

test("keys repeated, raced and cut off by kill -9: never two customers for one key, nor one for another body", async () => {
  const random = new Random();
  console.log(`idempotency keys under kill -9: seed ${random.seed}`);
  const idOf = new Map<string, string>();
  const keys: string[] = [];
  for (let round = 0; round < 4; round += 1) {
    const service = await place.start(SERVE);
    const token = place.adminToken;
    const post = async (key: string): Promise<void> => {
      const body = { name: `Key ${key}`, email: `${key}@example.com` };
      const headers = { "idempotency-key": key };
      const reply = await answered(service.send(token, "POST", "/customers", { body, headers }));
      if (reply === null) return;
      expect(reply.status).toBe(201);
      // The first to be acknowledged stays the only one.
      if (!idOf.has(key)) idOf.set(key, reply.json.id);
      expect(reply.json.id).toBe(idOf.get(key));
      left -= 1;
      if (left === 0) service.signal("SIGKILL");
    };
    for (let n = 0; n < 6; n += 1) keys.push(`r${round}-${n}`);
    // New keys and old ones, three requests at once for each, in an order that the seed draws.
    const requests = keys.flatMap((key) => [key, key, key]).sort(() => random.next() - 0.5);
    let left = random.integer(1, requests.length);
    await Promise.all(requests.map(post));
    await service.end("SIGKILL");
  }
  const service = await place.start();
  const ids = new Map<string, string[]>();
  for (const [id, { customer }] of await all(service)) {
    ids.set(customer.email, [...(ids.get(customer.email) ?? []), id]);
  }
  for (const key of keys) {
    const made = ids.get(`${key}@example.com`) ?? [];
    const acknowledged = idOf.get(key);
    expect(made.length).toBeLessThanOrEqual(1);
    if (acknowledged !== undefined) expect(made).toEqual([acknowledged]);
    const headers = { "idempotency-key": key };
    const again = await service.send(place.adminToken, "POST", "/customers", {
      body: { name: `Key ${key}`, email: `${key}@example.com` },
      headers,
    });
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([
      201,
      made.length === 1 ? "true" : null,
    ]);
    expect(made.length === 1 ? made[0] : again.json.id).toBe(again.json.id);
    const other = await service.send(place.adminToken, "POST", "/customers", {
      body: { name: "Another", email: `${key}@example.com` },
      headers,
    });
    expect([other.status, other.json.code]).toEqual([422, "idempotency-key-reused"]);
  }
  expect((await all(service)).size).toBe(keys.length);
});

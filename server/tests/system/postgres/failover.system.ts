import { afterEach, beforeEach, expect, test } from "bun:test";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";
import { PrimaryProxy } from "../../support/postgres/primary-proxy.ts";
import { type ServerProcess, Workplace } from "../../support/service/server-process.ts";

// The primary dies under load, its standby is promoted, and three servers
// go on by themselves. `bun run torture:postgres` runs more of the same.
const ROUNDS = Number(process.env["ROUNDS"] ?? 1);
const WRITERS = 48;
/** Beside them: each creates customers under keys, one after another. */
const CREATORS = 8;
/** By priority and by quorum: PostgreSQL waits for the standby in both. */
const SYNCHRONOUS = ["standby", "ANY 1 (standby)"];
/** Before the primary dies, and after its standby was promoted. */
const LOAD_MS = 1_500;
/** A monitor needs so long to be sure. */
const DETECTION_MS = 1_500;
const PAUSE_MS_MAX = 10_000;

let place: Workplace;
const ends: (() => Promise<void>)[] = [];
beforeEach(() => {
  place = new Workplace();
});
afterEach(async () => {
  await place.clear();
  for (const end of ends.splice(0).reverse()) await end();
});

/** A primary with a standby, a proxy that leads to the primary, and three servers behind it. */
async function startAll(settings: Readonly<Record<string, string>>) {
  const primary = await PostgresCluster.start({ settings });
  ends.push(() => primary.stop());
  const standby = await primary.startStandby();
  ends.push(() => standby.stop());
  const url = await primary.createDatabase();
  const proxy = await PrimaryProxy.start(place.path, [primary, standby]);
  ends.push(() => proxy.stop());
  const env = { DATABASE_URL: proxy.through(url), LOG_LEVEL: "silent" };
  const servers: ServerProcess[] = [];
  for (let count = 0; count < 3; count += 1)
    servers.push(await place.start({ env, cwd: place.path, services: 1 }));
  return { primary, standby, servers, database: new URL(url).pathname.slice(1) };
}

type Fates = {
  acknowledged: number;
  created: number;
  unknown: number;
  readonly wrong: string[];
  pauseMs: number;
};

/**
 * Writers, each with a customer that nobody else writes: every refusal with 412 or 404 is a write that was
 * lost. And creators, who repeat a request under its key, on another server, until it is acknowledged.
 */
class Writers {
  readonly fates: Fates = { acknowledged: 0, created: 0, unknown: 0, wrong: [], pauseMs: 0 };
  readonly #servers: readonly ServerProcess[];
  readonly #token: string;
  readonly #writing: Promise<void>[];
  /** The id that was acknowledged, by email address: each creation has its own. */
  readonly #created = new Map<string, string>();
  #lastAt = performance.now();
  isOver = false;

  constructor(servers: readonly ServerProcess[], token: string) {
    this.#servers = servers;
    this.#token = token;
    this.#writing = [
      ...Array.from({ length: WRITERS }, (_, writer) => this.#write(writer)),
      ...Array.from({ length: CREATORS }, (_, creator) => this.#create(creator)),
    ];
  }

  async finish(): Promise<Fates> {
    this.isOver = true;
    await Promise.all(this.#writing);
    this.fates.created = this.#created.size;
    return this.fates;
  }

  /** Compares the creations that were acknowledged with the customers that are stored. */
  async compareCreations(stored: PostgresCluster, database: string): Promise<void> {
    const text =
      "SELECT email, string_agg(id::text, ' ') FROM customers.customers WHERE name = 'new' GROUP BY email";
    const lines = (await stored.query(database, text)).split("\n");
    const found = new Map(
      lines.map((line): [string, string] => [line.split("|")[0] ?? "", line.split("|")[1] ?? ""]),
    );
    for (const [email, id] of this.#created) {
      if (found.get(email) !== id)
        this.fates.wrong.push(`${email}: created as ${id}, stored as ${found.get(email)}`);
    }
    if (found.size > this.#created.size)
      this.fates.wrong.push(`${found.size} stored of ${this.#created.size}`);
  }

  async #create(creator: number): Promise<void> {
    for (let turn = 1; !this.isOver; turn += 1) {
      const email = `${creator}.${turn}@example.com`;
      const headers = { "idempotency-key": `creator-${creator}-${turn}` };
      for (let tries = 0; ; tries += 1) {
        const reply = await this.#send(
          creator + turn + tries,
          "POST",
          "/customers?fields=id",
          { name: "new", email },
          headers,
        );
        if (reply.status === 201) {
          this.#created.set(email, reply.json.id);
          break;
        }
        if (reply.status === 503) continue;
        this.fates.wrong.push(`creator ${creator}: ${reply.status} for ${email}`);
        return;
      }
    }
  }

  async #write(writer: number): Promise<void> {
    const created = await this.#send(
      writer,
      "POST",
      "/customers?fields=id",
      { name: "0", email: "a@example.com" },
      {
        "idempotency-key": `writer-${writer}`,
      },
    );
    if (created.status !== 201) {
      this.fates.wrong.push(`writer ${writer}: created with ${created.status}`);
      return;
    }
    const path = created.headers.get("location") ?? "";
    let [etag, known] = [created.etag, "0"];
    for (let turn = 1; !this.isOver; turn += 1) {
      const name = `${turn}`;
      const reply = await this.#send(
        writer + turn,
        "PUT",
        path,
        { name, email: "a@example.com" },
        { "if-match": etag },
      );
      if (reply.status === 204) {
        this.#note();
        [etag, known] = [reply.etag, name];
        continue;
      }
      this.fates.unknown += 1;
      if (reply.status !== 503) {
        this.fates.wrong.push(`writer ${writer}: ${reply.status} for ${name} after ${known}`);
        return;
      }
      // Unknown: it is there or it is not, and nothing else.
      const read = await this.#read(writer, path);
      if (read.name !== known && read.name !== name)
        this.fates.wrong.push(`writer ${writer}: ${read.name} after ${known}`);
      [etag, known] = [read.etag, read.name];
    }
    const last = await this.#read(writer, path);
    if (last.etag !== etag)
      this.fates.wrong.push(`writer ${writer}: ${last.name} stored, ${known} acknowledged`);
  }

  async #read(writer: number, path: string): Promise<{ readonly name: string; readonly etag: string }> {
    for (;;) {
      const reply = await this.#send(writer, "GET", path);
      if (reply.status === 200) return { name: reply.json.name, etag: reply.etag };
      if (reply.status === 404) return { name: "(missing)", etag: "" };
      await Bun.sleep(50);
    }
  }

  #send(writer: number, method: string, path: string, body?: object, headers: Record<string, string> = {}) {
    const server = this.#servers[writer % this.#servers.length];
    if (server === undefined) throw new Error("no server");
    return server.send(this.#token, method, path, { headers, ...(body === undefined ? {} : { body }) });
  }

  #note(): void {
    const now = performance.now();
    this.fates.acknowledged += 1;
    this.fates.pauseMs = Math.max(this.fates.pauseMs, now - this.#lastAt);
    this.#lastAt = now;
  }
}

test(`with a synchronous standby no acknowledged write is lost, ${ROUNDS} times`, async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const synchronous_standby_names = SYNCHRONOUS[round % SYNCHRONOUS.length] ?? "";
    const { primary, standby, servers, database } = await startAll({ synchronous_standby_names });
    const writers = new Writers(servers, place.adminToken);
    await Bun.sleep(LOAD_MS);
    await primary.kill();
    await Bun.sleep(DETECTION_MS);
    await standby.promote();
    const before = writers.fates.acknowledged;
    await Bun.sleep(LOAD_MS + DETECTION_MS);
    const fates = await writers.finish();
    await writers.compareCreations(standby, database);
    console.log(`fail-over: ${JSON.stringify(fates)}`);
    expect(fates.wrong).toEqual([]);
    expect(fates.acknowledged).toBeGreaterThan(before);
    expect(fates.pauseMs).toBeLessThan(PAUSE_MS_MAX);
    await place.clear();
    place = new Workplace();
    for (const end of ends.splice(0).reverse()) await end();
  }
});

test("with an asynchronous standby acknowledged writes are lost: the counter-example", async () => {
  const { primary, standby, servers } = await startAll({});
  const writers = new Writers(servers, place.adminToken);
  await Bun.sleep(LOAD_MS);
  primary.freezeReplication();
  await Bun.sleep(DETECTION_MS);
  await primary.kill();
  await standby.promote();
  await Bun.sleep(LOAD_MS + DETECTION_MS);
  const fates = await writers.finish();
  console.log(`fail-over, asynchronous: ${fates.wrong.length} wrong`);
  expect(fates.wrong.length).toBeGreaterThan(0);
});

import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import { drawRowVersion, type RowVersion } from "../../../domain/entity-tag.ts";
import { NO_BODY, projectionOf } from "../../../domain/projection.ts";
import type { CustomerStore, WriteTarget } from "../../../storage/customers/customer-store.ts";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import type { ServerEvent } from "../../../storage/storage.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";
import { TEST_ORIGIN } from "../../support/service/test-origin.ts";

// Promises that no single server can keep: each test has several, as storages with connections of their own.

const ADA = { name: "Ada", email: "ada@example.com", status: "active" } as const;
const HOLDER = { client: "ci", role: "editor", tenant: "acme" };

const cluster = await PostgresCluster.start();
afterAll(() => cluster.stop());

let url: string;
let servers: PostgresStorage[];
beforeEach(async () => {
  url = await cluster.createDatabase();
  servers = [
    await PostgresStorage.open(url),
    await PostgresStorage.open(url),
    await PostgresStorage.open(url),
  ];
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.close()));
});

function store(index: number): CustomerStore {
  const server = servers[index % servers.length];
  if (server === undefined) throw new Error("no server");
  return server.customers;
}

async function make(tenant = "t"): Promise<WriteTarget & { expected: RowVersion }> {
  const made = await store(0).create(tenant, ADA, Date.now(), null, TEST_ORIGIN);
  if (made.kind !== "created") throw new Error(made.kind);
  return { tenant, id: made.id, expected: made.rowVersion };
}

/** Starts so many workers, each of which does its turns one after another. */
async function together(
  workers: number,
  turns: number,
  work: (worker: number, turn: number) => Promise<void>,
) {
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      for (let turn = 0; turn < turns; turn += 1) await work(worker, turn);
    }),
  );
}

// Every applied write takes the version before it: what the
// writers saw is one chain from the first version to the last.
test.each([1, 16, 200])(
  "%i customers under 24 writers on three servers have one history each",
  async (rows) => {
    const targets = await Promise.all(Array.from({ length: rows }, () => make()));
    const chains = targets.map(() => new Map<string, string>());
    const refusalsOfTheSent: string[] = [];
    const known = targets.map(({ expected }) => expected);
    await together(24, 30, async (worker, turn) => {
      const at = (worker * 7 + turn * 13) % rows;
      const target = targets[at];
      const expected = known[at];
      if (target === undefined || expected === undefined) throw new Error("no such row");
      const outcome = await store(worker).update(
        { ...target, expected },
        { name: `${worker} ${turn}` },
        NO_BODY,
        null,
        TEST_ORIGIN,
      );
      if (outcome.kind === "applied") {
        expect(chains[at]?.has(expected)).toBe(false);
        chains[at]?.set(expected, outcome.rowVersion);
        known[at] = outcome.rowVersion;
      } else if (outcome.kind === "stale") {
        if (outcome.rowVersion === expected) refusalsOfTheSent.push(expected);
        known[at] = outcome.rowVersion;
      } else throw new Error(outcome.kind);
    });
    expect(refusalsOfTheSent).toEqual([]);
    for (const [at, target] of targets.entries()) {
      let version: string = target.expected;
      let steps = 0;
      for (let next = chains[at]?.get(version); next !== undefined; next = chains[at]?.get(version)) {
        version = next;
        steps += 1;
      }
      expect(steps).toBe(chains[at]?.size ?? -1);
      expect<string | null>(await store(1).rowVersion("t", target.id)).toBe(version);
    }
  },
);

test("a reader of pages misses no customer, while three servers with clocks apart create", async () => {
  const made: string[] = [];
  let isOver = false;
  const creating = together(12, 25, async (worker, turn) => {
    const clock = Date.now() + ((worker % 3) - 1) * 4_000;
    const outcome = await store(worker).create("order", ADA, clock + turn, null, TEST_ORIGIN);
    if (outcome.kind === "created") made.push(outcome.id);
  }).then(() => {
    isOver = true;
  });
  const seen: string[] = [];
  for (let wasOver = false; !wasOver; ) {
    wasOver = isOver;
    const after = seen.at(-1) ?? null;
    const query = { tenant: "order", after, limit: 50, status: null, email: null };
    const { items } = await store(1).page(query, projectionOf(["id"]));
    seen.push(...items.map(({ fields }) => fields.id ?? ""));
    if (items.length > 0) wasOver = false;
  }
  await creating;
  expect(seen).toEqual([...made].sort());
});

test("of 30 racers under one key on three servers exactly one creates, in 20 rounds", async () => {
  for (let round = 0; round < 20; round += 1) {
    const key = { tokenId: "c", key: `k${round}`, digest: "01", nowMs: Date.now() };
    const racers = Array.from({ length: 30 }, (_, index) =>
      store(index).create(`r${round}`, ADA, Date.now(), key, TEST_ORIGIN),
    );
    const outcomes = await Promise.all(racers);
    const ids = new Set(outcomes.map((outcome) => (outcome.kind === "created" ? outcome.id : outcome.kind)));
    expect(ids.size).toBe(1);
    expect(outcomes.filter((outcome) => outcome.kind === "created" && !outcome.isReplayed)).toHaveLength(1);
    const query = { tenant: `r${round}`, after: null, limit: 100, status: null, email: null };
    expect((await store(0).page(query, NO_BODY)).items).toHaveLength(1);
  }
});

test("of keyed updates that race on three servers one is applied, and the others are its replays", async () => {
  for (let round = 0; round < 20; round += 1) {
    const target = { ...(await make()), expected: { anyExcept: [] } };
    const key = { tokenId: "c", key: `u${round}`, digest: "01", nowMs: Date.now() };
    const patch = (index: number) =>
      store(index).update(target, { name: "once" }, projectionOf(["name"]), key, TEST_ORIGIN);
    const outcomes = await Promise.all(Array.from({ length: 12 }, (_, index) => patch(index)));
    const versions = new Set(
      outcomes.map((outcome) => (outcome.kind === "applied" ? outcome.rowVersion : "")),
    );
    expect(versions.size).toBe(1);
    expect(outcomes.filter((outcome) => outcome.kind === "applied" && !outcome.isReplayed)).toHaveLength(1);
    expect([...versions][0]).toBe((await store(2).rowVersion("t", target.id)) ?? "");
  }
});

test("a token that one server revoked is refused by every other at the next request, 60 of 60 times", async () => {
  for (let round = 0; round < 60; round += 1) {
    const [one, ...others] = servers;
    const { token } = (await one?.tokens.create(HOLDER, Date.now(), null)) ?? { token: "" };
    for (const other of others) expect(await other.tokens.find(token, Date.now())).toMatchObject(HOLDER);
    expect((await one?.tokens.revoke(token, Date.now()))?.kind).toBe("revoked");
    for (const other of others) expect(await other.tokens.find(token, Date.now())).toBeNull();
  }
});

test("a row that another session locks stops no other write, and its own waits for it", async () => {
  const [locked, ...others] = await Promise.all(Array.from({ length: 40 }, () => make()));
  if (locked === undefined) throw new Error("no row");
  const holder = new Bun.SQL(url, { max: 1 });
  const release = Promise.withResolvers<void>();
  const isLocked = Promise.withResolvers<void>();
  const holding = holder.begin(async (transaction) => {
    await transaction.unsafe("SELECT 1 FROM customers.customers WHERE id = $1::uuid FOR UPDATE", [locked.id]);
    isLocked.resolve();
    await release.promise;
  });
  await isLocked.promise;
  let isWritten = false;
  const waiting = store(0)
    .update(locked, { name: "late" }, NO_BODY, null, TEST_ORIGIN)
    .then((outcome) => {
      isWritten = true;
      return outcome;
    });
  const outcomes = await Promise.all(
    others.map((target) => store(0).update(target, { name: "now" }, NO_BODY, null, TEST_ORIGIN)),
  );
  expect(outcomes.filter(({ kind }) => kind === "applied")).toHaveLength(others.length);
  expect(isWritten).toBe(false);
  release.resolve();
  await holding;
  expect((await waiting).kind).toBe("applied");
  await holder.close();
});

test("batches that overlap on three servers meet no deadlock that a client would see", async () => {
  const targets = await Promise.all(Array.from({ length: 64 }, () => make()));
  const anyVersion = { anyExcept: [] };
  const applied: string[] = [];
  await together(6, 8, async (worker, turn) => {
    const shuffled = targets.toSorted(
      (one, other) =>
        ((one.id.charCodeAt(30 + (worker % 6)) + turn) % 7) - (other.id.charCodeAt(30 + (worker % 6)) % 7),
    );
    const writes = shuffled.map((target) =>
      store(worker).update(
        { ...target, expected: anyVersion },
        { name: `${turn}` },
        NO_BODY,
        null,
        TEST_ORIGIN,
      ),
    );
    applied.push(...(await Promise.all(writes)).map(({ kind }) => kind));
  });
  expect(applied).toEqual(Array.from({ length: 6 * 8 * 64 }, () => "applied"));
});

test("a serialization failure and a deadlock that PostgreSQL reports are tried again", async () => {
  const target = await make();
  for (const state of ["40001", "40P01"]) {
    await cluster.query(
      url,
      `SET search_path = customers; 
      CREATE SEQUENCE tries;
      CREATE FUNCTION fail_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('tries') <= 2 THEN RAISE EXCEPTION 'injected' USING ERRCODE = '${state}'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER fail_twice BEFORE UPDATE ON customers FOR EACH ROW EXECUTE FUNCTION fail_twice()`,
    );
    const { rowVersion } = (await store(0).read("t", target.id, NO_BODY)) ?? {};
    const outcome = await store(0).update(
      { ...target, expected: rowVersion ?? drawRowVersion() },
      { name: state },
      NO_BODY,
      null,
      TEST_ORIGIN,
    );
    expect(outcome.kind).toBe("applied");
    await cluster.query(
      url,
      "SET search_path = customers; DROP TRIGGER fail_twice ON customers; DROP FUNCTION fail_twice; DROP SEQUENCE tries",
    );
  }
});

test("look-ups that come in one turn of the event loop share a statement, and so do writes on different customers", async () => {
  const reads: number[] = [];
  const commits: number[] = [];
  const server = await PostgresStorage.open(url, {
    onServerEvent: (event) => {
      if (event.kind === "read") reads.push(event.lookUps);
    },
    onCommit: ({ writes }) => commits.push(writes),
  });
  const targets = await Promise.all(Array.from({ length: 60 }, () => make()));
  await Promise.all(targets.map(({ id }) => server.customers.read("t", id, NO_BODY)));
  await Promise.all(
    targets.map((target) => server.customers.update(target, { name: "B" }, NO_BODY, null, TEST_ORIGIN)),
  );
  expect({ reads, commits }).toEqual({ reads: [60], commits: [60] });
  await server.close();
});

test("a server runs, whatever forms and limits the database gives to its sessions", async () => {
  const settings = [
    "bytea_output = 'escape'",
    "datestyle = 'german'",
    "standard_conforming_strings = off",
    "default_transaction_isolation = 'serializable'",
    "search_path = 'nowhere'",
    "statement_timeout = 1",
  ];
  const database = new URL(url).pathname.slice(1);
  const changes = settings.map((setting) => `ALTER DATABASE ${database} SET ${setting}`);
  await cluster.query("postgres", changes.join("; "));
  const server = await PostgresStorage.open(url);
  servers.push(server);
  const target = await make();
  expect((await server.customers.update(target, { name: "B\\" }, NO_BODY, null, TEST_ORIGIN)).kind).toBe(
    "applied",
  );
  expect((await server.customers.read("t", target.id, projectionOf(["name"])))?.fields).toEqual({
    name: "B\\",
  });
  const { token } = await server.tokens.create(HOLDER, Date.now(), null);
  expect((await server.tokens.find(token, Date.now()))?.client).toBe("ci");
  expect((await server.tokens.revoke(token, Date.now())).kind).toBe("revoked");
});

test("a server opens as many connections as docs/postgres.md says", async () => {
  const guide = await Bun.file(new URL("../../../docs/postgres.md", import.meta.url)).text();
  const told = Number(/Each service keeps (\d+) connections/.exec(guide)?.[1]);
  const database = await cluster.createDatabase();
  let opened = 0;
  const onServerEvent = ({ kind }: ServerEvent): void => {
    if (kind === "connected") opened += 1;
  };
  const server = await PostgresStorage.open(database, { onServerEvent });
  const text = `SELECT count(*) FROM pg_stat_activity WHERE datname = '${new URL(database).pathname.slice(1)}'`;
  expect([opened, await cluster.query("postgres", text)]).toEqual([told, `${told}`]);
  await server.close();
});

test("twelve servers that start at once on an empty database all start, on one schema", async () => {
  const empty = await cluster.createDatabase();
  const started = await Promise.all(Array.from({ length: 12 }, () => PostgresStorage.open(empty)));
  expect(await cluster.query(empty, "SELECT count(*) FROM customers.meta")).toBe("1");
  const keys = new Set(started.map(({ customers }) => Buffer.from(customers.cursorKey).toString("hex")));
  expect(keys.size).toBe(1);
  await Promise.all(started.map((server) => server.close()));
});

test("the newest id that a tenant had is moved on past the end of its random bits", async () => {
  const near = "0193ffff-ffff-7abc-8abc-fffffffffffe";
  const after = await cluster.query(
    url,
    `SELECT customers.id_after('${near}', 1), customers.id_after('${near}', 3)`,
  );
  expect(after).toBe("0193ffff-ffff-7abc-8abc-ffffffffffff|01940000-0000-7000-8000-000000000001");
});

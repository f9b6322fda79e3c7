import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import { copyDatabase } from "../../../storage/database-url/copy-database.ts";
import { openStorage } from "../../../storage/database-url/open-storage.ts";
import { migratePostgres } from "../../../storage/postgres/migrate-postgres.ts";
import { withPostgresSource } from "../../../storage/postgres/postgres-copy.ts";
import { grantsFor } from "../../../storage/postgres/schema/grants.ts";
import { fillDatabase, MOVED_ROWS, requireMoved } from "../../support/database/moved-database.ts";
import { FaultyProxy } from "../../support/http/faulty-proxy.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";
import { startSecuredCluster } from "../../support/postgres/secured-cluster.ts";
import { launch, runCommand, Workplace } from "../../support/service/server-process.ts";
import { TEST_ORIGIN } from "../../support/service/test-origin.ts";

const cluster = await PostgresCluster.start();
const proxy = await FaultyProxy.start(cluster.port);
afterAll(async () => {
  proxy.stop();
  await cluster.stop();
});

let place: Workplace;
let file: string;
let postgres: string;
beforeEach(async () => {
  place = new Workplace();
  file = `sqlite:${place.path}/from.db`;
  postgres = await cluster.createDatabase();
});
afterEach(async () => {
  proxy.onRequest = () => {};
  await place.clear();
});

const ada = { name: "Ada", email: "ada@example.com", status: "active" } as const;

test("tags, tokens, kept outcomes, cursors and the order of ids outlive a move to PostgreSQL, to another one and back", async () => {
  const before = await fillDatabase(file);
  const second = await cluster.createDatabase();
  const back = `sqlite:${place.path}/back.db`;
  expect(await copyDatabase(file, postgres, { pageRows: 2 })).toEqual({ state: "new", rows: MOVED_ROWS });
  expect(await copyDatabase(postgres, second, { pageRows: 3 })).toEqual({ state: "new", rows: MOVED_ROWS });
  expect(await copyDatabase(second, back)).toEqual({ state: "new", rows: MOVED_ROWS });
  expect((await copyDatabase(file, postgres)).state).toBe("finished");
  for (const url of [postgres, second, back]) await requireMoved(url, before);
});

test("a client notices nothing of a move but a pause: its token, tag, idempotency key and cursor are good on the new database", async () => {
  const old = await place.start({ services: 1 });
  const token = place.adminToken;
  const creation = { headers: { "idempotency-key": '"order-1"' }, body: ada };
  const made = await old.send(token, "POST", "/customers", creation);
  const page = await old.send(token, "GET", "/customers?limit=1&fields=id");
  expect(await old.end()).toBe(0);
  expect((await runCommand(["copy", "--from", place.databaseUrl, "--to", postgres])).code).toBe(0);

  const service = await place.start({ env: { DATABASE_URL: postgres }, cwd: place.path, services: 1 });
  const repeated = await service.send(token, "POST", "/customers", creation);
  expect([repeated.status, repeated.headers.get("idempotency-replayed"), repeated.json.id]).toEqual([
    201,
    "true",
    made.json.id,
  ]);
  const put = { headers: { "if-match": made.etag }, body: { name: "After", email: ada.email } };
  expect((await service.send(token, "PUT", `/customers/${made.json.id}`, put)).status).toBe(204);
  expect((await service.send(token, "PUT", `/customers/${made.json.id}`, put)).status).toBe(412);
  const next = await service.send(token, "GET", `/customers?limit=1&fields=id&cursor=${page.json.next}`);
  const [before, after] = [page, next].map(({ json }) => json.items[0].customer.id as string);
  expect([next.status, (after ?? "") > (before ?? "")]).toEqual([200, true]);
});

test("a copy that is killed whenever it sends something resumes, and no service starts on a part", async () => {
  const source = await openStorage(file);
  const made = Array.from({ length: 3_000 }, (_, n) =>
    source.customers.create(
      "acme",
      { ...ada, name: `Ada ${n}` },
      Date.now(),
      {
        tokenId: "t",
        key: `k${n}`,
        digest: "0a",
        nowMs: Date.now(),
      },
      TEST_ORIGIN,
    ),
  );
  await Promise.all(made);
  await source.close();
  const to = proxy.through(postgres);
  const text = `SELECT application, (SELECT count(*) FROM customers.customers),
    (SELECT count(*) FROM customers.idempotency_keys) FROM customers.meta`;
  // What is sent when it is killed, and what its target holds then.
  for (const [sent, found] of [
    [/CREATE TABLE tokens/, /^no schema$/],
    [/cursor_key = decode/, /^customers-server\|0\|0$/],
    [/INSERT INTO tenants/, /^customers-server copy\|0\|0$/],
    [/Ada 15\d\d/, /^customers-server copy\|[12]000\|0$/],
    [/INSERT INTO idempotency_keys/, /^customers-server copy\|3000\|(0|1000)$/],
    [/k25\d\d/, /^customers-server copy\|3000\|[12]000$/],
    [/UPDATE meta SET application/, /^customers-server copy\|3000\|3000$/],
  ] as const) {
    const child = launch(["copy", "--from", file, "--to", to], { cwd: place.path });
    proxy.onRequest = (bytes) => {
      if (!sent.test(bytes.toString("latin1"))) return;
      // This arrives, and nothing later.
      proxy.fault = "black-hole";
      child.kill("SIGKILL");
    };
    await child.exited;
    proxy.onRequest = () => {};
    proxy.fault = "none";
    const rows = await cluster.query(postgres, text).catch(() => "no schema");
    expect([sent, rows]).toEqual([sent, expect.stringMatching(found)]);
  }
  for (const command of ["serve", "check"]) {
    const env = { DATABASE_URL: postgres, ...(command === "serve" ? { PORT: "0" } : {}) };
    const refused = await runCommand([command], { env, cwd: place.path });
    expect([command, refused.code]).toEqual([command, 1]);
    expect(refused.stderr).toContain("A copy into this database is not complete.");
  }
  const last = await runCommand(["copy", "--from", file, "--to", to], { cwd: place.path });
  expect(last).toMatchObject({ code: 0, stderr: "" });
  expect(last.stdout).toContain("copied, resumed from");
  expect(last.stdout).toContain("3000 customers of 1 tenants, 0 tokens, 3000 idempotency keys");
}, 60_000);

test("a connection that ends on the way is opened again, and the copy goes on", async () => {
  const before = await fillDatabase(file);
  let cuts = 0;
  const onProgress = (): void => {
    cuts += 1;
    proxy.cut();
  };
  await copyDatabase(file, proxy.through(postgres), { onProgress, pageRows: 5 });
  expect(cuts).toBeGreaterThan(10);
  await requireMoved(postgres, before);
});

test("a source that is lost on the way ends the copy with a sentence, and the next one resumes", async () => {
  const before = await fillDatabase(postgres);
  const target = `sqlite:${place.path}/to.db`;
  let pages = 0;
  const onProgress = (): void => {
    pages += 1;
    if (pages === 3) proxy.cut();
  };
  await expect(copyDatabase(proxy.through(postgres), target, { onProgress, pageRows: 5 })).rejects.toThrow(
    /^The database at 127\.0\.0\.1:\d+ can't be used: .* Repeat the copy: it resumes\.$/,
  );
  expect((await copyDatabase(postgres, target)).state).toBe("resumed");
  await requireMoved(target, before);
});

test("a copy verifies a server with TLS, as its source and as its target, by --database-ca", async () => {
  const before = await fillDatabase(file);
  const { cluster: secured, caFile, otherCaFile } = await startSecuredCluster(place.path);
  try {
    const url = `${(await secured.createDatabase()).replace("127.0.0.1", "localhost")}?sslmode=verify-full`;
    const back = `sqlite:${place.path}/back.db`;
    const copy = (from: string, to: string, ca: string) =>
      runCommand(["copy", "--from", from, "--to", to, "--database-ca", ca]);
    for (const [from, to] of [
      [file, url],
      [url, back],
    ] as const) {
      const refused = await copy(from, to, otherCaFile);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/certificate/i)]);
      expect(await copy(from, to, caFile)).toMatchObject({ code: 0, stderr: "" });
    }
    await requireMoved(back, before);
  } finally {
    await secured.stop();
  }
});

test("a source with a service, one that is written, a target in use, one of a role that does not own it, and no schema are refused", async () => {
  await fillDatabase(file);
  const target = `sqlite:${place.path}/to.db`;
  await expect(copyDatabase(postgres, target)).rejects.toThrow("no schema of this service");

  await migratePostgres(postgres, {});
  await cluster.query(postgres, `CREATE ROLE copier LOGIN; ${grantsFor("copier")}`);
  const copier = postgres.replace("postgres@", "copier@");
  await expect(copyDatabase(file, copier)).rejects.toThrow("Copy as its owner");

  const service = await openStorage(postgres);
  await service.customers.create("zz", ada, Date.now(), null, TEST_ORIGIN);
  await expect(copyDatabase(file, postgres)).rejects.toThrow("The target is not empty");
  await expect(copyDatabase(postgres, target)).rejects.toThrow("Services are connected to the source");
  // A role that may not look at other sessions sees it too.
  await expect(copyDatabase(copier, target)).rejects.toThrow("Services are connected to the source");
  await service.close();
});

test("a PostgreSQL source is read alone: meanwhile a service that starts can write nothing", async () => {
  await fillDatabase(postgres);
  await withPostgresSource(postgres, {}, async (source) => {
    const write = cluster.query(
      postgres,
      "SET lock_timeout = '20ms'; UPDATE customers.customers SET name = 'x'",
    );
    await expect(write).rejects.toThrow("lock timeout");
    // Nor does a second copy from it begin.
    await expect(withPostgresSource(postgres, {}, async () => {})).rejects.toThrow(
      "The source is being written",
    );
    expect(await source.page("customers", null, 500)).toHaveLength(21);
  });
});

import { afterAll, beforeEach, expect, test } from "bun:test";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import { grantsFor } from "../../../storage/postgres/schema/grants.ts";
import { freePort } from "../../support/free-port.ts";
import { FaultyProxy } from "../../support/http/faulty-proxy.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";
import { startSecuredCluster } from "../../support/postgres/secured-cluster.ts";
import { runCommand, temporaryDirectory, Workplace } from "../../support/service/server-process.ts";
import { TEST_ORIGIN } from "../../support/service/test-origin.ts";

// What would be wrong quietly: each is refused at the start, in a sentence that says what to do.

const { path: directory, remove } = temporaryDirectory();
// PostgreSQL and PgBouncer run as another user.
chmodSync(directory, 0o755);

const cluster = await PostgresCluster.start();
afterAll(async () => {
  await cluster.stop();
  remove();
});

let url: string;
beforeEach(async () => {
  url = await cluster.createDatabase();
});

async function refusalOf(
  databaseUrl: string,
  options: Parameters<typeof PostgresStorage.open>[1] = {},
): Promise<string> {
  try {
    const storage = await PostgresStorage.open(databaseUrl, options);
    await storage.close();
    return "it was opened";
  } catch (error) {
    return error instanceof Error && error.name === "CommandRefused" ? error.message : `a bug: ${error}`;
  }
}

test("a schema for newer versions alone, one of another program and one of an older version are refused; a newer one that allows it is not", async () => {
  await (await PostgresStorage.open(url)).close();
  const refused = async (change: string) => {
    await cluster.query(url, `UPDATE customers.meta SET ${change}`);
    return await refusalOf(url);
  };
  expect(await refused("schema_version = 9, min_version = 2")).toBe("it was opened");
  expect(await refused("min_version = 9")).toContain("Start a newer version.");
  expect(await refused("min_version = 2, schema_version = 1")).toContain("Run `customers-server migrate`");
  expect(await refused("application = 'other'")).toContain("belongs to another program");
});

test.each(["CREATE TABLE customers.orders (id int)", "CREATE TABLE customers.meta (key text, value text)"])(
  "a schema of that name that another program made is refused: %s",
  async (table) => {
    await cluster.query(url, `CREATE SCHEMA customers; ${table}`);
    expect(await refusalOf(url)).toContain("belongs to another program. Name another database");
  },
);

test("once a migration has left a running service behind, it is not ready and refuses the next request", async () => {
  const place = new Workplace();
  const service = await place.start({ env: { DATABASE_URL: url }, cwd: place.path, services: 1 });
  const get = async (path: string) => (await service.send(place.adminToken, "GET", path)).status;
  expect(await get("/customers")).toBe(200);
  await cluster.query(url, "UPDATE customers.meta SET min_version = 9");
  expect([await get("/customers"), await get("/readyz")]).toEqual([503, 503]);
  await cluster.query(url, "UPDATE customers.meta SET min_version = 2");
  expect([await get("/customers"), await get("/readyz")]).toEqual([200, 200]);
  // Without its one row nobody can say whose tables these are: no 401, which would tell clients that their token is bad.
  await cluster.query(url, "DELETE FROM customers.meta");
  expect(await get("/customers")).toBe(503);
  await service.end();
  const causes = service.log.flatMap(({ cause }) => (cause === undefined ? [] : [cause]));
  const newer = expect.stringContaining("Start a newer version");
  expect(causes).toEqual([newer, newer, expect.stringContaining("lost its schema")]);
  await place.clear();
});

test.each([
  ["serve", ["--database-url", "URL"]],
  ["token", ["list", "--database-url=URL"]],
  ["check", ["--database-url", "URL"]],
  ["copy", ["--from", "sqlite:a.db", "--to", "URL"]],
  ["copy", ["--from", "URL", "--to", "sqlite:a.db"]],
])("a password on the command line of %s %j is refused, since other users see it", async (command, args) => {
  const withPassword = url.replace("postgres@", "postgres:s3cret@");
  const outcome = await runCommand([command, ...args.map((arg) => arg.replace("URL", withPassword))]);
  expect([outcome.code, outcome.stdout]).toEqual([1, ""]);
  expect(outcome.stderr).toContain("PGPASSFILE");
  expect(outcome.stderr).not.toContain("s3cret");
});

test("a password in DATABASE_URL is used, and shown by no command, log, metric or process list", async () => {
  await cluster.query(url, "CREATE ROLE keeper LOGIN SUPERUSER PASSWORD 's3cret'");
  await cluster.requirePassword("keeper");
  const env = { DATABASE_URL: url.replace("postgres@", "keeper:s3cret@") };
  const wrong = await runCommand(["check"], {
    env: { DATABASE_URL: url.replace("postgres@", "keeper:s3cre7@") },
  });
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining("password authentication failed")]);
  expect(wrong.stderr).not.toContain("s3cre7");
  const place = new Workplace();
  const said: string[] = [];
  for (const args of [["migrate"], ["check"], ["token", "list"], ["--help"], ["serve", "--help"]]) {
    const { code, stdout, stderr } = await runCommand(args, { env, cwd: place.path });
    expect([args, code]).toEqual([args, 0]);
    said.push(stdout, stderr);
  }
  const service = await place.start({
    env: { ...env, LOG_LEVEL: "trace", METRICS_ACCESS: "public" },
    cwd: place.path,
    services: 1,
  });
  expect((await service.send(place.adminToken, "GET", "/customers")).status).toBe(200);
  said.push((await service.send(null, "GET", "/metrics")).text);
  said.push(readdirSync("/proc").map(commandLineOf).join("\n"));
  said.push(await cluster.query(url, "SELECT * FROM pg_stat_activity"));
  await service.end();
  said.push(service.stdout.text, service.stderr.text);
  expect(said.join("\n")).toContain("keeper");
  expect(said.join("\n")).not.toContain("s3cret");
  await place.clear();
});

test("the password of DATABASE_URL is not sent to another server, such as the source of a copy", async () => {
  await cluster.query(url, "CREATE ROLE borrower LOGIN SUPERUSER PASSWORD 's3cret'");
  await cluster.requirePassword("borrower");
  const from = url.replace("postgres@", "borrower@");
  const env = { DATABASE_URL: "postgres://borrower:s3cret@db.invalid/x" };
  const refused = await runCommand(["copy", "--from", from, "--to", "sqlite:x.db"], { env, cwd: directory });
  const sentence = /password authentication failed.* No password was found.*PGPASSFILE/;
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(sentence) });
});

test("a role without the right to make a schema is told which command does; with the grants it runs, and may do no more", async () => {
  await cluster.query(url, "CREATE ROLE runner LOGIN");
  const runner = url.replace("postgres@", "runner@");
  expect(await refusalOf(runner)).toContain("Run `customers-server migrate`");
  await (await PostgresStorage.open(url)).close();
  expect(await refusalOf(runner)).toMatch(/permission denied .*`customers-server grants --role runner`/);
  await cluster.query(url, grantsFor("runner"));
  const storage = await PostgresStorage.open(runner);
  const made = await storage.customers.create(
    "t",
    { name: "A", email: "a@b", status: "active" },
    Date.now(),
    null,
    TEST_ORIGIN,
  );
  expect(made.kind).toBe("created");
  await storage.ping();
  await storage.close();
  const place = new Workplace();
  const service = await place.start({ env: { DATABASE_URL: runner }, cwd: place.path, services: 1 });
  expect((await service.send(place.adminToken, "GET", "/customers")).status).toBe(200);
  await place.clear();
  for (const sql of [
    "DROP TABLE customers.tokens",
    "TRUNCATE customers.customers",
    "DELETE FROM customers.tokens",
    "CREATE TABLE customers.x (a int)",
    "UPDATE customers.meta SET min_version = 9",
  ]) {
    await expect(cluster.query(runner, sql)).rejects.toThrow(/permission denied|must be owner/);
  }
});

test("a role that may not delete old rows of the audit trail is refused where AUDIT_RETENTION_DAYS asks for it", async () => {
  await cluster.query(url, "CREATE ROLE keeper_of_rows LOGIN");
  const service = url.replace("postgres@", "keeper_of_rows@");
  await (await PostgresStorage.open(url)).close();
  await cluster.query(url, grantsFor("keeper_of_rows"));
  expect(await refusalOf(service)).toBe("it was opened");
  expect(await refusalOf(service, { deletesAuditRows: true })).toContain(
    "`customers-server grants --role keeper_of_rows --audit-retention`",
  );
  await expect(cluster.query(service, "DELETE FROM customers.audit")).rejects.toThrow("permission denied");
  const { stdout } = await runCommand(["grants", "--role", "keeper_of_rows", "--audit-retention"]);
  await cluster.query(url, stdout);
  expect(await refusalOf(service, { deletesAuditRows: true })).toBe("it was opened");
});

test("a role that may not delete values of the audit trail erases a customer of whom none are kept alone", async () => {
  await cluster.query(url, "CREATE ROLE eraser LOGIN");
  await (await PostgresStorage.open(url)).close();
  await cluster.query(url, grantsFor("eraser"));
  const storage = await PostgresStorage.open(url.replace("postgres@", "eraser@"));
  const create = async (keepsValues: boolean) => {
    const ada = { name: "Ada", email: "ada@example.com", status: "active" } as const;
    const made = await storage.customers.create("t", ada, 0, null, { ...TEST_ORIGIN, keepsValues });
    return made.kind === "created" ? made.id : "";
  };
  const [plain, kept] = [await create(false), await create(true)];
  expect(await storage.persons.erase("t", plain)).toMatchObject({ wasStored: true });
  const refusal = "`customers-server grants --role eraser --erasure`";
  await expect(storage.persons.erase("t", kept)).rejects.toThrow(refusal);
  expect(await storage.persons.record("t", kept)).not.toBeNull();
  const another = await create(false);
  for (const flags of [[], ["--yes"]]) {
    const env = { DATABASE_URL: url.replace("postgres@", "eraser@") };
    const refused = await runCommand(["person", "erase", another, kept, ...flags], { env });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(refusal)]);
    expect(refused.stdout.includes("erased: ")).toBe(flags.length === 0);
  }
  expect(await storage.persons.record("t", another)).not.toBeNull();
  const { stdout } = await runCommand(["grants", "--role", "eraser", "--erasure"]);
  await cluster.query(url, stdout);
  expect(await storage.persons.erase("t", kept)).toMatchObject({ wasStored: true, values: 1 });
  await storage.close();
});

test("a standby is refused, one that is asynchronous is reported or refused, and so is the old primary once a promoted standby was seen", async () => {
  await (await PostgresStorage.open(url)).close();
  const standby = await cluster.startStandby();
  const proxy = await FaultyProxy.start(standby.port);
  try {
    expect(await refusalOf(standby.url("postgres"))).toContain("is a standby");
    const faults: string[] = [];
    expect(await refusalOf(url, { onFault: (sentence) => faults.push(sentence) })).toBe("it was opened");
    expect(faults).toEqual([expect.stringContaining("Commits wait for no standby")]);
    expect(await refusalOf(url, { requiresSynchronousStandby: true })).toContain(
      "Commits wait for no standby",
    );
    await standby.promote();
    const storage = await PostgresStorage.open(proxy.through(url), { limits: { giveUpMs: 300 } });
    await storage.ping();
    proxy.targetPort = cluster.port;
    proxy.cut();
    await expect(storage.ping()).rejects.toThrow("it is an old primary");
    await expect(storage.customers.rowVersion("t", crypto.randomUUID())).rejects.toThrow("Fence it off");
    proxy.targetPort = standby.port;
    expect(await storage.customers.rowVersion("t", crypto.randomUUID())).toBeNull();
    await storage.close();
  } finally {
    proxy.stop();
    await standby.stop();
  }
});

test("a server that does not answer, a database and a role that do not exist are refused, and no password is shown", async () => {
  const withPassword = (text: string) => text.replace("postgres@", "postgres:s3cret@");
  const texts = [
    `postgres://postgres@127.0.0.1:${freePort()}/nowhere`,
    cluster.url("nowhere"),
    cluster.url("postgres", "nobody").replace("nobody@", "nobody:s3cret@"),
  ];
  const [absent = ""] = texts;
  expect(await refusalOf(absent)).toContain(
    ". See that it runs there, and that DATABASE_URL and DATABASE_CA are right",
  );
  for (const text of texts) {
    const refusal = await refusalOf(withPassword(text));
    expect(refusal).toMatch(/^The database at 127\.0\.0\.1:\d+ can't be used: /);
    expect(refusal).not.toContain("s3cret");
  }
  const outcome = await runCommand(["check"], {
    env: { DATABASE_URL: withPassword(cluster.url("nowhere")) },
  });
  expect(outcome.code).toBe(1);
  expect(outcome.stdout + outcome.stderr).not.toContain("s3cret");
});

test("migrate makes the schema once, and backup and restore name PostgreSQL's own tools", async () => {
  const run = (...args: string[]) => runCommand(args, { env: { DATABASE_URL: url } });
  expect((await run("migrate")).stdout).toContain("the schema was made");
  expect((await run("migrate")).stdout).toContain("the schema is up to date");
  expect((await run("check")).stdout).toContain("the structure is sound (schema 2, 0 customers, 0 tokens)");
  expect((await run("backup", "x")).stderr).toContain("use pg_dump");
  expect((await run("restore", "x")).stderr).toContain("use pg_restore");
});

test("check may take longer than a request, since it counts every row", async () => {
  await (await PostgresStorage.open(url)).close();
  await cluster.query(
    url,
    `ALTER TABLE customers.customers RENAME TO many;
    CREATE VIEW customers.customers AS SELECT many.* FROM customers.many, pg_sleep(4.2)`,
  );
  // A row, without which the view need not sleep.
  await cluster.query(
    url,
    `INSERT INTO customers.many VALUES ('t', gen_random_uuid(), 'A', 'a@b', 'a@b', 'active', 'AAAAAAAAAAAAAAAA', 1);
    INSERT INTO customers.tenants SELECT tenant, id FROM customers.many`,
  );
  const { code, stdout, stderr } = await runCommand(["check"], { env: { DATABASE_URL: url } });
  expect([code, stderr, stdout]).toEqual([0, "", expect.stringContaining("1 customers")]);
});

test("a certificate of another authority, another host and a server without TLS are refused; the right one is not", async () => {
  const { cluster: secured, caFile, otherCaFile } = await startSecuredCluster(directory);
  try {
    const verified = `${await secured.createDatabase()}?sslmode=verify-full`;
    const localhost = verified.replace("127.0.0.1", "localhost");
    expect(await refusalOf(localhost, { caFile })).toBe("it was opened");
    expect(await refusalOf(localhost, { caFile: otherCaFile })).toMatch(/certificate/i);
    expect(await refusalOf(verified.replace("127.0.0.1", "127.0.0.2"), { caFile })).toMatch(
      /certificate|host|altname/i,
    );
    expect(await refusalOf(localhost)).toMatch(/certificate/i);
    expect(await refusalOf(`${url}?sslmode=verify-full`, { caFile })).toMatch(/can't be used: .*(TLS|SSL)/i);
    expect(await refusalOf(verified.replace("verify-full", "require"), { caFile })).toContain(
      "does not verify the server",
    );
  } finally {
    await secured.stop();
  }
});

function commandLineOf(pid: string): string {
  const file = `/proc/${pid}/cmdline`;
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

const IGNORED =
  "ignore_startup_parameters = search_path,statement_timeout,lock_timeout,idle_in_transaction_session_timeout,synchronous_commit,tcp_keepalives_idle,jit,enable_hashjoin,enable_mergejoin,enable_seqscan,plan_cache_mode";

test.each([
  ["and drops the session's settings", IGNORED],
  ["and refuses the session's settings", ""],
])("a pooler that changes sessions between statements %s is refused", async (_, ignored) => {
  const port = freePort();
  const file = join(directory, "pgbouncer.ini");
  const database = new URL(url).pathname.slice(1);
  writeFileSync(
    file,
    `[databases]
${database} = host=127.0.0.1 port=${cluster.port} pool_size=1 user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
auth_type = any
pool_mode = transaction
unix_socket_dir =
${ignored}
`,
  );
  const user = process.getuid?.() === 0 ? ["-u", "postgres"] : [];
  chmodSync(file, 0o644);
  const pooler = Bun.spawn(["pgbouncer", ...user, file], { stdout: "ignore", stderr: "pipe" });
  try {
    const through = url.replace(/:\d+\//, `:${port}/`);
    let refusal = "";
    do {
      await Bun.sleep(20);
      refusal = await refusalOf(through);
    } while (refusal.includes("Failed to connect") && pooler.exitCode === null);
    expect(refusal).toContain("A pooler between this service and PostgreSQL");
  } finally {
    pooler.kill("SIGTERM");
    await pooler.exited;
  }
});

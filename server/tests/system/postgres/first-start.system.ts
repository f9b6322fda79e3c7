import { afterAll, afterEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { FaultyProxy } from "../../support/http/faulty-proxy.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";
import { launch, Workplace } from "../../support/service/server-process.ts";

const cluster = await PostgresCluster.start();
const proxy = await FaultyProxy.start(cluster.port);
const place = new Workplace();
afterEach(() => place.endAll());
afterAll(async () => {
  await place.clear();
  proxy.stop();
  await cluster.stop();
});

/** A directory as of a machine of its own. */
function machine(name: string): string {
  const directory = `${place.path}/${name}`;
  mkdirSync(directory);
  return directory;
}

const tokenOf = (directory: string) => readFileSync(`${directory}/data/admin.token`, "utf8").trim();

test("twelve services that start at once on an empty database make one schema, one admin token and three samples, and all serve", async () => {
  const url = await cluster.createDatabase();
  const machines = Array.from({ length: 12 }, (_, index) => machine(`${index}`));
  const env = { DATABASE_URL: url, SAMPLES: "1" };
  const services = await Promise.all(machines.map((cwd) => place.start({ env, cwd, services: 1 })));
  const [first = "", ...others] = machines.filter((directory) => existsSync(`${directory}/data/admin.token`));
  expect(others).toEqual([]);
  for (const service of services) {
    const reply = await service.send(tokenOf(first), "GET", "/customers");
    expect([reply.status, reply.json.items.length]).toEqual([200, 3]);
  }
  expect(await cluster.query(url, "SELECT count(*) FROM customers.tokens")).toBe("1");
}, 120_000);

// When it is killed: as it sends the first statement that is like the last of these, after the ones before it.
test.each([
  ["before it makes a table", [/CREATE SCHEMA/]],
  ["among the tables", [/CREATE TABLE tokens/]],
  ["before the schema is committed", [/INSERT INTO meta/, /COMMIT/]],
  ["before it makes the token", [/INSERT INTO tokens/]],
  ["before it makes the samples", [/INSERT INTO tokens/, /INSERT INTO customers/]],
  ["before the token is committed, or just after", [/INSERT INTO tokens/, /COMMIT/]],
])(
  "a first start that is killed %s is completed by the next one",
  async (title, sent) => {
    const url = await cluster.createDatabase();
    const cwd = machine(title);
    const env = { DATABASE_URL: proxy.through(url), SAMPLES: "1", PORT: "0" };
    const child = launch(["serve"], { env, cwd });
    const left = [...sent];
    proxy.onRequest = (bytes) => {
      while (left[0]?.test(bytes.toString("latin1")) === true) left.shift();
      if (left.length > 0) return;
      // This arrives, and nothing later.
      proxy.fault = "black-hole";
      child.kill("SIGKILL");
    };
    await child.exited;
    expect(left).toEqual([]);
    proxy.onRequest = () => {};
    proxy.cut();
    proxy.fault = "none";
    const service = await place.start({ env, cwd, services: 1 });
    const reply = await service.send(tokenOf(cwd), "GET", "/customers");
    expect([reply.status, reply.json.items.length]).toEqual([200, 3]);
    expect(existsSync(`${cwd}/data/admin.token.partial`)).toBe(false);
    expect(await cluster.query(url, "SELECT count(*) FROM customers.tokens")).toBe("1");
  },
  60_000,
);

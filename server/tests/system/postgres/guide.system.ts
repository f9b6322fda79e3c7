import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fillDatabase } from "../../support/database/moved-database.ts";
import { startSecuredCluster } from "../../support/postgres/secured-cluster.ts";
import { Workplace } from "../../support/service/server-process.ts";

// docs/postgres.md as a reader pastes it, with this test's server in place of db.example.
const guide = await Bun.file(new URL("../../../docs/postgres.md", import.meta.url)).text();
const REPOSITORY = new URL("../../../..", import.meta.url).pathname;

const place = new Workplace();
const { cluster, caFile } = await startSecuredCluster(place.path);
afterAll(async () => {
  await cluster.stop();
  await place.clear();
});

/** The blocks of a language below a heading. */
function blocks(heading: string, language: string): string[] {
  const [, section = ""] = guide.split(`\n${heading}\n`);
  const own = section.split(/\n##? /)[0] ?? "";
  return [...own.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(
    ([, text = ""]) => text,
  );
}

function here(text: string): string {
  return (
    text
      // Another machine is verified without being told to.
      .replaceAll(/(@db\.example:5432\/\w+)/g, "$1?sslmode=verify-full")
      .replaceAll("db.example:5432", `localhost:${cluster.port}`)
      .replaceAll("/etc/customers/db-ca.pem", caFile)
      .replaceAll("/etc/customers", place.path)
      .replaceAll("bun server/main.ts", `${process.execPath} ${REPOSITORY}server/main.ts`)
  );
}

async function paste(script: string): Promise<{ code: number; said: string }> {
  const { PATH = "" } = process.env;
  const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", here(script)], {
    cwd: place.path,
    env: { PATH: `${dirname(process.execPath)}:${PATH}`, HOME: place.path },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [code, out, err] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code, said: out + err };
}

test("a database is set up, moved to and served as the guide says, by two roles with passwords in a file", async () => {
  const [roles = ""] = blocks("## Set it up", "sql");
  for (const statement of roles.split(";\n")) await cluster.query("postgres", statement);
  for (const role of ["customers_owner", "customers_service"]) await cluster.requirePassword(role);
  const [names = "", schema = "", serve = ""] = blocks("## Set it up", "sh");
  expect(serve).toContain("server/main.ts serve");
  const made = await paste(`${names}\n${schema}`);
  expect(made).toMatchObject({ code: 0, said: expect.stringContaining("the schema was made") });

  place.makeDirectory();
  await fillDatabase(place.databaseUrl);
  const [copy = "", rehearsal = ""] = blocks("## Move a database", "sh");
  await cluster.query("postgres", "CREATE DATABASE rehearsal OWNER customers_owner");
  const rehearsed = await paste(`${names}\n${rehearsal}`);
  expect(rehearsed).toMatchObject({ code: 0, said: expect.stringContaining("21 customers") });
  const moved = await paste(`${names}\n${copy}`);
  expect(moved).toMatchObject({ code: 0, said: expect.stringContaining("21 customers, 4 tokens)") });

  const env = {
    DATABASE_URL: here("postgres://customers_service@db.example:5432/customers"),
    DATABASE_CA: caFile,
    PGPASSFILE: here("/etc/customers/pgpass"),
  };
  const service = await place.start({ env, cwd: place.path, services: 1 });
  expect((await service.send(null, "GET", "/readyz")).status).toBe(200);
  expect(await service.end()).toBe(0);
});

test("HAProxy accepts the configuration of the guide", () => {
  const [config = ""] = blocks("## HAProxy in front of PostgreSQL", "haproxy");
  const file = `${place.path}/haproxy.cfg`;
  writeFileSync(file, config);
  const { exitCode, stderr } = Bun.spawnSync(["haproxy", "-c", "-f", file]);
  expect([exitCode, exitCode === 0 ? "" : String(stderr)]).toEqual([0, ""]);
});

test("bash can read the drills of the guide", () => {
  const drills = blocks("## Rehearse a fail-over", "sh");
  expect(drills.length).toBeGreaterThan(4);
  const { exitCode, stderr } = Bun.spawnSync(["bash", "-n", "-c", drills.join("\n")]);
  expect([exitCode, String(stderr)]).toEqual([0, ""]);
});

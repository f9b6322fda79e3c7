import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { Glob } from "bun";
import { launch, Output, runCommand, Workplace } from "./support/service/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

describe("a usage error exits with 2, names the fault, and writes nothing to stdout", () => {
  test.each([
    { args: ["chek"], says: ["unknown command 'chek'", "Did you mean check?"] },
    { args: ["--port", "0", "bakcup"], says: ["unknown command 'bakcup'", "Did you mean backup?"] },
    { args: ["entirely-else"], says: ["unknown command 'entirely-else'"] },
    { args: ["--prot", "0"], says: ["unknown option '--prot'", "Did you mean --port?"] },
    { args: ["token", "lst"], says: ["unknown command 'lst'", "Did you mean list?"] },
    { args: ["token", "create", "--role", "admin"], says: ["--client"] },
    { args: ["token", "revoke"], says: ["prefix"] },
    { args: ["backup"], says: ["file"] },
    { args: ["check", "--forec"], says: ["unknown option '--forec'"] },
    { args: ["policy", "chek", "x"], says: ["unknown command 'chek'", "Did you mean check?"] },
    { args: ["token"], says: ["create", "list", "revoke"] },
  ])("$args", async ({ args, says }) => {
    const { code, stdout, stderr } = await place.command(args);
    expect([code, stdout]).toEqual([2, ""]);
    for (const words of says) expect(stderr).toContain(words);
  });

  test("as a process too, and nothing is created", async () => {
    const outcome = await runCommand(["chek"], { cwd: place.path });
    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toContain("Did you mean check?");
    expect(readdirSync(place.path)).toEqual([]);
  });

  test("asking for help or the version is none", async () => {
    for (const args of [["serve", "--help"], ["--version"]]) {
      const outcome = await runCommand(args, { cwd: place.path });
      expect(outcome).toMatchObject({ code: 0, stderr: "" });
      expect(outcome.stdout).not.toBe("");
    }
  });
});

test
  .if(process.platform === "linux")
  .each([{ args: ["--help"] }, { args: ["audit"] }, { args: ["unknown"] }])(
  "a pipe stays blocking for the next program that writes to it: $args",
  async ({ args }) => {
    place.makeDirectory();
    const script = '{ "$@"; grep flags: /proc/self/fdinfo/1; } 2>&1 | tail -n 1';
    const env = { DATABASE_URL: place.databaseUrl };
    const { stdout } = await runCommand(args, { cwd: place.path, env, under: ["sh", "-c", script, "sh"] });
    expect(stdout).toBe("flags:\t01\n");
  },
);

test.each([
  { args: ["grants", "--role", ""], says: '--role "" must be the name of a PostgreSQL role' },
  { args: ["grants", "--role", "r".repeat(64)], says: "1 to 63 bytes" },
  { args: ["backup", ""], says: "The name of the backup is empty. Name a file that does not exist yet." },
])("$args is refused", async ({ args, says }) => {
  const { code, stdout, stderr } = await place.command(args);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toContain(says);
});

describe("output that can't be written", () => {
  const onFullDisk = ["sh", "-c", 'exec "$@" >/dev/full', "sh"];

  test.each([{ args: ["--version"] }, { args: ["--help"] }, { args: ["token", "--help"] }])(
    "is said in one line by $args",
    async ({ args }) => {
      const outcome = await runCommand(args, { cwd: place.path, under: onFullDisk });
      expect(outcome.code).toBe(1);
      expect(outcome.stderr).toMatch(/^Standard output can't be written: [^\n]*\n$/);
    },
  );

  test.each([
    { args: ["token", "list"] },
    { args: ["token", "list", "--json"] },
    { args: ["token", "create", "--client", "ci", "--role", "viewer", "--tenant", "acme"] },
    { args: ["rollout", "report"] },
    { args: ["check"] },
  ])("is said by $args, and the exit code is 1", async ({ args }) => {
    place.makeDirectory();
    const made = await place.command([
      "token",
      "create",
      "--client",
      "first",
      "--role",
      "admin",
      "--tenant",
      "acme",
    ]);
    expect(made.code).toBe(0);
    const outcome = await runCommand(args, {
      cwd: place.path,
      env: { DATABASE_URL: place.databaseUrl },
      under: onFullDisk,
    });
    expect(outcome.stderr).toContain("Standard output can't be written: ENOSPC");
    expect(outcome.code).toBe(1);
  });

  test.each([{ args: ["--print-url"] }, { args: [] }])(
    "does not end the service, which says so in its log: $args",
    async ({ args }) => {
      const env = { DATABASE_URL: `sqlite:${place.path}/customers.db`, PORT: "0", STOP_GRACE: "0" };
      const service = launch(["serve", ...args], { env, under: onFullDisk });
      const log = new Output(service.stderr);
      await log.line((line) => line.includes("Standard output can't be written: ENOSPC"));
      const listening = await log.line((line) => line.includes('"msg":"listening"'));
      const { url } = JSON.parse(listening ?? "{}") as { url: string };
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      service.kill();
      expect(await service.exited).toBe(0);
      expect(log.lines.map((line) => JSON.parse(line).level)).toContain("error");
    },
  );

  test("is noticed everywhere: no command writes with console.log", async () => {
    const commands = new Glob("*.ts").scanSync(`${import.meta.dir}/../commands`);
    const withConsole = [...commands].filter((file) =>
      readFileSync(`${import.meta.dir}/../commands/${file}`, "utf8").includes("console.log("),
    );
    expect(withConsole).toEqual([]);
  });
});

describe("settings", () => {
  test("are refused all at once, with what to do about each, before anything is made", async () => {
    const outcome = await runCommand([], {
      cwd: place.path,
      env: {
        HOST: "*",
        PORT: "80800",
        DATABASE_URL: "postgres://u:s3cret@db.example/x?sslmode=require",
        POLICY_FILE: "no-such-policy.toml",
        METRICS_ACCESS: "open",
        LOG_LEVEL: "loud",
        LOG_FORMAT: "xml",
        TLS_CERT_FILE: "no-such-cert.pem",
        CORS_ORIGINS: "https://example.com/app",
        PUBLIC_URL: "example.com",
      },
    });
    expect(outcome.code).toBe(1);
    expect(outcome.stdout).toBe("");
    const faulty = [
      ["HOST", "*", "0.0.0.0 for all"],
      ["PORT", "80800", "0 to 65535"],
      ["DATABASE_URL", "postgres://u:***@db.example/x", "it has sslmode=require", "use verify-full"],
      ["POLICY_FILE", "no-such-policy.toml", "cannot be read"],
      ["METRICS_ACCESS", "open", "token, public"],
      ["LOG_LEVEL", "loud", "info"],
      ["LOG_FORMAT", "xml", "json, text"],
      ["CORS_ORIGINS", "https://example.com/app", "scheme://host"],
      ["PUBLIC_URL", "example.com", "http or https"],
      ["TLS_CERT_FILE", "no-such-cert.pem", "cannot be read"],
      ["TLS_KEY_FILE", '""', "set it too"],
    ];
    const lines = outcome.stderr.trim().split("\n").slice(1);
    expect(lines).toHaveLength(faulty.length);
    for (const [index, words] of faulty.entries()) {
      for (const word of words) expect(lines[index]).toContain(word);
    }
    expect(readdirSync(place.path)).toEqual([]);
  });

  test("that a command does not use can't stop it", async () => {
    const outcome = await runCommand(["token", "list"], {
      cwd: place.path,
      env: { PORT: "many", TLS_KEY_FILE: "no-such-key.pem", DATABASE_URL: "sqlite:missing.db" },
    });
    expect(outcome.stderr).not.toContain("PORT");
    expect(outcome.stderr).toContain("missing.db does not exist");
  });

  test("as flags win over the environment, and an empty variable is one that is not set", async () => {
    const service = await place.start({
      env: { LOG_LEVEL: "loud", HOST: "", METRICS_ACCESS: "", PUBLIC_URL: "https://from.env.example" },
      args: ["--log-level", "info", "--public-url", "https://from.flag.example/crm/"],
    });
    expect(service.url).toStartWith("http://127.0.0.1:");
    const reply = await fetch(`${service.url}/nowhere`);
    expect(((await reply.json()) as { type: string }).type).toBe(
      "https://from.flag.example/crm/problems/route-not-found",
    );
    expect((await fetch(`${service.url}/metrics`)).status).toBe(401);
  });
});

describe("the address", () => {
  test("is the one line of stdout under --print-url", async () => {
    const service = await place.start();
    expect(service.stdout.text).toBe(`${JSON.stringify({ url: service.url })}\n`);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    expect(await service.end()).toBe(0);
    expect(service.stdout.text).toBe(`${JSON.stringify({ url: service.url })}\n`);
  });

  test("that is taken refuses the start in a sentence, and nothing is made", async () => {
    const service = await place.start();
    const second = await runCommand([], {
      cwd: place.path,
      env: { PORT: String(service.port), DATABASE_URL: "sqlite:second/customers.db" },
    });
    expect(second.code).toBe(1);
    expect(second.stderr).toBe(
      `Port ${service.port} on 127.0.0.1 is already in use. Choose another with PORT=… (0 picks a free one).\n`,
    );
    expect(existsSync(`${place.path}/second`)).toBe(false);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  });

  test.each([{ REUSE_PORT: "0" }, { REUSE_PORT: "1" }, { REUSE_PORT: "1", DATABASE_URL: "sqlite::memory:" }])(
    "that another program has refuses a first start, and nothing is made: %p",
    async (env) => {
      using other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
      const outcome = await runCommand([], {
        cwd: place.path,
        env: { DATABASE_URL: "sqlite:second/customers.db", ...env, PORT: String(other.port) },
      });
      expect(outcome).toEqual({
        code: 1,
        stdout: "",
        stderr: `Port ${other.port} on 127.0.0.1 is already in use. Choose another with PORT=… (0 picks a free one).\n`,
      });
      expect(readdirSync(place.path)).toEqual([]);
    },
  );

  test("of a name that is none refuses the start with the setting to change", async () => {
    const outcome = await runCommand([], { cwd: place.path, env: { HOST: "a.invalid", PORT: "0" } });
    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toMatch(
      /^a\.invalid:0 cannot be listened on: .* Set HOST to an address of this machine/,
    );
    expect(readdirSync(place.path)).toEqual([]);
  });

  test("of a host that is not this machine's refuses the start likewise", async () => {
    const outcome = await runCommand([], {
      cwd: place.path,
      env: { HOST: "192.0.2.1", PORT: "0" },
    });
    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toBe(
      "192.0.2.1 is not an address of this machine. Set HOST to one that is, such as 127.0.0.1 or 0.0.0.0.\n",
    );
    expect(readdirSync(place.path)).toEqual([]);
  });
});

describe("a database in memory", () => {
  test("serves, with its token in a file that is gone at the end", async () => {
    const service = await place.start({
      services: 1,
      env: { DATABASE_URL: "sqlite::memory:", TMPDIR: place.path },
    });
    const [made] = readdirSync(place.path);
    const token = (await Bun.file(`${place.path}/${made}/admin.token`).text()).trim();
    const reply = await fetch(`${service.url}/customers`, { headers: { authorization: `Bearer ${token}` } });
    expect(((await reply.json()) as { items: unknown[] }).items).toHaveLength(3);
    expect(await service.end()).toBe(0);
    expect(readdirSync(place.path)).toEqual([]);
  });

  test("is none that another command could look into", async () => {
    for (const args of [["token", "list"], ["check"], ["backup", "b.db"]]) {
      const outcome = await place.command(args, { DATABASE_URL: "sqlite::memory:" });
      expect(outcome.code).toBe(1);
      expect(outcome.stderr).toContain("lives inside a running service");
    }
  });
});

describe("policy check", () => {
  const ROLE = '[roles.clerk]\nread = ["id"]\noperations = ["get"]\n';
  const NO_LIMITS = `  limits of each client: none
  limits of each tenant: none
  wrong tokens of an address: 20 a second, 200 at once
`;
  const check = (text: string) => {
    writeFileSync(`${place.path}/policy.toml`, text);
    return place.command(["policy", "check", "policy.toml"]);
  };

  test("says what a valid policy holds, and when its allowance ends", async () => {
    const observe = (date: string) => `${ROLE}[enforcement]\nmode = "observe"\nuntil = ${date}\n`;
    const said = (what: string) => ({
      code: 0,
      stderr: expect.any(String),
      stdout: `policy.toml: valid (roles clerk; ${what})\n${NO_LIMITS}`,
    });
    expect(await check(ROLE)).toEqual(said("enforcement strict"));
    expect(await check(observe("2999-01-31"))).toEqual(said("enforcement observe until 2999-01-31"));
    expect(await check(observe("2001-01-31"))).toEqual(
      said("enforcement observe until 2001-01-31, which is over"),
    );
    const kept = "enforcement strict; the audit trail keeps values, which are personal data";
    expect(await check(`${ROLE}[audit]\nvalues = true\n`)).toEqual(said(kept));
    expect(await check(`${ROLE}[audit]\nvalues = false\n`)).toEqual(said("enforcement strict"));
  });

  test("says which limits apply", async () => {
    const limits = `[limits.client]
requests = { per_second = 100, burst = 200 }
writes = { per_second = 0.5, burst = 1 }
[limits.clients.nightly-import]
writes = { per_second = 200, burst = 400 }
[limits.tenants.acme]
[limits.address]
unlimited = true
`;
    expect((await check(`${ROLE}${limits}`)).stdout.split("\n").slice(1)).toEqual([
      "  limits of each client: requests 100 a second, 200 at once; writes 0.5 a second, 1 at once",
      "  limits of each tenant: none",
      "  limits of client nightly-import: writes 200 a second, 400 at once",
      "  limits of tenant acme: none",
      "  wrong tokens of an address: no limit",
      "",
    ]);
  });

  test.each([
    { days: 366, isFar: false },
    { days: 368, isFar: true },
  ])("warns of an allowance that ends in $days days: $isFar", async ({ days, isFar }) => {
    const until = new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
    const { code, stdout, stderr } = await check(
      `${ROLE}[enforcement]\nmode = "observe"\nuntil = ${until}\n`,
    );
    expect([code, stdout]).toEqual([0, expect.stringContaining(`enforcement observe until ${until}`)]);
    const warning = `enforcement.until, ${until}, is more than a year away, and until then writes without If-Match are accepted. Choose an earlier day.\n`;
    expect(stderr).toBe(isFar ? warning : "");
  });

  test("exits with 1 and names every fault of one that is refused, without any setting or database", async () => {
    const refused = await check(`${ROLE}[roles.x]\nread = ["nmae"]\noperations = ["gte"]\n[enforcment]\n`);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    for (const words of ["nmae", "gte", "enforcment", "did you mean"])
      expect(refused.stderr).toContain(words);
    expect((await check("[roles")).stderr).toContain("it is not TOML");
    const secret = `cst_${"s".repeat(40)}`;
    const ofTokens = await check(`${secret}\n`);
    expect(ofTokens.stderr).toContain("it is not TOML: line 1, column 45");
    expect(ofTokens.stderr).not.toContain(secret);
    const missing = await place.command(["policy", "check", "missing.toml"], { PORT: "many" });
    expect(missing).toMatchObject({ code: 1, stdout: "" });
    expect(missing.stderr).toContain("it cannot be read");
    const device = await place.command(["policy", "check", "/dev/zero"]);
    expect(device).toMatchObject({ code: 1, stdout: "" });
    expect(device.stderr).toContain("it cannot be read: /dev/zero is not a regular file");
    expect(readdirSync(place.path)).toEqual(["policy.toml"]);
  });
});

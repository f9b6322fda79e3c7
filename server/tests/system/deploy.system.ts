/** What stands in server/deploy, used as far as one machine without containers allows. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../support/free-port.ts";
import { selfSignedCertificate } from "../support/http/self-signed-certificate.ts";
import { ServerProcess, temporaryDirectory, Workplace } from "../support/service/server-process.ts";
import { TestService } from "../support/service/test-service.ts";

const DEPLOY = new URL("../../deploy/", import.meta.url).pathname;
const ROOT = new URL("../../..", import.meta.url).pathname;

let place: Workplace;
const programs: ReturnType<typeof Bun.spawn>[] = [];
beforeEach(() => {
  place = new Workplace();
});
afterEach(async () => {
  for (const program of programs.splice(0)) {
    program.kill("SIGTERM");
    await program.exited;
  }
  await place.clear();
});

function read(path: string): string {
  return readFileSync(join(DEPLOY, path), "utf8");
}

/** @param texts what stands in the file, and what stands there for the test; each must be found */
function adapted(path: string, texts: Readonly<Record<string, string>>): string {
  return Object.entries(texts).reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`${path} has no ${from}`);
    return text.replaceAll(from, to);
  }, read(path));
}

async function run(command: readonly string[]): Promise<{ code: number; said: string }> {
  const child = Bun.spawn([...command], { stdio: ["ignore", "pipe", "pipe"] });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, said: out + err };
}

describe("the unit of systemd", () => {
  const directory = temporaryDirectory();
  const unit = `${directory.path}/customers@.service`;
  beforeAll(() => {
    // systemd-analyze looks for the program.
    writeFileSync(
      unit,
      adapted("systemd/customers@.service", { "/usr/local/bin/customers-server": "/bin/true" }),
    );
  });
  afterAll(() => directory.remove());

  test("is valid", async () => {
    expect(await run(["systemd-analyze", "verify", "--man=no", unit])).toEqual({ code: 0, said: "" });
  });

  test("exposes the system to at most 2.0 of 10", async () => {
    const command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit];
    const { code, said } = await run(command);
    expect(code === 0 ? "" : said).toBe("");
  });

  test("allows every system call that the service makes from its start to its end", async () => {
    const trace = `${directory.path}/trace`;
    const service = await ServerProcess.start(place.database, {
      // -D: the service stays the child that is signalled.
      under: ["strace", "-D", "-f", "-qq", "-o", trace],
      services: 1,
    });
    const created = await service.send(place.adminToken, "POST", "/customers", {
      body: { name: "Ada", email: "ada@example.com" },
    });
    expect(created.status).toBe(201);
    expect(await service.end()).toBe(0);
    const called = new Set(
      [...readFileSync(trace, "utf8").matchAll(/^\d+ (?:<\.\.\. )?(\w+)[( ]/gm)].map(([, name]) => name),
    );
    called.delete("resumed");
    const allowed = await systemCalls("@system-service");
    for (const name of [...(await systemCalls("@privileged")), ...(await systemCalls("@resources"))])
      allowed.delete(name);
    const refused = [...called].filter((name) => name !== undefined && !allowed.has(name));
    // The unit answers these with EPERM, which Bun takes: they ask for more than the service needs.
    expect(refused.filter((name) => !TOLERATED.includes(name ?? ""))).toEqual([]);
  });
});

/**
 * Priorities of threads, and a higher limit of file descriptors, which the unit
 * sets itself. SQLite calls fchown only as root, which the unit's user is not.
 */
const TOLERATED = ["sched_setscheduler", "setpriority", "setrlimit", "fchown"];

/** The system calls of a set, with those of the sets in it. */
async function systemCalls(set: string): Promise<Set<string>> {
  const { said } = await run(["systemd-analyze", "syscall-filter", set]);
  const lines = said
    .split("\n")
    .filter((line) => line.startsWith("    "))
    .map((line) => line.trim());
  const calls = new Set<string>();
  for (const line of lines) {
    if (line.startsWith("#")) continue;
    if (line.startsWith("@")) for (const call of await systemCalls(line)) calls.add(call);
    else calls.add(line);
  }
  return calls;
}

test("no request of a client is refused or lost while instances on one port are replaced in turn", async () => {
  // A network of its own, in which the kernel hands connections that a service has not accepted to the other one.
  const prepare = "ip link set lo up && echo 1 > /proc/sys/net/ipv4/tcp_migrate_req";
  const script = new URL("../support/service/replace-in-turn.ts", import.meta.url).pathname;
  const { code, said } = await run([
    ...["unshare", "--net", "sh", "-c", `${prepare} && exec "$@"`, "sh"],
    ...[process.execPath, script],
  ]);
  expect(code === 0 ? "" : said).toBe("");
  expect(Object.keys(JSON.parse(said))).toEqual(["200"]);
});

type Proxy = {
  readonly configure: (ports: { proxy: number; one: number; two: number }, directory: string) => string;
  readonly command: (file: string) => string[];
};

const PROXIES: Readonly<Record<string, Proxy>> = {
  nginx: {
    configure: ({ proxy, one, two }, directory) => {
      const site = adapted("nginx/customers.conf", {
        "listen 443 ssl": `listen 127.0.0.1:${proxy} ssl`,
        "127.0.0.1:8080": `127.0.0.1:${one}`,
        "127.0.0.1:8081": `127.0.0.1:${two}`,
        "/etc/nginx/customers": `${directory}/customers`,
      });
      const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map((name) => `${name}_temp_path ${directory}/${name};`)
        .join(" ");
      return `user root; daemon off; error_log stderr crit; pid ${directory}/pid; events {}
http { access_log off; ${temporary}
${site} }`;
    },
    command: (file) => ["nginx", "-c", file, "-e", "stderr"],
  },
  HAProxy: {
    configure: ({ proxy, one, two }, directory) =>
      adapted("haproxy/haproxy.cfg", {
        "bind :443": `bind 127.0.0.1:${proxy}`,
        "127.0.0.1:8080": `127.0.0.1:${one}`,
        "127.0.0.1:8081": `127.0.0.1:${two}`,
        "/etc/haproxy/customers": `${directory}/customers`,
      }),
    command: (file) => ["haproxy", "-db", "-f", file],
  },
  Caddy: {
    configure: ({ proxy, one, two }, directory) =>
      `{\n\tadmin off\n\tauto_https off\n\tdefault_sni localhost\n}\n${adapted("caddy/Caddyfile", {
        "\ncustomers.example.com {": `\nhttps://127.0.0.1:${proxy} {`,
        "127.0.0.1:8080": `127.0.0.1:${one}`,
        "127.0.0.1:8081": `127.0.0.1:${two}`,
        "/etc/caddy/customers": `${directory}/customers`,
      })}`,
    command: (file) => ["caddy", "run", "--adapter", "caddyfile", "--config", file],
  },
};

describe("the configurations of proxies", () => {
  for (const [name, proxy] of Object.entries(PROXIES)) {
    test(`behind ${name}, with TLS and a prefix, the service conforms`, async () => {
      await place.prepare();
      const port = freePort();
      const url = `https://127.0.0.1:${port}/crm`;
      const env = { PUBLIC_URL: url };
      const services = [await place.start({ env, services: 1 }), await place.start({ env, services: 1 })];
      const [one, two] = services.map((service) => service.port);
      const directory = `${place.path}/proxy`;
      mkdirSync(directory);
      const { cert, key } = selfSignedCertificate();
      for (const [suffix, text] of Object.entries({ crt: cert, key, pem: cert + key })) {
        writeFileSync(`${directory}/customers.${suffix}`, text);
        chmodSync(`${directory}/customers.${suffix}`, 0o600);
      }
      const file = `${directory}/config`;
      writeFileSync(file, proxy.configure({ proxy: port, one: one ?? 0, two: two ?? 0 }, directory));
      await startProxy(proxy.command(file), `${url}/readyz`);

      const token = async (...flags: string[]) =>
        (await place.run(["token", "create", ...flags])).stdout.trim();
      const kit = Bun.spawn(
        [
          process.execPath,
          join(ROOT, "conformance/main.ts"),
          ...[
            "run",
            // Each rule through each proxy; those that try many forms of one thing try all through nginx alone.
            ...(name === "nginx" ? [] : ["--quick"]),
            "--base-url",
            url,
            "--cacert",
            `${directory}/customers.crt`,
            "--out",
            `${directory}/report`,
          ],
          ...["--header-env", "Authorization: Bearer $ADMIN"],
          ...["--limited-header-env", "Authorization: Bearer $LIMITED", "--limited-denied", "email"],
          ...["--other-tenant-header-env", "Authorization: Bearer $OTHER"],
          ...services.flatMap((service) => ["--metrics-url", `${service.url}/metrics`]),
          ...["--metrics-header-env", "Authorization: Bearer $MONITOR"],
        ],
        {
          env: {
            ...process.env,
            ADMIN: place.adminToken,
            LIMITED: await token("--role", "support", "--client", "kit-limited", "--tenant", "default"),
            OTHER: await token("--role", "editor", "--client", "kit-other", "--tenant", "other"),
            MONITOR: await token("--role", "monitor", "--client", "kit-metrics"),
          },
          cwd: directory,
          stdio: ["ignore", "pipe", "pipe"],
        },
      );
      const said = (await kit.stdout.text()) + (await kit.stderr.text());
      expect(said).toContain("conforms: ");
      expect(await kit.exited).toBe(0);
    });
  }
});

/** Starts a proxy and waits until the service answers through it. */
async function startProxy(command: readonly string[], url: string): Promise<void> {
  const program = Bun.spawn([...command], { stdout: "ignore", stderr: "ignore" });
  programs.push(program);
  while (program.exitCode === null) {
    try {
      const { ok } = await fetch(url, { tls: { rejectUnauthorized: false } });
      if (ok) return;
    } catch {}
    await new Promise(setImmediate);
  }
  throw new Error(`${command[0]} ended with ${program.exitCode}`);
}

describe("the dashboard", () => {
  test("Prometheus answers every query of every panel", async () => {
    const service = await TestService.start({ metricsArePublic: true });
    const directory = temporaryDirectory();
    const port = freePort();
    try {
      const { host } = new URL(service.url);
      writeFileSync(
        `${directory.path}/prometheus.yml`,
        adapted("docker/prometheus.yml", {
          "customers:9080": host,
          "scrape_interval: 15s": "scrape_interval: 1s\n  evaluation_interval: 1s",
          "customers.rules.yml": new URL("../../telemetry/prometheus/customers.rules.yml", import.meta.url)
            .pathname,
        }),
      );
      const command = ["prometheus", `--config.file=${directory.path}/prometheus.yml`];
      const storage = [
        `--storage.tsdb.path=${directory.path}/data`,
        `--web.listen-address=127.0.0.1:${port}`,
      ];
      programs.push(Bun.spawn([...command, ...storage], { stdout: "ignore", stderr: "ignore" }));
      const query = async (expression: string) => {
        const search = new URLSearchParams({ query: expression });
        const reply = await fetch(`http://127.0.0.1:${port}/api/v1/query?${search}`).catch(() => null);
        return reply?.ok !== true
          ? null
          : ((await reply.json()) as { status: string; data: { result: unknown[] } });
      };
      while (((await query("customers_build_info"))?.data?.result.length ?? 0) === 0) await Bun.sleep(50);

      const { panels } = JSON.parse(read("grafana/customers.json"));
      const expressions: string[] = panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
        targets.map(({ expr }) => expr.replaceAll("$job", ".*").replaceAll("$__rate_interval", "1m")),
      );
      expect(expressions.length).toBeGreaterThan(10);
      const exported = await service.send("GET", "/metrics", { caller: null });
      for (const expression of expressions) {
        expect([expression, (await query(expression))?.status]).toEqual([expression, "success"]);
        for (const [name] of expression.matchAll(/(?<![:\w])(?:http|customers|process)_\w+/g)) {
          const metric = name.replace(/_bucket$/, "");
          if (!metric.startsWith("customers_database_") || metric.endsWith("_bytes")) {
            expect(exported.text).toContain(metric);
          }
        }
      }
    } finally {
      await service.stop();
      directory.remove();
    }
  });
});

describe("customers-server health", () => {
  test("says that a running service is ready, and fails where none is", async () => {
    const service = await place.start({ services: 1 });
    const ask = (port: number) => place.run(["health", "--port", `${port}`]);
    expect(await ask(service.port)).toEqual({ code: 0, stdout: '{"status":"ready"}\n', stderr: "" });
    await service.end();
    const { code, stderr } = await ask(service.port);
    expect([code, stderr]).toEqual([1, expect.stringContaining("/readyz does not answer")]);
  });
});

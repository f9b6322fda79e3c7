import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { constants } from "node:os";
import { connect } from "node:tls";
import packageJson from "../../package.json";
import { RawConnection, rawRequest } from "./support/http/raw-connection.ts";
import { selfSignedCertificate } from "./support/http/self-signed-certificate.ts";
import { ENGINE } from "./support/postgres/postgres-databases.ts";
import { seriesOf } from "./support/service/metric-series.ts";
import { launch, ServerProcess, Workplace } from "./support/service/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

const write = (name: string, text: string): string => {
  writeFileSync(`${place.path}/${name}`, text);
  return `${place.path}/${name}`;
};

/** The certificate that a new connection is shown. */
function certificateAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

/** Until the kernel has set a handler: before it no program could help itself. */
async function catches(
  child: { readonly pid: number },
  signal: "SIGHUP" | "SIGINT" | "SIGTERM",
): Promise<void> {
  const status = Bun.file(`/proc/${child.pid}/status`);
  const bit = BigInt(constants.signals[signal] - 1);
  for (;;) {
    const mask = /SigCgt:\s+(\w+)/.exec(await status.text())?.[1] ?? "0";
    if (((BigInt(`0x${mask}`) >> bit) & 1n) === 1n) return;
    await Bun.sleep(1);
  }
}

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s while the program is still loaded ends it with 0, and nothing is served",
  async (signal) => {
    const child = ServerProcess.launch(place.database);
    await catches(child, signal);
    child.kill(signal);
    expect([await child.exited, await new Response(child.stdout).text()]).toEqual([0, ""]);
  },
);

/** A database server that takes connections and stays silent: it holds up each client that waits for it. */
function silentDatabase() {
  const connected = Promise.withResolvers<void>();
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { open: () => connected.resolve(), data: () => {} },
  });
  const url = `postgres://user:secret@127.0.0.1:${listener.port}/customers?sslmode=disable`;
  return { env: { DATABASE_URL: url }, connected: connected.promise, stop: () => listener.stop(true) };
}

test("SIGTERM ends a command that is no service as it ends any other program", async () => {
  const silent = silentDatabase();
  const child = launch(["token", "list"], { env: silent.env });
  await silent.connected;
  child.kill("SIGTERM");
  await child.exited;
  expect(child.signalCode).toBe("SIGTERM");
  silent.stop();
});

test("SIGHUP while the program is still loaded does not end it", async () => {
  const child = ServerProcess.launch(place.database);
  await catches(child, "SIGHUP");
  const ends = child.stdout.getReader().read();
  for (let sent = 0; sent < 20; sent += 1) child.kill("SIGHUP");
  const { value } = await ends;
  expect(new TextDecoder().decode(value)).toStartWith('{"url":');
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s while the service starts ends it at once, with nothing served",
  async (signal) => {
    const silent = silentDatabase();
    const child = ServerProcess.launch(place.database, { env: silent.env });
    await silent.connected;
    child.kill(signal);
    expect([await child.exited, await new Response(child.stdout).text()]).toEqual([0, ""]);
    silent.stop();
  },
);

describe("a service that is told to stop", () => {
  test("is not ready from the first moment, still answers, and says so on every connection", async () => {
    const service = await place.start({ services: 1, env: { STOP_GRACE: "60" } });
    const connection = await RawConnection.open(service.port);
    expect((await connection.send(rawRequest("GET", "/readyz", [])))?.status).toBe(200);
    service.signal("SIGTERM");
    await service.stderr.line((line) => line.includes('"stopping"'));
    const ready = await connection.send(rawRequest("GET", "/readyz", []));
    expect([ready?.status, ready?.body, ready?.headers.get("connection")]).toEqual([
      503,
      '{"status":"stopping"}',
      "close",
    ]);
    const read = await service.send(place.adminToken, "GET", "/customers?limit=1");
    expect([read.status, read.headers.get("connection")]).toEqual([200, "close"]);
    await service.end("SIGKILL");
  });
});

test("a second signal to stop ends the grace at once", async () => {
  const service = await place.start({ services: 1, env: { STOP_GRACE: "3600" } });
  service.signal("SIGTERM");
  await service.stderr.line((line) => line.includes('"stopping"'));
  expect(await service.end("SIGINT")).toBe(0);
});

describe("SIGHUP", () => {
  test("reads the TLS files again: new connections are shown the new certificate, old ones are finished", async () => {
    const [first, second] = [selfSignedCertificate(), selfSignedCertificate()];
    const env = { TLS_CERT_FILE: write("cert.pem", first.cert), TLS_KEY_FILE: write("key.pem", first.key) };
    const service = await place.start({ services: 1, env });
    const before = await certificateAt(service.port);

    write("cert.pem", second.cert);
    service.signal("SIGHUP");
    await service.stderr.line((line) => line.includes("TLS files refused; the certificate in force stays"));
    expect(service.log.at(-1)).toMatchObject({
      faults: ["TLS_KEY_FILE: it is not the key of TLS_CERT_FILE"],
    });
    expect(await certificateAt(service.port)).toBe(before);

    write("key.pem", second.key);
    service.signal("SIGHUP");
    await service.stderr.line((line) => line.includes("TLS files reloaded"));
    const trusting = { tls: { ca: second.cert } };
    expect((await fetch(`${service.url}/healthz`, trusting)).status).toBe(200);
    expect(await certificateAt(service.port)).not.toBe(before);
    expect(await service.end()).toBe(0);
  });

  test("does not open the port again while the service finishes its last requests", async () => {
    const [first, second] = [selfSignedCertificate(), selfSignedCertificate()];
    const tls = { TLS_CERT_FILE: write("cert.pem", first.cert), TLS_KEY_FILE: write("key.pem", first.key) };
    const service = await place.start({ services: 1, env: { ...tls, STOP_GRACE: "0", STOP_DRAIN: "3600" } });
    const socket = connect({ port: service.port, host: "127.0.0.1", rejectUnauthorized: false });
    // The service answers this line as soon as it has read the headers; then it waits for the body.
    const hasBegun = new Promise<void>((begun) => socket.once("data", () => begun()));
    socket.write(
      `POST /customers HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${place.adminToken}\r\nContent-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n`,
    );
    await hasBegun;
    service.signal("SIGTERM");
    const isOpen = () =>
      certificateAt(service.port).then(
        () => true,
        () => false,
      );
    while (await isOpen());
    write("cert.pem", second.cert);
    write("key.pem", second.key);
    service.signal("SIGHUP");
    await service.stderr.line((line) => line.includes("TLS files reloaded"));
    expect(await isOpen()).toBe(false);
    socket.destroy();
    expect(await service.exited).toBe(0);
  });

  test("with a new certificate and policy keeps what callers used up of their limits", async () => {
    const { cert, key } = selfSignedCertificate();
    const role = '[roles.admin]\nread = ["id"]\noperations = ["list"]\n';
    const limits = "[limits.client]\nrequests = { per_second = 0.001, burst = 1 }\n";
    const service = await place.start({
      services: 1,
      env: {
        TLS_CERT_FILE: write("cert.pem", cert),
        TLS_KEY_FILE: write("key.pem", key),
        POLICY_FILE: write("policy.toml", role + limits),
      },
    });
    const list = async (): Promise<number> => {
      const headers = { authorization: `Bearer ${place.adminToken}` };
      return (await fetch(`${service.url}/customers?fields=id`, { headers, tls: { ca: cert } })).status;
    };
    const reload = async (): Promise<void> => {
      service.signal("SIGHUP");
      await service.stderr.line((line) => line.includes("TLS files reloaded"));
    };
    expect([await list(), await list()]).toEqual([200, 429]);
    await reload();
    expect(await list()).toBe(429);
    expect(await service.end()).toBe(0);
  });

  test("without any file to read says that the built-in policy stays", async () => {
    const service = await place.start({ services: 1 });
    service.signal("SIGHUP");
    expect(
      await service.stderr.line((line) => line.includes("the built-in policy stays in force")),
    ).not.toBeNull();
  });
});

describe("ADMIN_PORT", () => {
  test("is a listener of its own for metrics and health; the first one serves customers and health, no metrics", async () => {
    const service = await place.start({ services: 1, env: { ADMIN_PORT: "0", METRICS_ACCESS: "public" } });
    const { adminUrl = "" } = JSON.parse(service.stdout.text) as { adminUrl?: string };
    const statuses = async (url: string) =>
      await Promise.all(
        ["/metrics", "/healthz", "/readyz", "/customers", "/problems/invalid-body"].map(
          async (path) => (await fetch(`${url}${path}`)).status,
        ),
      );
    expect(await statuses(adminUrl)).toEqual([200, 200, 200, 404, 404]);
    expect(await statuses(service.url)).toEqual([404, 200, 200, 401, 200]);
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
    expect(metrics).toContain('http_requests_total{method="GET",route="/customers",status="401"} 1');
    expect(await service.end()).toBe(0);
  });

  test("reports commits, sizes, the event loop, the build and the process", async () => {
    const service = await place.start({ services: 1, env: { ADMIN_PORT: "0", METRICS_ACCESS: "public" } });
    const { adminUrl = "" } = JSON.parse(service.stdout.text) as { adminUrl?: string };
    const metrics = async () => seriesOf(await (await fetch(`${adminUrl}/metrics`)).text());
    const before = await metrics();
    const body = { name: "Ada", email: "ada@example.com" };
    for (let n = 0; n < 5; n += 1) await service.send(place.adminToken, "POST", "/customers", { body });
    const after = await metrics();
    const value = (name: string) => after.get(name) ?? Number.NaN;
    const added = (name: string) => value(name) - (before.get(name) ?? 0);
    // Noting the token's use may commit too.
    expect(added("customers_commit_writes_sum")).toBeGreaterThanOrEqual(5);
    const where = ["inline", "thread", "server"].map(
      (name) => `customers_commit_duration_seconds_count{where="${name}"}`,
    );
    const commits = where.reduce((sum, name) => sum + (after.get(name) ?? 0), 0);
    expect(commits).toBe(value("customers_commit_writes_count"));
    expect(value("customers_writes_waiting")).toBe(0);
    expect(value("customers_database_bytes")).toBeGreaterThan(0);
    if (ENGINE === "sqlite") expect(value("customers_database_log_bytes")).toBeGreaterThan(0);
    else {
      expect(value("customers_database_connections_total")).toBe(7);
      expect(value('customers_database_connections_busy{purpose="write"}')).toBe(0);
      expect(value('customers_database_statements_waiting{purpose="read"}')).toBe(0);
      expect(value("customers_read_lookups_count")).toBeGreaterThan(0);
      expect(value('customers_database_retries_total{reason="unknown"}')).toBe(0);
    }
    expect(value(`customers_build_info{version="${packageJson.version}",bun="${Bun.version}"}`)).toBe(1);
    const startedAtMs = value("process_start_time_seconds") * 1000;
    expect(startedAtMs).toBeLessThanOrEqual(Date.now());
    expect(startedAtMs).toBeGreaterThan(performance.timeOrigin);
    for (const name of ["process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"]) {
      expect([name, value(name) > 0]).toEqual([name, true]);
    }
    expect(value("process_max_fds")).toBeGreaterThan(value("process_open_fds"));
    expect(after.has('customers_event_loop_lag_seconds_bucket{le="0.5"}')).toBe(true);
  });

  test("that is taken refuses the start by its own name", async () => {
    const service = await place.start({ services: 1 });
    const outcome = await place.run([], { PORT: "0", ADMIN_PORT: String(service.port) });
    expect(outcome).toMatchObject({
      code: 1,
      stderr: `Port ${service.port} on 127.0.0.1 is already in use. Choose another with ADMIN_PORT=… (0 picks a free one).\n`,
    });
  });
});

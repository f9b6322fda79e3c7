import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { RawConnection, rawRequest } from "./support/http/raw-connection.ts";
import { parseRawReply, type RawReply } from "./support/http/raw-exchange.ts";
import { selfSignedCertificate } from "./support/http/self-signed-certificate.ts";
import { ENGINE } from "./support/postgres/postgres-databases.ts";
import { type ServerProcess, Workplace } from "./support/service/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  place.makeDirectory();
});
afterEach(() => place.clear());

/** A create whose body is still on its way: the headers are sent, and the service has begun to read. */
class SlowCreate {
  readonly #socket: Socket;
  readonly #body = JSON.stringify({ name: "Slow", email: "slow@example.com" });
  /** All that came back, once the service has closed the connection. */
  readonly answer: Promise<string>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    let text = "";
    this.answer = new Promise((resolve) => {
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1");
      });
      socket.on("error", () => resolve(text));
      socket.on("close", () => resolve(text));
    });
  }

  static async begin(service: ServerProcess, token: string): Promise<SlowCreate> {
    const socket = connect(service.port, "127.0.0.1");
    const create = new SlowCreate(socket);
    // The service answers this line as soon as it has read the headers.
    const hasBegun = new Promise<void>((begun) => socket.once("data", () => begun()));
    socket.write(
      [
        "POST /customers HTTP/1.1",
        "Host: 127.0.0.1",
        `Authorization: Bearer ${token}`,
        "Content-Type: application/json",
        `Content-Length: ${create.#body.length}`,
        "Expect: 100-continue",
        "\r\n",
      ].join("\r\n"),
    );
    await hasBegun;
    socket.write(create.#body.slice(0, 10));
    return create;
  }

  finish(): void {
    this.#socket.write(this.#body.slice(10));
  }
}

async function refusesConnections(service: ServerProcess): Promise<void> {
  for (;;) {
    const isOpen = await fetch(`${service.url}/healthz`, { keepalive: false }).then(
      () => true,
      () => false,
    );
    if (!isOpen) return;
  }
}

describe("told to stop", () => {
  test.each([{ signal: "SIGTERM" }, { signal: "SIGINT" }] as const)(
    "by $signal it takes no more, finishes what is in flight, commits, and ends with 0; further signals change nothing",
    async ({ signal }) => {
      const service = await place.start();
      const token = place.adminToken;
      const create = await SlowCreate.begin(service, token);
      service.signal(signal);
      await refusesConnections(service);
      for (const further of ["SIGTERM", "SIGINT", "SIGHUP"] as const) service.signal(further);
      create.finish();
      const reply = parseRawReply((await create.answer).replace(/^HTTP\/1\.1 100 [^\r]*\r\n\r\n/, ""));
      expect(reply?.status).toBe(201);
      const code = await service.exited;
      // Where it is another code, standard error says why.
      expect(code === 0 ? "" : service.stderr.text).toBe("");
      expect(code).toBe(0);
      // Closed as it should be: everything is in the one file.
      const files = ENGINE === "postgres" ? ["admin.token"] : ["admin.token", "customers.db"];
      expect(readdirSync(`${place.path}/data`).sort()).toEqual(files);
      const later = await place.start();
      const kept = await later.send(token, "GET", reply?.headers.get("location") ?? "");
      expect(kept.json).toMatchObject({ name: "Slow", email: "slow@example.com" });
      expect(kept.etag).toBe(reply?.headers.get("etag") ?? "none");
    },
  );

  test("clients that keep connections busy are told that an answer is the last, and none loses a request", async () => {
    const service = await place.start({ env: { STOP_GRACE: "0.25" } });
    const read = rawRequest("GET", "/customers?limit=1", [`Authorization: Bearer ${place.adminToken}`]);
    let answers = 0;
    const busy = async (): Promise<RawReply | null> => {
      const connection = await RawConnection.open(service.port);
      for (;;) {
        const reply = await connection.send(read);
        answers += 1;
        if (answers === 200) service.signal("SIGTERM");
        if (reply?.headers.get("connection") === "close") connection.close();
        if (connection.isClosed) return reply;
      }
    };
    const last = await Promise.all(Array.from({ length: 8 }, busy));
    expect(last.map((reply) => [reply?.status, reply?.headers.get("connection")])).toEqual(
      Array.from({ length: 8 }, () => [200, "close"]),
    );
    expect(await service.exited).toBe(0);
  });

  test("it ends while clients keep idle connections open", async () => {
    const service = await place.start();
    const idle = connect(service.port, "127.0.0.1");
    const isClosed = new Promise((closed) => idle.on("close", closed));
    idle.on("error", () => {});
    const isAnswered = new Promise<void>((answered) => idle.once("data", () => answered()));
    idle.write("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    await isAnswered;
    expect(await service.end()).toBe(0);
    await isClosed;
  });

  test("it cuts off what is still in flight after STOP_DRAIN, ends with 0, and nothing half-made is kept", async () => {
    const service = await place.start({ env: { STOP_DRAIN: "0.2" } });
    const token = place.adminToken;
    const create = await SlowCreate.begin(service, token);
    expect(await service.end()).toBe(0);
    expect(await create.answer).not.toContain("201");
    expect(service.log.map((line) => line["msg"])).toContain(
      "requests that were still in flight after STOP_DRAIN were cut off",
    );
    const later = await place.start();
    expect((await later.send(token, "GET", "/customers")).json.items).toHaveLength(3);
  });

  test("it ends though nobody reads its log, and though its log can't be written", async () => {
    for (const redirection of ["2>/dev/full", `2> >(read -r line; exec sleep 20)`]) {
      const shell = Bun.spawn(
        ["bash", "-c", `exec "$0" "$1" serve --print-url ${redirection}`, process.execPath, mainFile],
        {
          // Where the first start on PostgreSQL writes its token.
          cwd: place.path,
          env: { PATH: process.env["PATH"] ?? "", PORT: "0", DATABASE_URL: place.databaseUrl },
          stdin: "ignore",
          stdout: "pipe",
          stderr: "ignore",
        },
      );
      const { value = new Uint8Array() } = await shell.stdout.getReader().read();
      const { url } = JSON.parse(new TextDecoder().decode(value)) as { url: string };
      // More than a pipe holds: 600 lines of some 170 bytes.
      for (let batch = 0; batch < 20; batch += 1) {
        const replies = await Promise.all(Array.from({ length: 30 }, () => fetch(`${url}/healthz`)));
        expect(replies.map((reply) => reply.status)).toEqual(replies.map(() => 200));
      }
      shell.kill("SIGTERM");
      expect(await shell.exited).toBe(0);
    }
  });
});

test("a variable that was to be a setting is named in the log", async () => {
  const service = await place.start({ env: { POLICY_FIEL: "/etc/customers/policy.toml" } });
  expect(await service.end()).toBe(0);
  expect(service.log).toContainEqual(
    expect.objectContaining({
      level: "warn",
      msg: "POLICY_FIEL is no setting, and is ignored; did you mean POLICY_FILE?",
    }),
  );
});

const mainFile = new URL("../main.ts", import.meta.url).pathname;

describe("SIGHUP", () => {
  const READ_ONLY = '[roles.admin]\nread = ["id", "name", "email", "status"]\noperations = ["get", "list"]\n';

  test("takes a changed policy at once, and keeps the one in force when the file is bad or gone", async () => {
    const policyFile = `${place.path}/policy.toml`;
    const withWrites = READ_ONLY.replace('"list"', '"list", "create"');
    writeFileSync(policyFile, withWrites);
    const service = await place.start({ env: { POLICY_FILE: policyFile } });
    const create = async (): Promise<number> => {
      const body = { name: "Ada", email: "ada@example.com" };
      return (await service.send(place.adminToken, "POST", "/customers", { body })).status;
    };
    /**
     * Has the policy read again, and waits until every process has said this.
     *
     * @returns the last line that says it
     */
    const reload = async (message: string): Promise<Record<string, unknown>> => {
      const said = () => service.log.filter((line) => line["msg"] === message);
      const enough = said().length + service.services;
      service.signal("SIGHUP");
      await service.stderr.line(() => said().length >= enough);
      return said().at(-1) ?? {};
    };
    expect(await create()).toBe(201);

    writeFileSync(policyFile, READ_ONLY);
    expect(await create()).toBe(201);
    await reload("policy file reloaded");
    expect(await create()).toBe(403);

    const refused = "policy file refused; the policy in force stays";
    writeFileSync(policyFile, `${withWrites}\n[roles.visitor]\nreed = []\noperations = ["gte"]`);
    const { faults, level } = await reload(refused);
    expect(level).toBe("error");
    expect(JSON.stringify(faults)).toContain("reed");
    expect(JSON.stringify(faults)).toContain("gte");
    expect(await create()).toBe(403);

    writeFileSync(policyFile, "");
    await reload(refused);
    expect(await create()).toBe(403);

    writeFileSync(policyFile, withWrites);
    await reload("policy file reloaded");
    expect(await create()).toBe(201);
  });
});

describe("HTTPS", () => {
  const write = (name: string, text: string): string => {
    writeFileSync(`${place.path}/${name}`, text);
    return `${place.path}/${name}`;
  };

  test("is spoken where certificate and key are given, and only it", async () => {
    const { cert, key } = selfSignedCertificate();
    const env = { TLS_CERT_FILE: write("cert.pem", cert), TLS_KEY_FILE: write("key.pem", key) };
    const service = await place.start({ env });
    expect(service.url).toStartWith("https://127.0.0.1:");
    const trusting = { tls: { ca: cert } };
    expect((await fetch(`${service.url}/healthz`, trusting)).status).toBe(200);
    const plain = fetch(service.url.replace("https:", "http:")).then((reply) => reply.status);
    expect(await plain.catch(() => "refused")).toBe("refused");
  });

  test("the metrics say when the certificate in force ends, that of the chain which ends first", async () => {
    const [first, second] = [selfSignedCertificate(), selfSignedCertificate()];
    const endOf = (pem: string) => Date.parse(new X509Certificate(pem).validTo) / 1000;
    const soon = selfSignedCertificate({ validForDays: 0.5 });
    const env = {
      METRICS_ACCESS: "public",
      TLS_CERT_FILE: write("cert.pem", first.cert),
      TLS_KEY_FILE: write("key.pem", first.key),
    };
    const service = await place.start({ env, services: 1 });
    const expiry = async (ca: string) => {
      const reply = await fetch(`${service.url}/metrics`, { tls: { ca }, keepalive: false });
      return Number(/^customers_tls_certificate_expiry_seconds (.*)$/m.exec(await reply.text())?.[1]);
    };
    expect(await expiry(first.cert)).toBe(endOf(first.cert));
    write("cert.pem", `${second.cert}${soon.cert}`);
    write("key.pem", second.key);
    service.signal("SIGHUP");
    await service.stderr.line((line) => line.includes("TLS files reloaded"));
    expect(await expiry(second.cert)).toBe(endOf(soon.cert));
    expect(endOf(soon.cert)).toBeLessThan(endOf(second.cert));
  });

  test("is refused at the start with the fault in the files, and nothing is made", async () => {
    const cert = write("cert.pem", selfSignedCertificate().cert);
    const key = write("key.pem", selfSignedCertificate().key);
    const outcome = await place.run([], { PORT: "0", TLS_CERT_FILE: cert, TLS_KEY_FILE: key });
    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toContain(`TLS_KEY_FILE is "${key}": it is not the key of TLS_CERT_FILE.`);
    expect(outcome.stderr).not.toContain("PRIVATE KEY");
    expect(existsSync(place.database)).toBe(false);
  });
});

test("CORS_ORIGINS and PUBLIC_URL hold in the real process", async () => {
  const service = await place.start({
    env: { CORS_ORIGINS: "https://app.example", PUBLIC_URL: "https://api.example/crm" },
  });
  const { adminToken } = place;
  const preflight = await service.send(null, "OPTIONS", "/customers", {
    headers: { origin: "https://app.example", "access-control-request-method": "POST" },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-origin")).toBe("https://app.example");
  const created = await service.send(adminToken, "POST", "/customers", {
    headers: { origin: "https://app.example" },
    body: { name: "Ada", email: "ada@example.com" },
  });
  expect(created.headers.get("location")).toBe(`https://api.example/crm/customers/${created.json.id}`);
  expect(created.headers.get("access-control-expose-headers")).toContain("ETag");
  const elsewhere = await service.send(adminToken, "GET", "/customers", {
    headers: { origin: "https://evil.example" },
  });
  expect(elsewhere.headers.get("access-control-allow-origin")).toBeNull();
});

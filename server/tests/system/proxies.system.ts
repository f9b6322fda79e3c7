import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { freePort } from "../support/free-port.ts";
import { selfSignedCertificate } from "../support/http/self-signed-certificate.ts";
import { type ServerProcess, Workplace } from "../support/service/server-process.ts";
import { type Reply, replyOf } from "../support/service/test-service.ts";

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

/** Starts a proxy and waits until it answers. */
async function startProxy(command: readonly string[], url: string): Promise<void> {
  const program = Bun.spawn([...command], { stdout: "ignore", stderr: "inherit" });
  programs.push(program);
  while (program.exitCode === null) {
    try {
      await fetch(url);
      return;
    } catch {
      await new Promise(setImmediate);
    }
  }
  throw new Error(`${command[0]} ended with ${program.exitCode}`);
}

/**
 * nginx as its documentation begins: `proxy_pass` to upstreams, and nothing else but the option of a test.
 */
async function startNginx(services: readonly ServerProcess[], port: number, option: string): Promise<string> {
  const file = `${place.path}/nginx.conf`;
  writeFileSync(
    file,
    `${process.getuid?.() === 0 ? "user root; " : ""}daemon off; error_log stderr crit; pid ${place.path}/nginx.pid;
events {}
http {
  access_log off;
  client_body_temp_path ${place.path}/body; proxy_temp_path ${place.path}/proxy; fastcgi_temp_path ${place.path}/f;
  uwsgi_temp_path ${place.path}/u; scgi_temp_path ${place.path}/s;
  upstream customers {
${services.map((service) => `    server 127.0.0.1:${service.port};`).join("\n")}
  }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://customers; ${option} }
  }
}
`,
  );
  const url = `http://127.0.0.1:${port}`;
  await startProxy(["nginx", "-c", file, "-e", "stderr"], url);
  return url;
}

test.each(["", "proxy_request_buffering off;", 'proxy_http_version 1.1; proxy_set_header Connection "";'])(
  "900 kB POSTs without a token, through nginx, take no upstream out of service for others (%s)",
  async (option) => {
    const services = [await place.start(), await place.start()];
    const token = place.adminToken;
    const url = await startNginx(services, freePort(), option);
    const body = Buffer.alloc(900_000, "a");
    const innocent = (): Promise<Reply> =>
      fetch(`${url}/customers?limit=1`, { headers: { authorization: `Bearer ${token}` } }).then(replyOf);
    const statuses = { refused: new Set<number>(), read: new Set<number>() };
    for (let round = 0; round < 10; round += 1) {
      const refused = Array.from({ length: 5 }, () =>
        fetch(`${url}/customers`, { method: "POST", body }).then(replyOf),
      );
      const reads = Array.from({ length: 10 }, innocent);
      for (const { status } of await Promise.all(refused)) statuses.refused.add(status);
      for (const { status } of await Promise.all(reads)) statuses.read.add(status);
    }
    expect(statuses).toEqual({ refused: new Set([401]), read: new Set([200]) });
  },
  120_000,
);

test("through nginx the log has the address of the client, and not the one that it claims", async () => {
  const service = await place.start({ services: 1, env: { TRUSTED_PROXIES: "127.0.0.1" } });
  const option =
    'proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header Forwarded "";';
  const url = await startNginx([service], freePort(), option);
  const claims = ["-H", "X-Forwarded-For: 203.0.113.7", "-H", "Forwarded: for=203.0.113.7"];
  const curl = ["curl", "--silent", "--output", "/dev/null", "--interface", "127.0.0.2", ...claims];
  expect(await Bun.spawn([...curl, "-H", "X-Request-Id: through", `${url}/problems`]).exited).toBe(0);
  expect(await Bun.spawn([...curl, "-H", "X-Request-Id: past", `${service.url}/problems`]).exited).toBe(0);
  await service.end();
  const addressOf = (id: string) => service.log.find(({ requestId }) => requestId === id)?.["address"];
  expect([addressOf("through"), addressOf("past")]).toEqual(["127.0.0.2", "127.0.0.2"]);
});

test.each([
  ["http", 64],
  ["http", 1_024],
  ["http", 16_384],
  ["https", 16_384],
])("a refusal reaches Python's urllib over %s after a body of %i KiB", async (scheme, kib) => {
  const { cert, key } = selfSignedCertificate();
  writeFileSync(`${place.path}/cert.pem`, cert);
  writeFileSync(`${place.path}/key.pem`, key);
  const tls = { TLS_CERT_FILE: `${place.path}/cert.pem`, TLS_KEY_FILE: `${place.path}/key.pem` };
  const { url } = await place.start({ env: scheme === "https" ? tls : {} });
  const script = `
import ssl, urllib.request, urllib.error
request = urllib.request.Request("${url}/customers", data=b"a" * ${kib * 1024}, method="POST")
for _ in range(10):
    try:
        urllib.request.urlopen(request, context=ssl._create_unverified_context())
    except urllib.error.HTTPError as error:
        print(error.code)
`;
  const python = Bun.spawn(["python3", "-c", script], { stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([
    new Response(python.stdout).text(),
    new Response(python.stderr).text(),
    python.exited,
  ]);
  expect({ out, err }).toEqual({ out: "401\n".repeat(10), err: "" });
});

test.each(["option httpchk", "option httpchk GET /readyz"])(
  "HAProxy with `%s` finds the service up",
  async (check) => {
    const { port } = await place.start();
    const [front, stats] = [freePort(), freePort()];
    const file = `${place.path}/haproxy.cfg`;
    writeFileSync(
      file,
      `defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
  timeout check 10s
listen customers
  bind 127.0.0.1:${front}
  ${check}
  server one 127.0.0.1:${port} check inter 100ms
listen stats
  bind 127.0.0.1:${stats}
  stats enable
  stats uri /
`,
    );
    await startProxy(["haproxy", "-f", file], `http://127.0.0.1:${stats}/`);
    let outcome = "INI";
    // "INI" until the first check, "* …" while one is under way.
    while (outcome === "INI" || outcome.startsWith("*")) {
      const [names = "", ...rows] = (await (await fetch(`http://127.0.0.1:${stats}/;csv`)).text()).split(
        "\n",
      );
      const one = rows.find((row) => row.startsWith("customers,one,"))?.split(",");
      outcome = one?.[names.split(",").indexOf("check_status")] ?? "no such server";
    }
    expect(outcome).toBe("L7OK");
    expect((await fetch(`http://127.0.0.1:${front}/healthz`)).status).toBe(200);
  },
  60_000,
);

/** Starts a real proxy on a free loopback port, in a directory of its own, in front of a service. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Proxy = { url: string; stop: () => Promise<void> };

/** What is written before the start, and the command; paths are within `dir`. */
export type Recipe = (at: { port: number; backend: number; dir: string }) => {
  files: Record<string, string>;
  command: string[];
};

const ATTEMPTS = 3;
const START_MS = 20_000;

/**
 * Below the ports that Linux gives for 0 and to clients (from 32768),
 * so that none of those is this one; the server's tests draw theirs from below these.
 */
const [FIRST_PORT, PORTS] = [28_000, 4_000];

async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    if (!(await accepts(port))) return port;
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** The proxies cannot be told to take port 0, so one is asked for and given; a proxy that loses it tries another. */
export async function startProxy(recipe: Recipe, backend: number): Promise<Proxy> {
  let said = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const dir = mkdtempSync(join(tmpdir(), "conformance-proxy-"));
    const port = await freePort();
    const { files, command } = recipe({ port, backend, dir });
    for (const sub of ["tmp", "logs", "work"]) mkdirSync(join(dir, sub));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
    const child = Bun.spawn(command, {
      cwd: dir,
      stdio: ["ignore", Bun.file(join(dir, "out")), Bun.file(join(dir, "err"))],
    });
    const stop = async () => {
      child.kill("SIGTERM");
      await child.exited;
      rmSync(dir, { recursive: true, force: true });
    };
    const deadline = performance.now() + START_MS;
    while (child.exitCode === null && performance.now() < deadline) {
      if (await accepts(port)) return { url: `http://127.0.0.1:${port}`, stop };
      await Bun.sleep(20); // between two looks at the port; nothing depends on its length
    }
    said = `${await Bun.file(join(dir, "err")).text()}${await Bun.file(join(dir, "out")).text()}`;
    await stop();
  }
  throw new Error(`the proxy did not start: ${said.slice(-2000)}`);
}

export const nginx =
  (location: string): Recipe =>
  ({ port, backend, dir }) => ({
    files: {
      "nginx.conf": `daemon off; user root; worker_processes 1; pid ${dir}/pid; error_log ${dir}/logs/error.log;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path ${dir}/tmp/body; proxy_temp_path ${dir}/tmp/proxy; fastcgi_temp_path ${dir}/tmp/fcgi;
  uwsgi_temp_path ${dir}/tmp/uwsgi; scgi_temp_path ${dir}/tmp/scgi;
  large_client_header_buffers 8 64k;
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://127.0.0.1:${backend}; proxy_http_version 1.1; ${location} }
  }
}
`,
    },
    command: ["/usr/sbin/nginx", "-e", `${dir}/logs/error.log`, "-p", dir, "-c", `${dir}/nginx.conf`],
  });

export const haproxy =
  (defaults: string): Recipe =>
  ({ port, backend, dir }) => ({
    files: {
      "haproxy.cfg": `global
  maxconn 512
  tune.bufsize 131072
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
${defaults}
frontend in
  bind 127.0.0.1:${port}
  default_backend customers
backend customers
  server one 127.0.0.1:${backend}
`,
    },
    command: ["/usr/sbin/haproxy", "-db", "-f", `${dir}/haproxy.cfg`],
  });

export const varnish =
  (backendResponse: string): Recipe =>
  ({ port, backend, dir }) => ({
    files: {
      "default.vcl": `vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "${backend}"; }
sub vcl_backend_response { ${backendResponse} }
`,
    },
    command: [
      ...["/usr/sbin/varnishd", "-F", "-j", "none", "-n", `${dir}/work`, "-a", `127.0.0.1:${port}`],
      ...[
        "-f",
        `${dir}/default.vcl`,
        "-s",
        "malloc,16m",
        "-p",
        "http_req_hdr_len=64k",
        "-p",
        "http_req_size=128k",
        "-p",
        "workspace_client=512k",
      ],
    ],
  });

export const apache =
  (server: string): Recipe =>
  ({ port, backend, dir }) => ({
    files: {
      "httpd.conf": `ServerRoot ${dir}
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
PidFile ${dir}/pid
ErrorLog ${dir}/logs/error.log
Mutex file:${dir}/tmp
User www-data
Group www-data
LimitRequestFieldSize 65536
LimitRequestLine 65536
${["mpm_event", "authz_core", "proxy", "proxy_http", "filter", "deflate", "setenvif", "env"].map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join("\n")}
ProxyPass / http://127.0.0.1:${backend}/
${server}
`,
    },
    command: ["/usr/sbin/apache2", "-X", "-f", `${dir}/httpd.conf`],
  });

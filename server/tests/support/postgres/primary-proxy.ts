import { writeFileSync } from "node:fs";
import { freePort } from "../free-port.ts";
import type { PostgresCluster } from "./postgres-cluster.ts";

/**
 * HAProxy as docs/postgres.md sets it up: it leads to
 * whichever server says of itself that it is the primary.
 */
export class PrimaryProxy {
  readonly port: number;
  readonly #haproxy: ReturnType<typeof Bun.spawn>;
  readonly #checks: readonly ReturnType<typeof Bun.serve>[];

  private constructor(
    port: number,
    haproxy: ReturnType<typeof Bun.spawn>,
    checks: readonly ReturnType<typeof Bun.serve>[],
  ) {
    this.port = port;
    this.#haproxy = haproxy;
    this.#checks = checks;
  }

  static async start(directory: string, clusters: readonly PostgresCluster[]): Promise<PrimaryProxy> {
    const checks = clusters.map((cluster) =>
      Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => answerOf(cluster) }),
    );
    const port = freePort();
    const servers = clusters.map(
      (cluster, index) =>
        `  server s${index} 127.0.0.1:${cluster.port} check addr 127.0.0.1 port ${checks[index]?.port}`,
    );
    const file = `${directory}/haproxy.cfg`;
    writeFileSync(
      file,
      `defaults
  mode tcp
  timeout connect 1s
  timeout client 1h
  timeout server 1h
  option clitcpka
  option srvtcpka
listen postgres
  bind 127.0.0.1:${port}
  option httpchk GET /
  default-server inter 300ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join("\n")}
`,
    );
    const haproxy = Bun.spawn(["haproxy", "-f", file], { stdout: "ignore", stderr: "ignore" });
    const proxy = new PrimaryProxy(port, haproxy, checks);
    const url = proxy.through(clusters[0]?.url("postgres") ?? "");
    // HAProxy takes every server for usable until its checks have failed, and leads to each in turn: only the
    // primary is left when as many connections in a row reached it as there are servers.
    for (let inRow = 0; inRow <= clusters.length; ) {
      if (haproxy.exitCode !== null) throw new Error(`HAProxy ended with ${haproxy.exitCode}`);
      inRow = (await isPrimary(url)) ? inRow + 1 : 0;
      if (inRow === 0) await Bun.sleep(50);
    }
    return proxy;
  }

  /** The URL of a database, through the proxy. */
  through(databaseUrl: string): string {
    const url = new URL(databaseUrl);
    url.port = String(this.port);
    return url.href;
  }

  async stop(): Promise<void> {
    this.#haproxy.kill("SIGTERM");
    await this.#haproxy.exited;
    for (const check of this.#checks) await check.stop(true);
  }
}

/** 200 of a primary, 503 of a standby and of what does not answer. */
async function answerOf(cluster: PostgresCluster): Promise<Response> {
  return new Response(null, { status: (await isPrimary(cluster.url("postgres"))) ? 200 : 503 });
}

async function isPrimary(url: string): Promise<boolean> {
  const sql = new Bun.SQL(url, { max: 1, connectionTimeout: 1 });
  try {
    const [row] = await sql.unsafe("SELECT pg_is_in_recovery() AS is_standby");
    return row.is_standby === false;
  } catch {
    return false;
  } finally {
    await sql.close({ timeout: 0 });
  }
}

/**
 * What one client's flood does to another client of another tenant: how long its reads and writes take while
 * 64 connections send the same dear request again and again, by what they took before.
 *
 *     bun run bench:flood [--limits] [--seconds 4]
 *
 * Beside the time it shows how much processor time the service's main thread spent while the neighbour's request
 * waited. Other load on the machine hardly moves that, so it compares two versions of the service on a busy one.
 *
 * `--limits` gives the flooding client limits of the policy. Everything runs on loopback; the service, the
 * flood and the neighbour are a process each.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import { SqliteStorage } from "../storage/sqlite/sqlite-storage.ts";
import { surroundings } from "./report.ts";
import { seedDatabase } from "./seeded-database.ts";
import { startServer } from "./targets.ts";

const CONNECTIONS = 64;
const CUSTOMERS = 10_000;
/** How often the neighbour reads and writes. A closed loop would measure itself as a flood. */
const PACE_MS = 5;
const PATIENCE_MS = 10_000;

type Flood = { readonly url: string; readonly head: string; readonly body: string; readonly seconds: number };
type Percentiles = { readonly p50: number; readonly p99: number };

const { values: options } = parseArgs({
  options: {
    limits: { type: "boolean", default: false },
    seconds: { type: "string", default: "4" },
    flood: { type: "string" },
  },
});
if (options.flood === undefined) await measureAll(Number(options.seconds), options.limits);
else await flood(JSON.parse(options.flood) as Flood);

async function measureAll(seconds: number, isLimited: boolean): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "customers-flood-"));
  const database = join(directory, "customers.db");
  seedDatabase(database, CUSTOMERS);
  const storage = SqliteStorage.open(database);
  const tokenOf = async (client: string, tenant: string): Promise<string> =>
    (await storage.tokens.create({ client, role: "admin", tenant }, Date.now(), null)).token;
  const [flooding, neighbour] = [await tokenOf("flood", "default"), await tokenOf("neighbour", "other")];
  await storage.close();
  const limits =
    "[limits.clients.flood]\nrequests = { per_second = 100, burst = 200 }\nwrites = { per_second = 50, burst = 100 }\n";
  const policy = join(directory, "policy.toml");
  writeFileSync(policy, isLimited ? `${BUILT_IN_POLICY}\n${limits}` : BUILT_IN_POLICY);
  const service = await startServer("ours", [process.execPath, "../main.ts", "serve", "--print-url"], {
    cwd: import.meta.dir,
    idsFile: "",
    environment: {
      PORT: "0",
      DATABASE_URL: `sqlite:${database}`,
      NODE_ENV: "production",
      POLICY_FILE: policy,
    },
  });
  const { url } = service;
  const [pid = 0] = service.pids();
  const head = (line: string, token: string, ...more: string[]): string =>
    [`${line} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${token}`, ...more].join("\r\n");
  const put = "PUT /customers/01890000-0000-7000-8000-000000000000";
  const json = ["Content-Type: application/json", 'If-Match: "AAAAAAAAAAAAAAAA"'];
  const many = `{${Array.from({ length: 6_000 }, (_, n) => `"${n.toString(36)}":0`).join()}}`;
  const kinds: Record<string, Omit<Flood, "url" | "seconds"> | null> = {
    "nothing else": null,
    "pages of 500": { head: head("GET /customers?limit=500", flooding), body: "" },
    "nested bodies of 64 KiB": { head: head(put, flooding, ...json), body: "[".repeat(65_536) },
    "bodies of 6,000 members": { head: head(put, flooding, ...json), body: many },
    "names of 64 KiB": {
      head: head(put, flooding, ...json),
      body: `{"name":"${"x".repeat(65_000)}","email":"ada@example.com"}`,
    },
    "no valid token": { head: head("GET /customers?limit=500", `cst_${"a".repeat(40)}`), body: "" },
    "creates with keys": {
      head: head("POST /customers", flooding, "Content-Type: application/json", "Idempotency-Key: #"),
      body: '{"name":"Ada","email":"ada@example.com"}',
    },
    "reads of one customer": { head: head("GET /customers/none", flooding), body: "" },
  };
  try {
    console.log(`${surroundings()}; ${seconds} s each; limits: ${isLimited ? "yes" : "no"}\n`);
    console.log(
      "| beside | read p50 | read p99 | by quiet | write p50 | write p99 | by quiet | work during a read p50 | p99 | flood's replies/s |",
    );
    console.log("|---|---|---|---|---|---|---|---|---|---|");
    let quiet: Measured | null = null;
    // Once unmeasured, so that the quiet service is warm.
    await measure(url, neighbour, pid, seconds);
    for (const [title, kind] of Object.entries(kinds)) {
      const child =
        kind === null
          ? null
          : Bun.spawn(
              [
                process.execPath,
                import.meta.path,
                "--flood",
                JSON.stringify({ ...kind, url, seconds: seconds + 1 }),
              ],
              { stdio: ["ignore", "pipe", "inherit"] },
            );
      if (child !== null) await Bun.sleep(500);
      const measured = await measure(url, neighbour, pid, seconds);
      quiet ??= measured;
      const replies = child === null ? 0 : Number(await new Response(child.stdout).text());
      const shown = (now: Percentiles, before: Percentiles): string =>
        [
          `${now.p50.toFixed(2)} ms`,
          `${now.p99.toFixed(2)} ms`,
          `**${(now.p99 / before.p99).toFixed(1)}** ×`,
        ].join(" | ");
      console.log(
        `| ${title} | ${shown(measured.reads, quiet.reads)} | ${shown(measured.writes, quiet.writes)} | ${measured.work.p50.toFixed(2)} ms | ${measured.work.p99.toFixed(2)} ms | ${Math.round(replies)} |`,
      );
    }
  } finally {
    await service.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

type Measured = {
  readonly reads: Percentiles;
  readonly writes: Percentiles;
  /** Processor time of the service's main thread while a read waited. */
  readonly work: Percentiles;
};

/** Processor time of a process's main thread so far. */
function mainThreadMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

/** A neighbour with one customer, which it reads and writes by turns at a steady pace. */
async function measure(url: string, token: string, pid: number, seconds: number): Promise<Measured> {
  const authorization = `Bearer ${token}`;
  const json = { authorization, "content-type": "application/json" };
  const body = '{"name":"Grace","email":"grace@example.com"}';
  const signal = AbortSignal.timeout(seconds * 1000 + PATIENCE_MS);
  const made = await fetch(`${url}/customers`, { method: "POST", headers: json, body, signal });
  const path = `${url}${made.headers.get("location")}`;
  let etag = made.headers.get("etag") ?? "";
  await made.arrayBuffer();
  const reads: number[] = [];
  const writes: number[] = [];
  const work: number[] = [];
  const endsAt = performance.now() + seconds * 1000;
  for (let round = 0; performance.now() < endsAt; round += 1) {
    const isRead = round % 2 === 0;
    const workBefore = mainThreadMs(pid);
    const startedAt = performance.now();
    const reply = await (isRead
      ? fetch(path, { headers: { authorization }, signal })
      : fetch(path, { method: "PUT", headers: { ...json, "if-match": etag }, body, signal }));
    await reply.arrayBuffer();
    (isRead ? reads : writes).push(performance.now() - startedAt);
    if (isRead) work.push(mainThreadMs(pid) - workBefore);
    if (!reply.ok) throw new Error(`the neighbour was answered ${reply.status}`);
    etag = reply.headers.get("etag") ?? "";
    await Bun.sleep(PACE_MS);
  }
  return { reads: percentiles(reads), writes: percentiles(writes), work: percentiles(work) };
}

function percentiles(values: number[]): Percentiles {
  values.sort((a, b) => a - b);
  const at = (share: number): number => values[Math.floor((values.length - 1) * share)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

/** Sends one request again and again on each connection, as fast as it is answered. Prints the replies a second. */
async function flood({ url, head, body, seconds }: Flood): Promise<void> {
  const { hostname, port } = new URL(url);
  let replies = 0;
  let sent = 0;
  const request = (): string => {
    sent += 1;
    const length = body === "" ? "" : `Content-Length: ${body.length}\r\n`;
    return `${head.replace("#", `key-${process.pid}-${sent}`)}\r\n${length}\r\n${body}`;
  };
  for (let connection = 0; connection < CONNECTIONS; connection += 1) {
    let awaited = 0;
    let waiting = "";
    const write = (socket: Bun.Socket): void => {
      waiting = waiting.slice(socket.write(waiting));
    };
    const send = (socket: Bun.Socket): void => {
      awaited = -1;
      waiting = request();
      write(socket);
    };
    await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        open: send,
        drain: write,
        data: (socket, chunk) => {
          let received = chunk.length;
          if (awaited === -1) {
            const text = chunk.toString("latin1");
            const end = text.indexOf("\r\n\r\n");
            awaited = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? "0");
            received -= end + 4;
          }
          awaited -= received;
          if (awaited > 0) return;
          replies += 1;
          send(socket);
        },
      },
    });
  }
  await Bun.sleep(seconds * 1000);
  console.log(replies / seconds);
  process.exit(0);
}

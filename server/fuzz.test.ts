import { heapStats } from "bun:jsc";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { isProblemCode, PROBLEMS } from "./domain/problem.ts";
import { SqliteConnections } from "./storage/sqlite-connections.ts";
import { anyDamage } from "./testing/arbitrary-damage.ts";
import { anyTraffic, type Traffic, trafficBytes, UNKNOWN_METHODS } from "./testing/arbitrary-traffic.ts";
import { RawConnection, rawRequest } from "./testing/raw-connection.ts";
import type { RawReply } from "./testing/raw-exchange.ts";
import { TestService } from "./testing/test-service.ts";

const WELL_FRAMED = 14_000;
const DAMAGED = 5_000;
const FETCHED = 1_000;
const BATCH = 50;
const FLAT = 1_000;
/** What an exchange is made of, as the engine names it. */
const EXCHANGE_OBJECTS = [
  "Request",
  "Response",
  "Headers",
  "ReadableStream",
  "Blob",
  "Promise",
  "AbortSignal",
];

const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
console.log(`fuzz: SEED=${seed}`);

const SECRET = "kept-from-acme@example.com";
/** On disk, as in production: writes at once, and under load in a thread of their own, which must live through it all. */
const directory = mkdtempSync(join(tmpdir(), "customers-"));
const deaths: string[] = [];
const service = new TestService({
  connections: SqliteConnections.openAdaptive(join(directory, "fuzz.db"), (reason) => deaths.push(reason)),
});
let token = "";
let foreign = { path: "", etag: "" };
/** The customer that requests are about; a new one for each batch, since they delete it. */
let customer = { id: "", etag: "" };

beforeAll(async () => {
  token = await service.token();
  foreign = await service.customer({ name: "Kept", email: SECRET }, { tenant: "globex" });
});
afterAll(async () => {
  await service.stop();
  rmSync(directory, { recursive: true });
});

const fill = (text: string): string =>
  text.replaceAll("{id}", customer.id).replaceAll("{tag}", customer.etag).replaceAll("{token}", token);

/** Hands out `count` arbitrary things in batches, each with a customer of its own. */
async function inBatches<T>(
  arbitrary: fc.Arbitrary<T>,
  count: number,
  use: (things: T[]) => Promise<void>,
): Promise<void> {
  for (let done = 0; done < count; done += BATCH) {
    customer = await service.customer();
    await use(fc.sample(arbitrary, { numRuns: BATCH, seed: seed + done }));
    failures.push(
      ...service.logLines.filter(({ level }) => Number(level) >= 50).map((line) => JSON.stringify(line)),
    );
    service.logLines.length = 0;
  }
}

/** What a client library is able to send. */
const fetchable = anyTraffic.filter(
  ({ method, target }) =>
    target.startsWith("/") && /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/.test(method),
);

/** What went wrong, with the request that showed it. */
const failures: string[] = [];
const shown = (bytes: Uint8Array): string =>
  JSON.stringify(Buffer.from(bytes).toString("latin1").slice(0, 600));

/** Bun takes what follows a CONNECT for tunnelled bytes, whatever was answered. */
function endsConnection({ method, lines }: Traffic, { headers }: RawReply): boolean {
  return method === "CONNECT" || headers.get("connection") === "close" || lines.includes("Connection: close");
}

/** What is wrong with an answer of the service, or null. */
function faultOf(
  { status, headers, body }: Pick<RawReply, "status" | "headers" | "body">,
  isHead: boolean,
): string | null {
  if (body.includes(SECRET)) return "another tenant's customer";
  if (!headers.has("x-request-id") || headers.get("x-content-type-options") !== "nosniff") return "bare";
  if (status >= 500) return "5xx";
  if (status < 400 || (isHead && body === "")) return null;
  if (
    headers.get("content-type") !== "application/problem+json" ||
    headers.get("cache-control") !== "no-store"
  )
    return "no problem document";
  const { code, status: inBody } = JSON.parse(body) as { code: string; status: number };
  return isProblemCode(code) && PROBLEMS[code].status === status && inBody === status
    ? null
    : "another status than its code's";
}

/**
 * All that Bun answers before the service sees the request, and why; README.md lists the same. "closed": the connection is
 * closed without an answer. Only bare answers that stand here are accepted.
 */
const BARE: readonly {
  readonly why: string;
  readonly answer: number | "closed";
  readonly when: (traffic: Traffic) => boolean;
}[] = [
  {
    why: "a header line that is none: control characters, no colon, no name, a blank in the name, a folded line",
    answer: 400,
    when: ({ lines }) => lines.some((line) => !/^[!#$%&'*+.^_`|~\w-]+:[\t\x20-\x7e\x80-\xff]*$/.test(line)),
  },
  { why: "more than 200 header lines", answer: 431, when: ({ lines }) => lines.length > 190 },
  {
    why: "request line and headers of more than 16 KiB",
    answer: 431,
    when: ({ method, target, lines }) => fill([method, target, ...lines].join("\r\n")).length > 16_000,
  },
  {
    why: "a method that its parser does not know",
    answer: "closed",
    when: ({ method }) => UNKNOWN_METHODS.includes(method),
  },
];

test(`each of ${WELL_FRAMED} well-framed requests is answered by the service, or bare for a listed reason`, async () => {
  let connection = await RawConnection.open(service.port);
  const answers = new Map<string, number>();
  await inBatches(anyTraffic, WELL_FRAMED, async (batch) => {
    for (const traffic of batch) {
      if (connection.isClosed) connection = await RawConnection.open(service.port);
      const bytes = trafficBytes(traffic, fill);
      const isHead = traffic.method === "HEAD";
      const reply = await connection.send({ bytes, isHead });
      if (reply === null || endsConnection(traffic, reply)) connection.close();
      const reasons = BARE.filter(({ when }) => when(traffic)).map(({ answer }) => answer);
      const bare = reply === null ? "closed" : reply.headers.has("x-request-id") ? null : reply.status;
      answers.set(String(bare ?? reply?.status), (answers.get(String(bare ?? reply?.status)) ?? 0) + 1);
      const fault =
        reasons.length > 0 || bare !== null || reply === null
          ? reasons.includes(bare ?? 0)
            ? null
            : `bare ${bare} where ${reasons} is due`
          : faultOf(reply, isHead);
      if (fault !== null) failures.push(`${fault}: ${shown(bytes)}`);
    }
  });
  connection.close();
  expect(failures.slice(0, 5)).toEqual([]);
  // Requests that all die at the first check would prove nothing.
  for (const status of [
    "200",
    "201",
    "204",
    "400",
    "401",
    "403",
    "404",
    "405",
    "412",
    "415",
    "422",
    "428",
    "431",
    "closed",
  ]) {
    expect([status, (answers.get(status) ?? 0) > 0]).toEqual([status, true]);
  }
});

test(`${DAMAGED} damaged requests crash nothing, and what is answered is bare or a problem document`, async () => {
  await inBatches(fc.tuple(anyTraffic, anyDamage), DAMAGED, async (batch) => {
    const connections = await Promise.all(batch.map(() => RawConnection.open(service.port)));
    const replies = batch.map(([traffic, damage], index) => {
      const bytes = damage(trafficBytes(traffic, fill));
      // A damaged request may be an unfinished one, so an answer may never come: null once the connection is closed.
      return connections[index]
        ?.send({ bytes, isHead: /^HEAD/.test(Buffer.from(bytes).toString("latin1")) })
        .then((reply) => ({ reply, bytes }));
    });
    // The service takes what came in before these. A connection of their own: idle ones are closed after a while.
    const probe = await RawConnection.open(service.port);
    for (let turn = 0; turn < 3; turn += 1) {
      const alive = await probe.send(rawRequest("GET", "/healthz", []));
      if (alive?.status !== 200) failures.push("the service no longer answers");
    }
    for (const connection of [probe, ...connections]) connection.close();
    for (const settled of replies) {
      const { reply = null, bytes = new Uint8Array() } = (await settled) ?? {};
      if (reply === null) continue;
      const isBare =
        !reply.headers.has("x-request-id") &&
        [400, 413, 431, 505].includes(reply.status) &&
        reply.body === "";
      const fault = isBare ? null : faultOf(reply, reply.body === "");
      if (fault !== null) failures.push(`${fault} (${reply.status}): ${shown(bytes)}`);
    }
  });
  expect(failures.slice(0, 5)).toEqual([]);
});

test(`${FETCHED} requests of an ordinary client get an answer of the service`, async () => {
  await inBatches(fetchable, FETCHED, async (batch) => {
    for (const { method, target, lines, body } of batch) {
      const headers = new Headers();
      for (const line of lines) {
        const [, name = "", value = ""] = /^([A-Za-z-]+): (.*)$/.exec(fill(line)) ?? [];
        if (
          name !== "" &&
          !/^(?:host|connection|upgrade|te|expect)$/i.test(name) &&
          !/[^ -\xff]/.test(value) &&
          value.length < 8000
        )
          headers.append(name, value);
      }
      const isBodiless = method === "GET" || method === "HEAD" || body === null;
      const response = await fetch(`${service.url}${fill(target)}`, {
        method,
        headers,
        redirect: "manual",
        ...(isBodiless ? {} : { body }),
      });
      const reply = {
        status: response.status,
        headers: new Map(response.headers),
        body: await response.text(),
      };
      const fault = faultOf(reply, method === "HEAD");
      if (fault !== null)
        failures.push(`${fault} (${reply.status}): ${method} ${target} ${JSON.stringify([...headers])}`);
    }
  });
  expect(failures.slice(0, 5)).toEqual([]);
});

test("after it all the other tenant's customer is as it was, and the metrics name no more routes and methods than there are", async () => {
  const after = await service.send("GET", foreign.path, { caller: { tenant: "globex" } });
  expect([after.status, after.etag, after.json.email]).toEqual([200, foreign.etag, SECRET]);
  const metrics = await service.send("GET", "/metrics", { caller: { role: "monitor" } });
  expect(metrics.text).not.toContain(customer.id);
  const requests = metrics.text.split("\n").filter((line) => line.startsWith("http_requests_total"));
  // 8 methods (`other` among them), 8 routes, and few statuses for each.
  expect(requests.length).toBeLessThan(8 * 8 * 12);
  expect(metrics.text.length).toBeLessThan(1_000_000);
  expect(deaths).toEqual([]);
});

test("memory is flat: after thousands of requests as many objects of an exchange live as before", async () => {
  const live = (): number => {
    Bun.gc(true);
    const { objectTypeCounts } = heapStats();
    return EXCHANGE_OBJECTS.reduce((sum, type) => sum + (objectTypeCounts[type] ?? 0), 0);
  };
  const send = (): Promise<void> =>
    inBatches(anyTraffic, FLAT, async (batch) => {
      let connection = await RawConnection.open(service.port);
      for (const traffic of batch) {
        if (connection.isClosed) connection = await RawConnection.open(service.port);
        const isHead = traffic.method === "HEAD";
        const reply = await connection.send({ bytes: trafficBytes(traffic, fill), isHead });
        if (reply === null || endsConnection(traffic, reply)) connection.close();
      }
      connection.close();
    });
  await send();
  const before = live();
  await send();
  await send();
  // One object kept for each request would make 2,000.
  expect(live() - before).toBeLessThan(FLAT / 2);
  expect(failures).toEqual([]);
});

import { heapStats } from "bun:jsc";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { USUAL_WAY } from "../support/database/storage-ways.ts";
import { RawConnection, rawRequest } from "../support/http/raw-connection.ts";
import type { RawReply } from "../support/http/raw-exchange.ts";
import { RUNS } from "../support/random.ts";
import { type ServerProcess, Workplace } from "../support/service/server-process.ts";
import { TestService } from "../support/service/test-service.ts";
import { anyDamage } from "./arbitrary-damage.ts";
import { anyTraffic, type Traffic, trafficBytes } from "./arbitrary-traffic.ts";
import { BARE, faultOf, SECRET } from "./judged-answers.ts";

const WELL_FRAMED = 3_000 * RUNS;
const SHARED = 1_000 * RUNS;
const DAMAGED = 1_000 * RUNS;
const FETCHED = 500 * RUNS;
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

/**
 * On disk, as in production: writes at once, and under load
 * in a thread of their own, which must live through it all.
 */
const directory = mkdtempSync(join(tmpdir(), "customers-"));
const deaths: string[] = [];
const service = await TestService.start({
  storage: await USUAL_WAY.open(join(directory, "fuzz.db"), { onFault: (reason) => deaths.push(reason) }),
});
let token = "";
let foreign = { path: "", etag: "" };
/** The customer that requests are about; a new one for each batch, since they delete it. */
let customer = { id: "", etag: "" };

/** Where requests go. */
type Target = {
  readonly port: number;
  readonly makeCustomer: () => Promise<{ id: string; etag: string }>;
  /** The lines of the log since the last call. */
  readonly takeLog: () => Record<string, unknown>[];
};
const here: Target = {
  port: service.port,
  makeCustomer: () => service.customer(),
  takeLog: () => service.logLines.splice(0),
};

function overServices(services: ServerProcess, adminToken: string): Target {
  let taken = 0;
  return {
    port: services.port,
    makeCustomer: async () => {
      const body = { name: "Ada", email: "ada@example.com" };
      const { json, etag } = await services.send(adminToken, "POST", "/customers", { body });
      return { id: json.id, etag };
    },
    takeLog: () => {
      const lines = services.log.slice(taken);
      taken += lines.length;
      return lines;
    },
  };
}

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
  target: Target = here,
): Promise<void> {
  for (let done = 0; done < count; done += BATCH) {
    customer = await target.makeCustomer();
    await use(fc.sample(arbitrary, { numRuns: BATCH, seed: seed + done }));
    const errors = target.takeLog().filter(({ level }) => Number(level) >= 50);
    failures.push(...errors.map((line) => JSON.stringify(line)));
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

function endsConnection({ lines }: Traffic, { headers }: RawReply): boolean {
  return headers.get("connection") === "close" || lines.includes("Connection: close");
}

/** Sends well-framed requests, one after another. @returns how often each answer came */
async function sendWellFramed(target: Target, count: number): Promise<Map<string, number>> {
  let connection = await RawConnection.open(target.port);
  const answers = new Map<string, number>();
  const send = async (batch: Traffic[]): Promise<void> => {
    for (const traffic of batch) {
      if (connection.isClosed) connection = await RawConnection.open(target.port);
      const bytes = trafficBytes(traffic, fill);
      const isHead = traffic.method === "HEAD";
      const reply = await connection.send({ bytes, isHead });
      if (reply === null || endsConnection(traffic, reply)) connection.close();
      const reasons = BARE.filter(({ when }) => when(traffic, Buffer.from(bytes).indexOf("\r\n\r\n"))).map(
        ({ answer }) => answer,
      );
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
    // The next batch may meet another process.
    connection.close();
  };
  await inBatches(anyTraffic, count, send, target);
  return answers;
}

test(`each of ${WELL_FRAMED} well-framed requests is answered by the service, or bare for a listed reason`, async () => {
  const answers = await sendWellFramed(here, WELL_FRAMED);
  expect(failures.slice(0, 5)).toEqual([]);
  // Requests that all die at the first check would prove
  // nothing. Those that 3,000 draws bring at least 15 times.
  for (const status of "200 204 400 401 404 405 412 415 422 428 431 closed".split(" ")) {
    expect([status, (answers.get(status) ?? 0) > 0]).toEqual([status, true]);
  }
});

test(`the same of ${SHARED} requests to two services on one port`, async () => {
  const place = new Workplace();
  const ownToken = token;
  try {
    const services = await place.start({ services: 2 });
    token = place.adminToken;
    const answers = await sendWellFramed(overServices(services, token), SHARED);
    expect(failures.slice(0, 5)).toEqual([]);
    for (const status of ["200", "204", "400", "404", "412", "428", "closed"]) {
      expect([status, (answers.get(status) ?? 0) > 0]).toEqual([status, true]);
    }
  } finally {
    token = ownToken;
    await place.clear();
  }
});

test(`${DAMAGED} damaged requests crash nothing, and what is answered is bare or a problem document`, async () => {
  await inBatches(fc.tuple(anyTraffic, anyDamage), DAMAGED, async (batch) => {
    const connections = await Promise.all(batch.map(() => RawConnection.open(service.port)));
    const replies = batch.map(([traffic, damage], index) => {
      const bytes = damage(trafficBytes(traffic, fill));
      // A damaged request may be an unfinished one, so an answer
      // may never come: null once the connection is closed.
      return connections[index]
        ?.send({ bytes, isHead: /^HEAD/.test(Buffer.from(bytes).toString("latin1")) })
        .then((reply) => ({ reply, bytes }));
    });
    // The service takes what came in before these. A connection
    // of their own: idle ones are closed after a while.
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
  const count = (): number => {
    Bun.gc(true);
    const { objectTypeCounts } = heapStats();
    return EXCHANGE_OBJECTS.reduce((sum, type) => sum + (objectTypeCounts[type] ?? 0), 0);
  };
  // What the last exchanges hold goes some turns of the event loop after their replies; what leaks never does.
  const live = async (): Promise<number> => {
    let least = count();
    for (let same = 0; same < 5; ) {
      await Bun.sleep(1);
      const now = count();
      same = now < least ? 0 : same + 1;
      least = Math.min(least, now);
    }
    return least;
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
  const before = await live();
  await send();
  await send();
  // One object kept for each request would make 2,000.
  expect((await live()) - before).toBeLessThan(FLAT / 2);
  expect(failures).toEqual([]);
});

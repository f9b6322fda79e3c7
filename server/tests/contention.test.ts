import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { STORAGE_WAYS } from "./support/database/storage-ways.ts";
import { RawConnection, type RawRequest, rawRequest } from "./support/http/raw-connection.ts";
import type { RawReply } from "./support/http/raw-exchange.ts";
import { TestService } from "./support/service/test-service.ts";

const WRITERS = 50;
const ROUNDS = 4;
const ENTITY_TAG = /^"[A-Za-z0-9_-]{16}"$/;

const directory = mkdtempSync(join(tmpdir(), "customers-"));
const deaths: string[] = [];
afterAll(() => rmSync(directory, { recursive: true }));

const MIXED: readonly Method[] = ["PUT", "PATCH", "DELETE"];

type Method = "PUT" | "PATCH" | "DELETE";

/** The write of one of many writers; its name says whose it is. */
function writeOf(
  authorization: string,
  method: Method,
  path: string,
  etag: string,
  writerNumber: number,
): RawRequest {
  const name = `writer ${writerNumber}`;
  const body = method === "PUT" ? { name, email: "ada@example.com" } : { name };
  const lines = [authorization, `If-Match: ${etag}`];
  if (method === "DELETE") return rawRequest(method, path, lines);
  return rawRequest(
    method,
    path,
    [...lines, "Content-Type: application/json"],
    Buffer.from(JSON.stringify(body)),
  );
}

describe.each([...STORAGE_WAYS])("$title", ({ title, open }) => {
  let service: TestService;
  let commits = 0;
  const connections: RawConnection[] = [];
  let authorization = "";
  beforeAll(async () => {
    const storage = await open(join(directory, title), {
      onFault: (reason) => deaths.push(reason),
      onCommit: () => {
        commits += 1;
      },
    });
    service = await TestService.start({ storage });
    authorization = `Authorization: Bearer ${await service.token()}`;
  });
  afterAll(async () => {
    for (const connection of connections) connection.close();
    await service.stop();
  });
  const writeBy = (method: Method, path: string, etag: string, writerNumber: number): RawRequest =>
    writeOf(authorization, method, path, etag, writerNumber);

  /** A connection for each writer. The service closes idle ones after a while. */
  async function connectAll(): Promise<void> {
    for (let index = 0; index < WRITERS; index += 1) {
      if (connections[index]?.isClosed ?? true) connections[index] = await RawConnection.open(service.port);
    }
  }

  /** All requests at once, a connection each. They are in the kernel before the service's turn comes. */
  async function race(requests: readonly RawRequest[]): Promise<RawReply[]> {
    await connectAll();
    const replies = await Promise.all(requests.map((request, index) => connections[index]?.send(request)));
    return replies.map((reply) => {
      if (reply === null || reply === undefined) throw new Error("a connection was closed without an answer");
      return reply;
    });
  }

  describe(`of ${WRITERS} concurrent writes with one entity-tag exactly one is applied`, () => {
    test.each([
      { title: "PUT", methods: ["PUT"] as const },
      { title: "PATCH", methods: ["PATCH"] as const },
      { title: "DELETE", methods: ["DELETE"] as const },
      { title: "PUT, PATCH and DELETE", methods: MIXED },
      { title: "PUT, PATCH and DELETE, in another order", methods: MIXED.toReversed() },
    ])("$title", async ({ methods }) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const { path, etag } = await service.customer();
        const requests = Array.from({ length: WRITERS }, (_, index) => {
          // Who comes first differs from round to round.
          const method = methods[(index + round) % methods.length] ?? "PUT";
          return { method, ...writeBy(method, path, etag, index) };
        });
        const replies = await race(requests);

        const winners = replies.flatMap((reply, index) => (reply.status === 204 ? [index] : []));
        expect(winners).toHaveLength(1);
        const winner = winners[0] ?? 0;
        const losers = replies.filter((_, index) => index !== winner);
        const after = await service.send("GET", path);
        if (requests[winner]?.method === "DELETE") {
          expect(replies[winner]?.headers.get("etag")).toBeUndefined();
          expect(new Set(losers.map(({ status }) => status))).toEqual(new Set([404]));
          expect(after.status).toBe(404);
        } else {
          const made = replies[winner]?.headers.get("etag") ?? "";
          expect(made).toMatch(ENTITY_TAG);
          expect(made).not.toBe(etag);
          expect(new Set(losers.map(({ status }) => status))).toEqual(new Set([412]));
          // Nobody wrote after the winner, so its tag is the current one for all of them.
          expect(new Set(losers.map(({ headers }) => headers.get("etag")))).toEqual(new Set([made]));
          expect(after.etag).toBe(made);
          expect(after.json.name).toBe(`writer ${winner}`);
        }
      }
    });
  });

  test("a loser's entity-tag is good for its next write, so every writer gets through in the end", async () => {
    const { path, etag } = await service.customer();
    await connectAll();
    const writers = connections.slice(0, 10);
    let refusals = 0;
    await Promise.all(
      writers.map(async (connection, index) => {
        for (let tag = etag; ; refusals += 1) {
          const reply = await connection.send(writeBy("PATCH", path, tag, index));
          if (reply?.status === 204) return;
          expect(reply?.status).toBe(412);
          tag = reply?.headers.get("etag") ?? "";
        }
      }),
    );
    // Each applied write refuses at most those who still wait.
    expect(refusals).toBeGreaterThan(0);
    expect(refusals).toBeLessThanOrEqual((writers.length * (writers.length - 1)) / 2);
  });

  test("writes that arrive in one turn of the event loop share commits, and each is judged on its own", async () => {
    const customers = await Promise.all(Array.from({ length: 20 }, () => service.customer()));
    const [contended = { path: "", etag: "" }] = customers;
    const before = commits;
    const applied = customers.map(({ path, etag }, index) => writeBy("PUT", path, etag, index));
    const stale = Array.from({ length: 10 }, (_, index) =>
      writeBy("PATCH", contended.path, contended.etag, 100 + index),
    );
    const missing = Array.from({ length: 10 }, () =>
      writeBy("DELETE", "/customers/01a00000-0000-7000-8000-000000000000", contended.etag, 0),
    );
    const replies = await race([...applied, ...stale, ...missing]);
    expect(replies.map(({ status }) => status)).toEqual([
      ...applied.map(() => 204),
      ...stale.map(() => 412),
      ...missing.map(() => 404),
    ]);
    expect(commits - before).toBeLessThan(replies.length);
  });

  /**
   * Bun closes a connection on which a request arrives while an earlier one of it still waits for its answer
   * (docs/http.md, "What Bun answers by itself"). What was sent may
   * be applied or not, but never twice and never against the tag.
   */
  test("twenty writes pipelined on one connection: at most one is applied, and what is stored is whole", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { path, etag } = await service.customer();
      const connection = await RawConnection.open(service.port);
      const burst = Array.from({ length: 20 }, (_, index) => writeBy("PATCH", path, etag, index));
      const replies = await connection.burst(burst);
      const statuses = replies.map((reply) => reply?.status ?? null);
      expect(statuses.filter((status) => status === 204).length).toBeLessThanOrEqual(1);
      expect(statuses.filter((status) => status !== null && status !== 204 && status !== 412)).toEqual([]);
      connection.close();
      const after = await service.send("GET", path);
      expect(after.status).toBe(200);
      if (after.etag === etag) expect(after.json.name).toBe("Ada");
      else expect(after.json.name).toMatch(/^writer \d+$/);
    }
  });

  test("no contended write was answered with a 5xx or logged as an error", () => {
    expect(service.logLines.filter(({ level }) => Number(level) >= 50)).toEqual([]);
    expect(service.logLines.filter(({ status }) => Number(status) >= 500)).toEqual([]);
    expect(deaths).toEqual([]);
  });
});

import { afterAll, afterEach, expect, spyOn, test } from "bun:test";
import { BUILT_IN_POLICY } from "../../config/policy-file.ts";
import { RawConnection, rawRequest } from "../../tests/support/http/raw-connection.ts";
import { TestService } from "../../tests/support/service/test-service.ts";

const CONNECTIONS = 64;
const REQUESTS_EACH = 5;
const ADMITTED = 12;
const LONG = 50_000;

/** Bodies of almost 64 KiB, of the kinds that take longest to refuse. */
const BODIES = [
  `{"name":${"[".repeat(32_000)}${"]".repeat(32_000)}}`,
  `{"name":"Ada","email":"a@b.example",${Array.from({ length: 6_000 }, (_, at) => `"${at.toString(36)}":123`).join()}}`,
  `{"name":"Ada","email":"a@b.example","${"name".repeat(16_000)}":0}`,
  `{"name":"${"😀".repeat(16_000)}","email":"a@b.example"}`,
].map((text) => Buffer.from(text));
const METHODS = ["PUT", "PATCH", "POST"] as const;

const service = await TestService.start();
const bodies = spyOn(Request.prototype, "bytes");
const parsed = spyOn(JSON, "parse");
afterEach(() => {
  service.reload(BUILT_IN_POLICY);
  bodies.mockClear();
  parsed.mockClear();
});
afterAll(async () => {
  bodies.mockRestore();
  parsed.mockRestore();
  await service.stop();
});

/** @returns how many long bodies the service has kept to parse them, and how many long texts it has parsed */
async function workDone(): Promise<{ bodies: number; texts: number }> {
  const kept = await Promise.all(bodies.mock.results.map(({ value }) => value));
  return {
    bodies: kept.filter((body) => body instanceof Uint8Array && body.byteLength >= LONG).length,
    texts: parsed.mock.calls.filter(([text]) => text.length >= LONG / 2).length,
  };
}

/** Sends long bodies over many connections at once. @returns their statuses */
async function flood(path: string, etag: string, token: string): Promise<(number | undefined)[]> {
  const json = ["Content-Type: application/json", `If-Match: ${etag}`];
  const lines = [`Authorization: Bearer ${token}`, ...json];
  const connections = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => RawConnection.open(service.port)),
  );
  const statuses = await Promise.all(
    connections.map(async (connection, nth) => {
      const seen: (number | undefined)[] = [];
      for (let sent = 0; sent < REQUESTS_EACH; sent += 1) {
        const at = nth + sent;
        const method = METHODS[at % METHODS.length] ?? "PUT";
        const target = method === "POST" ? "/customers" : path;
        const reply = await connection.send(rawRequest(method, target, lines, BODIES[at % BODIES.length]));
        seen.push(reply?.status);
      }
      return seen;
    }),
  );
  for (const connection of connections) connection.close();
  return statuses.flat();
}

/** Reads and writes a customer of another tenant until the flood is over. @returns the statuses of the requests */
async function neighbour(isOver: () => boolean): Promise<Set<number>> {
  const caller = { client: "neighbour", tenant: `tenant-${crypto.randomUUID()}` };
  const statuses = new Set<number>();
  const made = await service.customer({}, caller);
  for (let { etag } = made; !isOver(); ) {
    const read = await service.send("GET", made.path, { caller });
    const headers = { "if-match": etag };
    const written = await service.send("PATCH", made.path, { caller, headers, body: { name: "Grace" } });
    ({ etag } = written);
    statuses.add(read.status).add(written.status);
  }
  return statuses;
}

test.each(["client", "tenant"])(
  "a flood of long bodies costs no more of them than the limit of the %s admits, and its neighbour is answered",
  async (holder) => {
    const caller = { client: "flood", tenant: `tenant-${crypto.randomUUID()}` };
    const token = await service.token(caller);
    const { path, etag } = await service.customer({}, caller);
    service.reload(
      `${BUILT_IN_POLICY}\n[limits.${holder}s.${caller[holder as "client"]}]\nwrites = { per_second = 0.001, burst = ${ADMITTED} }\n`,
    );
    let isOver = false;
    const ending = flood(path, etag, token).finally(() => {
      isOver = true;
    });
    const [statuses, neighbours] = await Promise.all([ending, neighbour(() => isOver)]);

    const admitted = statuses.filter((status) => status !== 429);
    expect(statuses).toHaveLength(CONNECTIONS * REQUESTS_EACH);
    expect(admitted).toHaveLength(ADMITTED);
    expect(admitted.every((status) => status === 400 || status === 422)).toBe(true);
    const work = await workDone();
    expect(work.bodies).toBe(ADMITTED);
    expect(work.texts).toBeLessThan(ADMITTED);
    expect([...neighbours].toSorted()).toEqual([200, 204]);
  },
);

import { afterEach, beforeEach, expect, test } from "bun:test";
import { RawConnection, rawRequest } from "./support/http/raw-connection.ts";
import { type ServerProcess, Workplace } from "./support/service/server-process.ts";

/** Of file descriptors, for each service. */
const LIMIT = 100;

let place: Workplace;
let service: ServerProcess;
const start = async (services: number): Promise<void> => {
  service = await place.start({ services, descriptors: LIMIT });
};
beforeEach(() => {
  place = new Workplace();
});
afterEach(async () => {
  for (const connection of connections.splice(0)) connection.close();
  await place.clear();
});

const connections: RawConnection[] = [];
async function open(): Promise<RawConnection> {
  const connection = await RawConnection.open(service.port);
  connections.push(connection);
  return connection;
}
const health = rawRequest("GET", "/healthz", []);
const logged = (message: string): Promise<string | null> =>
  service.stderr.line((line) => line.includes(message));

test("near the limit of file descriptors connections end after each reply, nobody is locked out, and the log names the limit", async () => {
  // On one port.
  const services = 2;
  await start(services);
  const clientCount = services * (LIMIT + 20);
  const authorization = `Authorization: Bearer ${place.adminToken}`;
  const read = rawRequest("GET", "/customers?limit=1", [authorization]);
  const first = await RawConnection.open(service.port);
  expect((await first.send(read))?.headers.get("connection")).toBeUndefined();

  // More clients than descriptors; each keeps its connection and asks on it again and again.
  let isNoticed = false;
  let answers = 0;
  const clients = Array.from({ length: clientCount }, async () => {
    let connection = await RawConnection.open(service.port);
    for (let asked = 0; asked < 3 || !isNoticed; asked += 1) {
      const reply = await connection.send(read);
      expect(reply?.status).toBe(200);
      answers += 1;
      if (reply?.headers.get("connection") !== "close") continue;
      isNoticed = true;
      connection.close();
      connection = await RawConnection.open(service.port);
    }
    connection.close();
  });
  await Promise.all(clients);
  expect(answers).toBeGreaterThanOrEqual(clientCount * 3);
  const line = await service.stderr.line((text) => text.includes("file descriptors run out"));
  expect(JSON.parse(line ?? "{}")).toMatchObject({ level: "warn", max: LIMIT });

  const body = { name: "Ada", email: "ada@example.com" };
  expect((await service.send(place.adminToken, "POST", "/customers", { body })).status).toBe(201);
  first.close();
});

test("more idle connections than file descriptors: idle ones are closed, and each new one is served", async () => {
  await start(1);
  const statuses = await Promise.all(
    Array.from({ length: 2 * LIMIT }, async () => (await (await open()).send(health))?.status),
  );
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(await logged("file descriptors run out")).toContain(`"max":${LIMIT}`);
});

test("more requests under way than file descriptors: those that were accepted are answered, then the others", async () => {
  await start(1);
  const body = '{"name":"Ada","email":"ada@example.com"}';
  const head = rawRequest(
    "POST",
    "/customers",
    [`Authorization: Bearer ${place.adminToken}`, "Content-Type: application/json"],
    Buffer.from(body),
  );
  const split = head.bytes.byteLength - 1;
  const begun = await Promise.all(
    Array.from({ length: 2 * LIMIT }, async () => {
      const connection = await open();
      return { connection, reply: connection.send({ bytes: head.bytes.subarray(0, split), isHead: false }) };
    }),
  );
  await logged("file descriptors run out");
  for (const { connection } of begun) connection.write(head.bytes.subarray(split));
  const statuses = await Promise.all(begun.map(async ({ reply }) => (await reply)?.status));
  expect(new Set(statuses)).toEqual(new Set([201]));
  expect((await (await open()).send(health))?.status).toBe(200);
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import { once } from "node:events";
import { connect } from "node:net";
import { parseRawReply } from "../tests/support/http/raw-exchange.ts";
import { type ServerProcess, Workplace } from "../tests/support/service/server-process.ts";

const MIB = 1_048_576;
const BODY_MIB = 256;
/** Half of a body: who kept one whole would need twice as much. */
const GROWTH_MIB_MAX = 128;

// A process of its own: what this one keeps to send would count as well.
const place = new Workplace();
let service: ServerProcess;
beforeAll(async () => {
  service = await place.start();
});
afterAll(() => place.clear());

/** Sends a body of 256 MiB, as fast as it is taken. @returns the status, and how much the service grew meanwhile */
async function flood(
  head: readonly string[],
  isChunked: boolean,
): Promise<{ status: number; grownMiB: number }> {
  const block = Buffer.alloc(MIB, "a");
  const memory = service.watchMemory();
  let received = "";
  const socket = connect(service.port, "127.0.0.1");
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
  });
  await once(socket, "connect");
  const framing = isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${BODY_MIB * MIB}`;
  socket.write([...head, "Host: localhost", framing, "", ""].join("\r\n"));
  for (let sent = 0; sent < BODY_MIB; sent += 1) {
    if (isChunked) socket.write(`${MIB.toString(16)}\r\n`);
    const isTaken = socket.write(block);
    if (isChunked) socket.write("\r\n");
    if (!isTaken) await once(socket, "drain");
  }
  if (isChunked) socket.write("0\r\n\r\n");
  while (parseRawReply(received) === null) await once(socket, "data");
  socket.destroy();
  return { status: parseRawReply(received)?.status ?? 0, grownMiB: memory.grownMiB() };
}

test.each([
  { status: 428, method: "PUT", lines: [], isChunked: true },
  { status: 412, method: "PUT", lines: ['If-Match: "AAAAAAAAAAAAAAAA"'], isChunked: false },
  {
    status: 413,
    method: "PATCH",
    lines: ["If-Match: {tag}", "Content-Type: application/json"],
    isChunked: true,
  },
  {
    status: 413,
    method: "PATCH",
    lines: ["If-Match: {tag}", "Content-Type: application/json"],
    isChunked: false,
  },
  { status: 200, method: "GET", lines: [], isChunked: true },
  { status: 405, method: "POST", lines: [], isChunked: false },
])(
  "a huge body is answered with $status to $method without being kept (chunked: $isChunked)",
  async ({ status, method, lines, isChunked }) => {
    const list = await service.send(place.adminToken, "GET", "/customers?limit=1");
    const [{ etag, customer }] = list.json.items;
    const path = `/customers/${customer.id}`;
    const authorization = `Authorization: Bearer ${place.adminToken}`;
    const head = [`${method} ${path} HTTP/1.1`, authorization, ...lines].map((line) =>
      line.replace("{tag}", etag),
    );
    const answer = await flood(head, isChunked);
    expect(answer.status).toBe(status);
    expect(answer.grownMiB).toBeLessThan(GROWTH_MIB_MAX);
  },
);

test("many unwanted bodies at once are kept no more than one: all are refused in little memory", async () => {
  // More than may be kept of all. No more than that: on a busy machine the service reads each for ten seconds at most.
  const EACH_MIB = 5;
  const memory = service.watchMemory();
  const block = Buffer.alloc(MIB, "a");
  const statuses = await Promise.all(
    Array.from({ length: 32 }, async () => {
      const socket = connect(service.port, "127.0.0.1");
      let received = "";
      socket.on("data", (chunk) => {
        received += chunk.toString("latin1");
      });
      await once(socket, "connect");
      socket.write(
        `POST /customers HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${EACH_MIB * MIB}\r\n\r\n`,
      );
      for (let sent = 0; sent < EACH_MIB; sent += 1) {
        if (!socket.write(block)) await once(socket, "drain");
      }
      if (!socket.closed) await once(socket, "close");
      return parseRawReply(received)?.status;
    }),
  );
  expect(new Set(statuses)).toEqual(new Set([401]));
  expect(memory.grownMiB()).toBeLessThan(GROWTH_MIB_MAX);
});

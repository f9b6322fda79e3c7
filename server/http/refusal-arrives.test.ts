import { afterAll, expect, test } from "bun:test";
import { once } from "node:events";
import { connect } from "node:net";
import { parseRawReply, rawExchange } from "../tests/support/http/raw-exchange.ts";
import { TestService } from "../tests/support/service/test-service.ts";
import { discardRest } from "./body/request-body.ts";

const KIB = 1024;
const service = await TestService.start();
afterAll(() => service.stop());

/**
 * Sends all of a request, as urllib and nginx do, and only then reads.
 *
 * @returns its status, or why it failed
 */
async function sendThenRead(
  head: readonly string[],
  body: Buffer,
  framing: Framing,
): Promise<number | string> {
  const socket = connect(service.port, "127.0.0.1");
  let failure: string | null = null;
  socket.on("error", (error: NodeJS.ErrnoException) => {
    failure = error.code ?? error.message;
  });
  await once(socket, "connect");
  socket.pause();
  const chunks = framing === "chunked" ? chunked(body) : body;
  const length = framing === "chunked" ? "Transfer-Encoding: chunked" : `Content-Length: ${body.byteLength}`;
  const bytes = Buffer.concat([Buffer.from([...head, length, "", ""].join("\r\n")), chunks]);
  for (let sent = 0; sent < bytes.byteLength && failure === null; sent += 64 * KIB) {
    await new Promise((written) => socket.write(bytes.subarray(sent, sent + 64 * KIB), written));
    // The service shares this event loop: it sees each piece by itself.
    await new Promise(setImmediate);
  }
  if (failure !== null) return failure;
  let received = "";
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
  });
  socket.resume();
  if (!socket.closed) await once(socket, "close");
  return failure ?? parseRawReply(received)?.status ?? "no reply";
}

type Framing = "length" | "chunked";

function chunked(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.byteLength; at += 64 * KIB) {
    const part = body.subarray(at, at + 64 * KIB);
    parts.push(Buffer.from(`${part.byteLength.toString(16)}\r\n`), part, Buffer.from("\r\n"));
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
}

const REFUSALS: readonly { status: number; method: string; path?: string; lines: readonly string[] }[] = [
  { status: 401, method: "POST", path: "/customers", lines: [] },
  { status: 404, method: "POST", path: "/nowhere", lines: [] },
  { status: 405, method: "POST", lines: [] },
  { status: 403, method: "PUT", lines: ["Authorization: Bearer {viewer}"] },
  { status: 428, method: "PUT", lines: ["Authorization: Bearer {admin}"] },
  { status: 412, method: "PUT", lines: ["Authorization: Bearer {admin}", 'If-Match: W/"x"'] },
  {
    status: 413,
    method: "PUT",
    lines: ["Authorization: Bearer {admin}", "If-Match: {tag}", "Content-Type: application/json"],
  },
];
const ENDINGS: readonly { version: string; connection: readonly string[] }[] = [
  { version: "1.1", connection: ["Connection: close"] },
  { version: "1.0", connection: ["Connection: close"] },
  { version: "1.0", connection: [] },
];

test.each(
  REFUSALS.flatMap((refusal) =>
    ENDINGS.flatMap((ending) =>
      (ending.version === "1.0" ? (["length"] as const) : (["length", "chunked"] as const)).flatMap(
        (framing) =>
          (refusal.status === 401 || refusal.status === 413 ? [200, 900, 16 * KIB] : [200]).map((kib) => ({
            ...refusal,
            ...ending,
            kib,
            framing,
          })),
      ),
    ),
  ),
)(
  "$status arrives after a body of $kib KiB that nobody wanted (HTTP/$version, $connection, $framing)",
  async ({ status, method, path, lines, version, connection, kib, framing }) => {
    const customer = await service.customer();
    const known: Record<string, string> = {
      admin: await service.token(),
      viewer: await service.token({ role: "viewer" }),
      tag: customer.etag,
    };
    const head = [
      `${method} ${path ?? customer.path} HTTP/${version}`,
      "Host: localhost",
      ...connection,
      ...lines.map((line) => line.replace(/\{(\w+)\}/, (_, name: string) => known[name] ?? "")),
    ];
    expect(await sendThenRead(head, Buffer.alloc(kib * KIB, "a"), framing)).toBe(status);
  },
);

test("refused requests with bodies may be pipelined: each is answered, in order", async () => {
  const body = "a".repeat(60 * KIB);
  const post = `POST /customers HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const last = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  const text = await rawExchange(service.port, post + post + post + last);
  expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
    "401",
    "401",
    "401",
    "200",
  ]);
});

test("an unwanted body without end is read no further than the limit", async () => {
  let pulls = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      pulls += 1;
      controller.enqueue(new Uint8Array(KIB));
    },
  });
  await discardRest(endless.getReader(), { bytesMax: 10 * KIB, msMax: 60_000 });
  expect(pulls).toBeLessThan(16);
});

test("an unwanted body that never comes is waited for no longer than the limit", async () => {
  let isCancelled = false;
  const silent = new ReadableStream<Uint8Array>({
    cancel: () => {
      isCancelled = true;
    },
  });
  await discardRest(silent.getReader(), { bytesMax: KIB, msMax: 1 });
  expect(isCancelled).toBe(true);
});

test.each([
  ["leaves", "Content-Length: 100000", ""],
  ["breaks its chunks", "Transfer-Encoding: chunked", "no length\r\n"],
])(
  "a sender that %s while its unwanted body is read is no failure of the service",
  async (_, framing, rest) => {
    service.logLines.length = 0;
    const head = `POST /customers HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n${framing}\r\n\r\n`;
    const socket = connect(service.port, "127.0.0.1", () => socket.write(head));
    socket.on("error", () => {});
    // "100 Continue" says that the service waits for the body.
    await once(socket, "data");
    if (rest === "") socket.resetAndDestroy();
    else socket.write(rest);
    if (!socket.closed) await once(socket, "close");
    while (!service.logLines.some(({ method }) => method === "POST")) await new Promise(setImmediate);
    expect(service.logLines).toMatchObject([{ method: "POST", status: 401, code: "unauthenticated" }]);
  },
);

// Bun never ends the body of a CONNECT and answers nothing after it: waiting for either takes ten seconds or more.
test.each([
  "Content-Length: 3\r\n\r\nabc",
  "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
  "\r\n",
])(
  "a CONNECT is refused without waiting for its body, and its connection is closed: %j",
  async (rest) => {
    const received = await rawExchange(
      service.port,
      `CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n${rest}`,
    );
    const reply = parseRawReply(received);
    expect([reply?.status, reply?.headers.get("connection")]).toEqual([400, "close"]);
  },
  9_000,
);

import { afterAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { TestService } from "../../tests/support/service/test-service.ts";

const service = await TestService.start();
afterAll(() => service.stop());

const FRAMINGS = {
  "a declared length": "Content-Length: 100",
  chunks: "Transfer-Encoding: chunked",
};
const ENDINGS: Readonly<Record<string, (socket: Socket) => unknown>> = {
  ended: (socket) => socket.end(),
  "ended amid it": (socket) => socket.end("5\r\n{"),
  destroyed: (socket) => socket.resetAndDestroy(),
};
const BROKEN = {
  framing: FRAMINGS.chunks,
  ending: "broken",
  end: (socket: Socket) => socket.write("no length\r\n"),
};

test.each(
  ["PUT", "DELETE"].flatMap((method) => [
    ...Object.values(FRAMINGS).flatMap((framing) =>
      Object.entries(ENDINGS).map(([ending, end]) => ({ method, framing, ending, end })),
    ),
    { method, ...BROKEN },
  ]),
)(
  "a connection that is $ending before the body of a $method is whole ($framing) changes nothing, and is not the service's failure",
  async ({ method, framing, end }) => {
    const { path, etag } = await service.customer();
    const lines = [
      `${method} ${path} HTTP/1.1`,
      "Host: localhost",
      `Authorization: Bearer ${await service.token()}`,
      `If-Match: ${etag}`,
      "Content-Type: application/json",
      "Expect: 100-continue",
      framing,
    ];
    service.logLines.length = 0;
    const socket = connect(service.port, "127.0.0.1", () => socket.write(`${lines.join("\r\n")}\r\n\r\n`));
    // "100 Continue" says that the service waits for the body.
    socket.once("data", () => end(socket));
    await new Promise((resolve) => socket.once("close", resolve));
    while (!service.logLines.some((logged) => logged["method"] === method)) await new Promise(setImmediate);
    expect(service.logLines).toMatchObject([{ level: "info", method, status: 400, code: "incomplete-body" }]);
    expect((await service.send("GET", path)).etag).toBe(etag);
  },
);

test.each([
  ["what is no JSON", "no JSON", 204],
  ["none of another type", "", 204],
  ["64 KiB", "x".repeat(65_536), 204],
  ["more than 64 KiB", "x".repeat(65_537), 413],
])("a DELETE whose body is %s answers as its size alone says", async (_, text, status) => {
  for (const isChunked of [false, true]) {
    const { path, etag } = await service.customer();
    // A stream is sent in chunks.
    const body = isChunked ? new Response(text).body : text;
    const headers = {
      authorization: `Bearer ${await service.token()}`,
      "if-match": etag,
      "content-type": "text/plain",
    };
    const reply = await fetch(`${service.url}${path}`, { method: "DELETE", body, headers });
    expect(reply.status).toBe(status);
    expect((await service.send("GET", path)).status).toBe(status === 204 ? 404 : 200);
  }
});

test.each([
  ["PUT", '{"name":"Ada","email":"ada@example.com"}'],
  ["PATCH", "{}"],
  ["DELETE", "{}"],
  ["DELETE", ""],
])("a %s whose body (%j) announces a trailer is refused and changes nothing", async (method, body) => {
  const { path, etag } = await service.customer();
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: localhost",
    `Authorization: Bearer ${await service.token()}`,
    `If-Match: ${etag}`,
    "Content-Type: application/json",
    "Transfer-Encoding: chunked",
    "Trailer: X-Sum",
    "",
    ...(body === "" ? [] : [body.length.toString(16), body]),
    "0",
    "X-Sum: abc",
    "",
    "",
  ];
  let received = "";
  const socket = connect(service.port, "127.0.0.1", () => socket.write(lines.join("\r\n")));
  socket.on("data", (data) => {
    received += data;
  });
  await new Promise((resolve) => socket.once("close", resolve));
  expect(received).toStartWith("HTTP/1.1 400");
  expect((await service.send("GET", path)).etag).toBe(etag);
});

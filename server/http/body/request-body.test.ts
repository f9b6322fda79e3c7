import { afterAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { TestService } from "../../tests/support/test-service.ts";

const service = await TestService.start();
afterAll(() => service.stop());

const FRAMINGS = {
  "a declared length": "Content-Length: 100",
  chunks: "Transfer-Encoding: chunked",
};
const ENDINGS: Readonly<Record<string, (socket: Socket) => unknown>> = {
  ended: (socket) => socket.end(),
  destroyed: (socket) => socket.resetAndDestroy(),
};

test.each(
  Object.entries(FRAMINGS).flatMap(([framing, line]) =>
    Object.entries(ENDINGS).map(([ending, end]) => ({ framing, line, ending, end })),
  ),
)(
  "a connection that is $ending before a body in $framing is whole changes nothing, and is not the service's failure",
  async ({ line, end }) => {
    const { path, etag } = await service.customer();
    const lines = [
      `PUT ${path} HTTP/1.1`,
      "Host: localhost",
      `Authorization: Bearer ${await service.token()}`,
      `If-Match: ${etag}`,
      "Content-Type: application/json",
      "Expect: 100-continue",
      line,
    ];
    service.logLines.length = 0;
    const socket = connect(service.port, "127.0.0.1", () => socket.write(`${lines.join("\r\n")}\r\n\r\n`));
    // "100 Continue" says that the service waits for the body.
    socket.once("data", () => end(socket));
    await new Promise((resolve) => socket.once("close", resolve));
    while (!service.logLines.some(({ method }) => method === "PUT")) await new Promise(setImmediate);
    expect(service.logLines).toMatchObject([
      { level: "info", method: "PUT", status: 400, code: "incomplete-body" },
    ]);
    expect((await service.send("GET", path)).etag).toBe(etag);
  },
);

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

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { parseRawReply, rawExchange } from "../tests/support/http/raw-exchange.ts";
import { TestService } from "../tests/support/service/test-service.ts";

const CLIENT_GONE = "the client closed its connection before its request was read; nothing was done";
const FORWARDED = "for=203.0.113.7;proto=https";
let trusting: TestService;
let byDefault: TestService;
beforeAll(async () => {
  trusting = await TestService.start({ trustedProxies: ["127.0.0.1"] });
  byDefault = await TestService.start();
});
afterAll(async () => {
  await trusting.stop();
  await byDefault.stop();
});

describe("the address in the log", () => {
  const logged = async (service: TestService, ...lines: string[]) => {
    const head = ["GET /problems HTTP/1.1", "Host: a.example", "Connection: close", ...lines];
    await rawExchange(service.port, `${head.join("\r\n")}\r\n\r\n`);
    return service.logLines.at(-1)?.["address"];
  };

  test("is the connection's by default, whatever the headers say", async () => {
    expect(await logged(byDefault, `Forwarded: ${FORWARDED}`, "X-Forwarded-For: 203.0.113.7")).toBe(
      "127.0.0.1",
    );
  });

  test("is what a trusted proxy names, in whichever header", async () => {
    expect(await logged(trusting)).toBe("127.0.0.1");
    expect(await logged(trusting, `Forwarded: ${FORWARDED}`)).toBe("203.0.113.7");
    expect(await logged(trusting, "X-Forwarded-For: 1.1.1.1, 203.0.113.7")).toBe("203.0.113.7");
  });

  test("is read from all lines of a header as from one", async () => {
    const lines = ["X-Forwarded-For: 1.1.1.1", "x-forwarded-for: 203.0.113.7", "X-Forwarded-For: 127.0.0.1"];
    expect(await logged(trusting, ...lines)).toBe("203.0.113.7");
    expect(await logged(trusting, 'Forwarded: for="', "Forwarded: for=203.0.113.7")).toBe("203.0.113.7");
  });

  test("is the proxy's where the header has no address, and never a text that could forge a line", async () => {
    expect(await logged(trusting, 'X-Forwarded-For: fe80::1%","level":"fatal')).toBe("127.0.0.1");
    expect(await logged(trusting, 'Forwarded: for="_\\",\\"level\\":\\"fatal"')).toBe("127.0.0.1");
  });
});

describe("a request whose client is gone before the service reads it", () => {
  /** Sends a request and resets the connection at once. @returns the line of the log that names it */
  const sendAndReset = async (service: TestService, method: string, path: string, ...lines: string[]) => {
    const requestId = randomUUID();
    const authorization = `Authorization: Bearer ${await service.token()}`;
    const head = [
      `${method} ${path} HTTP/1.1`,
      "Host: a",
      authorization,
      `X-Request-Id: ${requestId}`,
      ...lines,
    ];
    const socket = connect(service.port, "127.0.0.1");
    await once(socket, "connect");
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    socket.resetAndDestroy();
    return await logged(service, requestId);
  };
  /** Waits for the line of the log that names the request, for at most 3 s. */
  const logged = async (service: TestService, requestId: string) => {
    const givesUpAt = performance.now() + 3_000;
    while (performance.now() < givesUpAt) {
      const line = service.logLines.find((found) => found["requestId"] === requestId);
      if (line !== undefined) return line;
      await new Promise((next) => setImmediate(next));
    }
    throw new Error(`no line of the log names request ${requestId}`);
  };

  test.each(["byDefault", "trusting"])(
    "changes nothing, and one line of the log says so (%s)",
    async (which) => {
      const service = which === "byDefault" ? byDefault : trusting;
      const { path, etag } = await service.customer();
      const line = await sendAndReset(
        service,
        "DELETE",
        path,
        `If-Match: ${etag}`,
        "X-Forwarded-For: 203.0.113.7",
      );
      expect(line).toMatchObject({ method: "DELETE", route: "/customers/{id}", msg: CLIENT_GONE });
      expect((await service.send("GET", path)).etag).toBe(etag);
      expect(service.logLines.filter((logged) => logged["address"] === "")).toEqual([]);
    },
  );

  test("is logged with its address where it leaves while its body is awaited", async () => {
    const { path, etag } = await byDefault.customer();
    const requestId = randomUUID();
    const socket = connect(byDefault.port, "127.0.0.1");
    const head = [`PUT ${path} HTTP/1.1`, "Host: a", `Authorization: Bearer ${await byDefault.token()}`];
    const body = ["Content-Type: application/json", "Content-Length: 50", "Expect: 100-continue"];
    const lines = [...head, `X-Request-Id: ${requestId}`, `If-Match: ${etag}`, ...body];
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    await once(socket, "data");
    socket.resetAndDestroy();
    expect(await logged(byDefault, requestId)).toMatchObject({
      code: "incomplete-body",
      address: "127.0.0.1",
    });
  });

  // Of a page that no storage is asked for: only such a reply is sent in the turn of its request on either engine.
  test("is not taken for one of a client that has only ended its side of the connection", async () => {
    const socket = connect({ port: byDefault.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.end("GET /problems HTTP/1.1\r\nHost: a\r\n\r\n");
    const [reply] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    expect(parseRawReply(reply.toString("latin1"))?.status).toBe(200);
    expect(byDefault.logLines.at(-1)).toMatchObject({ status: 200, address: "127.0.0.1" });
  });
});

test("the last use of a token is noted with the network of the client", async () => {
  const caller = { client: "behind-a-proxy" };
  await trusting.send("GET", "/customers", { caller, headers: { "x-forwarded-for": "203.0.113.7" } });
  let from: string | null | undefined = null;
  while (from === null) {
    await new Promise(setImmediate);
    const tokens = await trusting.storage.tokens.list();
    from = tokens.find(({ client }) => client === caller.client)?.lastUsedFrom;
  }
  expect(from).toBe("203.0.113.0/24");
});

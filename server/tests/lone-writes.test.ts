import { afterAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { SqliteStorage } from "../storage/sqlite/sqlite-storage.ts";
import { rawExchange } from "./support/http/raw-exchange.ts";
import { temporaryDirectory } from "./support/service/server-process.ts";
import { TestService } from "./support/service/test-service.ts";

// Bun drops an answer that is still to come when more bytes, or the end, of a connection
// arrive. So a write on a quiet service is answered in the turn that brought it.
const directory = temporaryDirectory();
const service = await TestService.start({
  // On a disk that other tests keep busy, measured commits would be too slow for this thread.
  storage: SqliteStorage.open(`${directory.path}/customers.db`, { chooseWhere: () => "inline" }),
});
afterAll(async () => {
  await service.stop();
  directory.remove();
});

const statuses = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));

async function request(method: string, path: string, ifMatch: string, body: string): Promise<string> {
  const token = await service.token();
  const length = body === "" ? "" : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nIf-Match: ${ifMatch}\r\n${length}\r\n${body}`;
}

/** Sends everything and half-closes: nothing more will come, but an answer is waited for. */
function halfClosed(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket: Socket = connect({ port: service.port, host: "127.0.0.1", allowHalfOpen: true }, () =>
      socket.end(text),
    );
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
    });
    socket.on("end", () => resolve(received));
    socket.on("error", reject);
  });
}

const NAMED = '{"name":"B","email":"b@example.com"}';

describe("a client that half-closes its connection after a request learns what became of it", () => {
  test.each([
    ["PUT", NAMED, 204],
    ["PATCH", '{"name":"B"}', 204],
    ["DELETE", "", 204],
  ])("%s", async (method, body, status) => {
    for (let round = 0; round < 10; round += 1) {
      const { path, etag } = await service.customer();
      expect(statuses(await halfClosed(await request(method, path, etag, body)))).toEqual([status]);
      const stale = method === "DELETE" ? 404 : 412;
      expect(statuses(await halfClosed(await request(method, path, etag, body)))).toEqual([stale]);
    }
  });
});

describe("writes that are pipelined on one connection are answered each, in order", () => {
  test("the first wins, the second is stale", async () => {
    for (let round = 0; round < 10; round += 1) {
      const { path, etag } = await service.customer();
      const put = await request("PUT", path, etag, NAMED);
      const last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
      expect(statuses(await rawExchange(service.port, put + put + last))).toEqual([204, 412, 200]);
    }
  });

  test("also deletions, which have no body", async () => {
    const [first, second] = [await service.customer(), await service.customer()];
    const deletions = await Promise.all(
      [first, second, first].map(({ path, etag }) => request("DELETE", path, etag, "")),
    );
    const last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const replies = await rawExchange(service.port, deletions.join("") + last);
    expect(statuses(replies)).toEqual([204, 204, 404, 200]);
  });

  test.each([
    ["PUT", NAMED, 8],
    ["GET", "", 20],
  ])("also where each %s asks who changed the customer", async (method, body, times) => {
    const { path, etag } = await service.customer();
    await service.send("PATCH", path, { body: { name: "Other" }, headers: { "if-match": etag } });
    const plain = await request(method, path, etag, body);
    const asking = plain.replace("If-Match", "Prefer: changes\r\nIf-Match");
    const last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const replies = await rawExchange(service.port, asking.repeat(times) + last);
    expect(statuses(replies)).toEqual([...Array(times).fill(412), 200]);
    expect(replies).toMatch(/preference-applied: changes/i);
  });

  test("an empty line after a body, which a server should ignore, takes no answer away", async () => {
    const { path, etag } = await service.customer();
    const text = `${await request("PUT", path, etag, NAMED)}\r\n`;
    expect(statuses(await rawExchange(service.port, text))[0]).toBe(204);
  });
});

describe("a body that takes its time", () => {
  test("is refused when its token was revoked meanwhile, and nothing is written", async () => {
    const { path, etag } = await service.customer();
    const caller = { client: "leaver", role: "editor", tenant: "acme" };
    const { token } = await service.storage.tokens.create(caller, Date.now(), null);
    const head = `PUT ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nIf-Match: ${etag}\r\nContent-Type: application/json\r\nContent-Length: ${NAMED.length}\r\nConnection: close\r\n\r\n`;
    const received = await new Promise<string>((resolve, reject) => {
      let text = "";
      const socket = connect(service.port, "127.0.0.1", async () => {
        socket.write(head);
        // A request of the same client on another connection shows that the first one's headers are in.
        await service.send("GET", path);
        await service.storage.tokens.revoke(token, Date.now());
        socket.write(NAMED);
      });
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1");
      });
      socket.on("close", () => resolve(text));
      socket.on("error", reject);
    });
    expect(statuses(received)).toEqual([401]);
    expect((await service.send("GET", path)).etag).toBe(etag);
  });
});

import { afterEach, beforeEach, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { RawConnection, rawRequest } from "./support/http/raw-connection.ts";
import { type ServerProcess, Workplace } from "./support/service/server-process.ts";

const CONNECTIONS = 2_000;

let place: Workplace;
let service: ServerProcess;
const sockets: Socket[] = [];
beforeEach(async () => {
  place = new Workplace();
  service = await place.start();
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await place.clear();
});

/** Opens a connection and sends the beginning of something, or nothing. */
function open(beginning: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(service.port, "127.0.0.1", () => {
      socket.off("error", reject);
      // The service may close what takes too long.
      socket.on("error", () => {});
      if (beginning === "") resolve(socket);
      else socket.write(beginning, () => resolve(socket));
    });
    socket.once("error", reject);
    sockets.push(socket);
  });
}

test(`${CONNECTIONS} connections that are idle, or drip a request, keep nobody from being served`, async () => {
  const token = place.adminToken;
  const list = await service.send(token, "GET", "/customers?limit=1");
  const [{ etag, customer }] = list.json.items;
  const path = `/customers/${customer.id}`;
  const authorization = `Authorization: Bearer ${token}\r\n`;
  const beginnings = [
    "",
    "GET /cus",
    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    `PUT ${path} HTTP/1.1\r\nHost: localhost\r\n${authorization}If-Match: ${etag}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"name":`,
    `PATCH ${path} HTTP/1.1\r\nHost: localhost\r\n${authorization}If-Match: ${etag}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"na`,
  ];
  for (let opened = 0; opened < CONNECTIONS; opened += 100) {
    await Promise.all(
      Array.from({ length: 100 }, (_, n) => open(beginnings[(opened + n) % beginnings.length] ?? "")),
    );
  }
  // One more byte each, as they drip.
  for (const socket of sockets) if (socket.writable) socket.write("x");

  const read = await service.send(token, "GET", path);
  expect([read.status, read.etag]).toEqual([200, etag]);
  const body = { name: "In time", email: "in@time.example" };
  const write = await service.send(token, "PUT", path, { body, headers: { "if-match": etag } });
  expect(write.status).toBe(204);
  expect((await service.send(token, "GET", path)).json.name).toBe("In time");
});

test("headers past the limit of Bun are refused at once, bare, and the next request is served", async () => {
  const socket = await open(
    `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`,
  );
  const text = await new Promise<string>((resolve) => {
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
    });
    socket.on("close", () => resolve(received));
  });
  expect(text).toStartWith("HTTP/1.1 431 ");
  expect((await service.send(null, "GET", "/healthz")).status).toBe(200);
});

test("a body must be whole within IDLE_TIMEOUT, also where it never stalls", async () => {
  const impatient = await place.start({ env: { IDLE_TIMEOUT: "1" } });
  const { items } = (await impatient.send(place.adminToken, "GET", "/customers?limit=1")).json;
  const [{ etag, customer }] = items;
  const connection = await RawConnection.open(impatient.port);
  const lines = [`Authorization: Bearer ${place.adminToken}`, `If-Match: ${etag}`];
  const type = "Content-Type: application/json";
  const length = "Content-Length: 60000";
  const reply = connection.send(rawRequest("PUT", `/customers/${customer.id}`, [...lines, type, length]));
  // At this pace the whole takes ten minutes.
  const drip = setInterval(() => connection.write(Buffer.from(" ")), 10);
  expect(await reply).toBeNull();
  clearInterval(drip);
  expect((await impatient.send(place.adminToken, "GET", `/customers/${customer.id}`)).etag).toBe(etag);
});

test("a connection that is idle for IDLE_TIMEOUT is closed by the service", async () => {
  const impatient = await place.start({ env: { IDLE_TIMEOUT: "1" } });
  const connection = await RawConnection.open(impatient.port);
  expect((await connection.send(rawRequest("GET", "/healthz", [])))?.status).toBe(200);
  // Nothing is sent; only the service can end the wait.
  expect(await connection.next()).toBeNull();
});

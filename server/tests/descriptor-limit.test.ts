import { afterEach, beforeEach, expect, test } from "bun:test";
import { RawConnection, rawRequest } from "./support/raw-connection.ts";
import { Workplace } from "./support/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

const LIMIT = 100;

test("near the limit of file descriptors connections end after each reply, nobody is locked out, and the log names the limit", async () => {
  const service = await place.start({ services: 1, descriptors: LIMIT });
  const authorization = `Authorization: Bearer ${place.adminToken}`;
  const read = rawRequest("GET", "/customers?limit=1", [authorization]);
  const first = await RawConnection.open(service.port);
  expect((await first.send(read))?.headers.get("connection")).toBeUndefined();

  // More clients than descriptors; each keeps its connection and asks on it again and again.
  let isNoticed = false;
  let answers = 0;
  const clients = Array.from({ length: LIMIT + 20 }, async () => {
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
  expect(answers).toBeGreaterThanOrEqual((LIMIT + 20) * 3);
  const line = await service.stderr.line((text) => text.includes("file descriptors run out"));
  expect(JSON.parse(line ?? "{}")).toMatchObject({ level: "warn", max: LIMIT });

  const body = { name: "Ada", email: "ada@example.com" };
  expect((await service.send(place.adminToken, "POST", "/customers", { body })).status).toBe(201);
  first.close();
});

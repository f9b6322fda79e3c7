import { afterAll, expect, test } from "bun:test";
import { TestService } from "./testing/test-service.ts";

const service = new TestService();
afterAll(() => service.stop());

test("a customer that was made is read back with the entity-tag that its creation answered", async () => {
  const { path, etag } = await service.customer();
  const reply = await service.send("GET", path);
  expect(reply.status).toBe(200);
  expect(reply.etag).toBe(etag);
});

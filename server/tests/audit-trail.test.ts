import { afterAll, beforeAll, expect, test } from "bun:test";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import type { ChainedEntry } from "../domain/audit/audit-chain.ts";
import { parseEntityTag } from "../domain/entity-tag.ts";
import { sealBacklog } from "../storage/audit/sealing-timer.ts";
import { TestService } from "./support/service/test-service.ts";

const ROLES = BUILT_IN_POLICY.slice(0, BUILT_IN_POLICY.indexOf("[enforcement]"));
let service: TestService;
beforeAll(async () => {
  const policy = `${ROLES}[enforcement]\nmode = "observe"\nuntil = 2099-01-01\nenforced_methods = ["DELETE"]\n`;
  service = await TestService.start({ policy });
});
afterAll(() => service.stop());

async function rowsOf(id: string): Promise<readonly ChainedEntry[]> {
  await sealBacklog(service.storage.audit);
  const [tenant = ""] = await service.storage.audit.tenants();
  const rows = await service.storage.audit.rows({ tenant, after: 0, limit: 1_000 });
  return rows.filter(({ customerId }) => customerId === id);
}

test("each accepted request has a row with its request id, client, token and tags; a refused one has none", async () => {
  const body = { name: "Ada", email: "ada@example.com" };
  const send = (method: string, path: string, requestId: string, more: object = {}, tag?: string) =>
    service.send(method, path, {
      headers: { "x-request-id": requestId, ...(tag === undefined ? {} : { "if-match": tag }) },
      ...more,
    });
  const made = await send("POST", "/customers", "made", { body });
  const { id } = made.json;
  const path = `/customers/${id}`;
  const replaced = await send("PUT", path, "replaced", { body: { ...body, name: "B" } }, made.etag);
  expect((await send("PUT", path, "stale", { body }, made.etag)).status).toBe(412);
  const patched = await send("PATCH", path, "patched", { body: { status: "closed" } });
  expect((await send("PATCH", path, "bad", { body: { status: "open" } })).status).toBe(422);
  expect((await send("DELETE", path, "no-if-match")).status).toBe(428);
  expect((await send("DELETE", path, "removed", {}, patched.etag)).status).toBe(204);
  const version = ({ etag }: { etag: string }) => parseEntityTag(etag);
  const rows = await rowsOf(id);
  expect(
    rows.map((row) => [
      ...[row.requestId, row.operation, row.versionBefore, row.versionAfter],
      ...[row.changed.join(), row.isWithoutIfMatch],
    ]),
  ).toEqual([
    ["made", "create", null, version(made), "name,email,status", false],
    ["replaced", "replace", version(made), version(replaced), "name", false],
    ["patched", "patch", version(replaced), version(patched), "status", true],
    ["removed", "delete", version(patched), null, "", false],
  ]);
  const [token] = await service.storage.tokens.list();
  for (const row of rows) {
    expect([row.client, row.tokenPrefix]).toEqual([token?.client ?? "", token?.prefix ?? ""]);
  }
});

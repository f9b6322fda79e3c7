import { afterAll, describe, expect, test } from "bun:test";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import { TestService } from "../tests/support/service/test-service.ts";

const service = await TestService.start({
  policy: `[roles.auditor]\nread = ["id", "name", "status"]\noperations = ["history"]\n${BUILT_IN_POLICY}`,
});
afterAll(() => service.stop());

const AUDITOR = { caller: { role: "auditor" } };
const NOBODY = "01890000-0000-7000-8000-000000000000";

/** A customer that was created, replaced, patched in its email, and removed. */
async function written() {
  const made = await service.customer();
  const send = (method: string, requestId: string, etag: string, body?: object) =>
    service.send(method, made.path, { body, headers: { "if-match": etag, "x-request-id": requestId } });
  const replaced = await send("PUT", "replaced", made.etag, { name: "Ada King", email: "king@example.com" });
  const patched = await send("PATCH", "patched", replaced.etag, { email: "ada@other.example" });
  expect((await send("DELETE", "removed", patched.etag)).status).toBe(204);
  return { ...made, replaced, patched };
}

test("names who wrote a customer, the newest write first, with the tags before and after, also once it is gone", async () => {
  const { path, etag, replaced, patched } = await written();
  const reply = await service.send("GET", `${path}/history`);
  expect(reply.status).toBe(200);
  expect(reply.json.next).toBeNull();
  expect(reply.headers.get("etag")).toBeNull();
  expect(reply.headers.get("cache-control")).toBe("private, no-cache, no-transform");
  const [token] = (await service.storage.tokens.list()).filter(({ role }) => role === "admin");
  const shown = {
    client: token?.client,
    withoutIfMatch: false,
    values: null,
    time: expect.stringMatching(/^20\d\d-.*Z$/),
  };
  const removed = {
    operation: "delete",
    changed: [],
    requestId: "removed",
    etag: null,
    previousEtag: patched.etag,
  };
  const second = { operation: "patch", changed: ["email"], requestId: "patched", etag: patched.etag };
  const first = {
    operation: "replace",
    changed: ["name", "email"],
    requestId: "replaced",
    etag: replaced.etag,
  };
  expect(reply.json.items).toEqual([
    { ...shown, ...removed },
    { ...shown, ...second, previousEtag: replaced.etag },
    { ...shown, ...first, previousEtag: etag },
    {
      ...{
        ...shown,
        operation: "create",
        changed: ["name", "email", "status"],
        requestId: expect.any(String),
      },
      ...{ etag, previousEtag: null },
    },
  ]);
});

test("does not name a field that the caller may not read: such a write looks like one of the same values", async () => {
  const { path } = await written();
  const { json } = await service.send("GET", `${path}/history`, AUDITOR);
  expect(json.items.map(({ changed }: { changed: string[] }) => changed)).toEqual([
    [],
    [],
    ["name"],
    ["name", "status"],
  ]);
});

test("shows values where the policy keeps them, from then on, and only of fields that the caller may read", async () => {
  const policy = `[roles.auditor]\nread = ["id", "name", "status"]\noperations = ["history"]\n${BUILT_IN_POLICY}`;
  const keeping = await TestService.start({ policy });
  const { path, etag } = await keeping.customer();
  keeping.reload(`${policy}[audit]\nvalues = true\n`);
  const send = (method: string, tag: string, body?: object) =>
    keeping.send(method, path, { body, headers: { "if-match": tag } });
  const replaced = await send("PUT", etag, { name: "Eve", email: "eve@example.com" });
  const closed = await send("PATCH", replaced.etag, { status: "closed" });
  const sameValue = await send("PATCH", closed.etag, { status: "closed" });
  const patched = await send("PATCH", sameValue.etag, { email: "eve@example.org" });
  keeping.reload(policy);
  const last = await send("PATCH", patched.etag, { status: "active" });
  expect(last.status).toBe(204);
  const values = async (role: string) => {
    const { json } = await keeping.send("GET", `${path}/history`, { caller: { role } });
    return json.items.map((item: { values: unknown }) => item.values);
  };
  const name = { before: "Ada", after: "Eve" };
  const email = { before: "ada@example.com", after: "eve@example.com" };
  const status = { before: "active", after: "closed" };
  const moved = { email: { before: "eve@example.com", after: "eve@example.org" } };
  expect(await values("admin")).toEqual([null, moved, null, { status }, { name, email }, null]);
  // A write of a hidden field alone looks like one of the same values.
  expect(await values("auditor")).toEqual([null, null, null, { status }, { name }, null]);
  await keeping.stop();
});

test("comes in pages, whose cursors are good for their customer alone", async () => {
  const [one, other] = [await written(), await written()];
  const first = await service.send("GET", `${one.path}/history?limit=3`);
  expect(first.json.items).toHaveLength(3);
  const next = `<${one.path}/history?limit=3&cursor=${first.json.next}>; rel="next"`;
  expect(first.headers.get("link")).toBe(next);
  const second = await service.send("GET", `${one.path}/history?cursor=${first.json.next}`);
  expect(second.json.items.map(({ operation }: { operation: string }) => operation)).toEqual(["create"]);
  expect([second.json.next, second.headers.get("link")]).toEqual([null, null]);
  const list = await service.send("GET", "/customers?limit=1");
  const elsewhere = [
    `${other.path}/history?cursor=${first.json.next}`,
    `/customers?cursor=${first.json.next}`,
    ...(list.json.next === null ? [] : [`${one.path}/history?cursor=${list.json.next}`]),
  ];
  for (const path of elsewhere) {
    const refused = await service.send("GET", path);
    expect([path, refused.status, refused.json.code]).toEqual([path, 400, "invalid-parameter"]);
  }
});

describe("is refused", () => {
  test.each([
    ["a role without the operation", `/customers/${NOBODY}/history`, { caller: { role: "viewer" } }, 403],
    ["an id that the tenant never had", `/customers/${NOBODY}/history`, {}, 404],
    ["what is no id", "/customers/x/history", {}, 404],
    ["fields", `/customers/${NOBODY}/history?fields=name`, {}, 400],
    ["a limit out of range", `/customers/${NOBODY}/history?limit=501`, {}, 400],
  ])("%s", async (_, path, more, status) => {
    expect((await service.send("GET", path, more)).status).toBe(status);
  });

  test("another tenant's customer, as one that never was", async () => {
    const { path } = await written();
    const reply = await service.send("GET", `${path}/history`, {
      caller: { role: "admin", tenant: "other" },
    });
    expect([reply.status, reply.json.code]).toEqual([404, "customer-not-found"]);
  });
});

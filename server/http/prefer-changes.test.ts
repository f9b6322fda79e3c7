/** `Prefer: changes`: a 412 says who changed the customer since the version in If-Match. */
import { afterAll, describe, expect, test } from "bun:test";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import type { AuditStore, HistoryQuery } from "../storage/audit/audit-store.ts";
import { StoreUnavailable } from "../storage/customers/customer-store.ts";
import type { Storage } from "../storage/storage.ts";
import { ANY_WAY } from "../tests/support/database/storage-ways.ts";
import { TestService } from "../tests/support/service/test-service.ts";

const service = await TestService.start({
  policy: `audit.values = true
[roles.auditor]
read = ["id", "name", "status"]
operations = ["get", "replace", "patch", "delete", "history"]
${BUILT_IN_POLICY}`,
});
afterAll(() => service.stop());

const CHANGES = { prefer: "changes" };
const ADA = { name: "Ada King", email: "king@example.com" };

type Customer = { readonly path: string; readonly etag: string };

/** A patch by another client, which must be accepted. */
async function patched({ path, etag }: Customer, body: object, client = "billing-sync"): Promise<Customer> {
  const reply = await service.send("PATCH", path, {
    body,
    headers: { "if-match": etag, "x-request-id": `by-${client}` },
    caller: { client },
  });
  expect(reply.status).toBe(204);
  return { path, etag: reply.etag };
}

type Way = { headers?: object; body?: object; role?: string; method?: string; on?: TestService };

/** A write of a version that is no longer the current one. */
async function refused({ path }: Customer, etag: string, { on = service, ...way }: Way = {}) {
  const { headers = CHANGES, body = ADA, role = "admin", method = "PUT" } = way;
  const isRead = method === "GET" || method === "DELETE";
  const reply = await on.send(method, path, {
    headers: { "if-match": etag, ...headers },
    body: isRead ? undefined : body,
    caller: { role },
  });
  expect([reply.status, reply.json.code]).toEqual([412, "precondition-failed"]);
  return reply;
}

test.each(["PUT", "PATCH", "DELETE", "GET"])(
  "%s: names each write since the version in If-Match as the history does, but not its values",
  async (method) => {
    const before = await patched(await service.customer(), { status: "suspended" });
    const email = await patched(before, { email: "ada@billing.example" });
    const now = await patched(email, { name: "Ada Byron", status: "closed" }, "helpdesk");
    const reply = await refused(before, before.etag, { method });
    expect([reply.headers.get("preference-applied"), reply.etag]).toEqual(["changes", now.etag]);
    const history = await service.send("GET", `${before.path}/history`);
    const named = history.json.items.slice(0, 2).map(({ values, ...change }: { values: object }) => {
      expect(values).toBeObject();
      return change;
    });
    expect(reply.json.changes).toEqual(named);
    expect(reply.json).toMatchObject({
      diagnosis: "stale",
      moreChanges: false,
      changes: [
        { client: "helpdesk", changed: ["name", "status"], requestId: "by-helpdesk", etag: now.etag },
        { client: "billing-sync", changed: ["email"], previousEtag: before.etag, operation: "patch" },
      ],
    });
  },
);

test.each<[string, object]>([
  ["whose body is refused", { name: "" }],
  ["that the customer already holds", { name: "Ada Byron", email: "ada@example.com" }],
])("also for a write %s", async (_, body) => {
  const made = await service.customer();
  await patched(made, { name: "Ada Byron", email: "ada@example.com" });
  const { json } = await refused(made, made.etag, { body });
  expect(json.changes).toMatchObject([{ changed: ["name"], client: "billing-sync" }]);
});

test("does not name a field that the caller may not read: such a write looks like one of the same values", async () => {
  const made = await service.customer();
  await patched(await patched(made, { email: "hidden@example.com" }), { name: "Seen", email: "x@y.example" });
  const { json } = await refused(made, made.etag, { role: "auditor" });
  expect(json.changes.map(({ changed }: { changed: string[] }) => changed)).toEqual([["name"], []]);
});

test("lists the newest 20, and says that there are more", async () => {
  const made = await service.customer();
  let now: Customer = made;
  for (let write = 1; write <= 21; write += 1) now = await patched(now, { name: `Ada ${write}` });
  const { json } = await refused(made, made.etag);
  expect([json.changes.length, json.moreChanges, json.changes[0].etag]).toEqual([20, true, now.etag]);
  const second = json.changes[19].previousEtag;
  expect(await refused(made, second).then(({ json }) => [json.changes.length, json.moreChanges])).toEqual([
    20,
    false,
  ]);
});

type Ask = AuditStore["history"];

/** The same storage, but for one thing that its audit trail is asked. */
function withHistory(storage: Storage, history: (query: HistoryQuery, ask: Ask) => ReturnType<Ask>): Storage {
  const ask: Ask = (query) => storage.audit.history(query);
  const audit = { history: (query: HistoryQuery) => history(query, ask) };
  return new Proxy(storage, {
    get(_, name) {
      if (name === "audit") return audit;
      const value: unknown = Reflect.get(storage, name, storage);
      return typeof value === "function" ? value.bind(storage) : value;
    },
  });
}

describe("names nothing, and the 412 is as without the preference", () => {
  const stale = { body: { name: "Ada", email: "ada@example.com" } };

  /** The 412 to this tag with and without the preference. */
  async function expectSame(customer: Customer, etag: string, way: Way): Promise<void> {
    const plain = await refused(customer, etag, { ...way, headers: {} });
    const asked = await refused(customer, etag, way);
    expect({ ...asked.json, instance: "" }).toEqual({ ...plain.json, instance: "" });
    expect(asked.json.changes).toBeUndefined();
    expect(asked.headers.get("preference-applied")).toBeNull();
    expect(asked.etag).toBe(plain.etag);
  }

  test("for a role without the operation history", async () => {
    const made = await service.customer();
    await patched(made, { name: "Other" });
    await expectSame(made, made.etag, { ...stale, role: "editor" });
  });

  test("for tags that name no former version of this customer", async () => {
    const [made, other] = [await service.customer(), await service.customer()];
    const now = await patched(made, { name: "Other" });
    await patched(other, { name: "Other" });
    const opaque = made.etag.slice(1, -1);
    const tags = [
      ...['"AAAAAAAAAAAAAAAA"', other.etag, `W/${made.etag}`, opaque, `"${opaque}-gzip"`, "*"],
      `${made.etag}, ${now.etag}`,
    ];
    for (const tag of tags) await expectSame(made, tag, stale);
  });

  test("where If-None-Match is what fails", async () => {
    const made = await service.customer();
    const headers = { ...CHANGES, "if-none-match": "*" };
    expect((await refused(made, made.etag, { headers })).json.changes).toBeUndefined();
  });

  test("where the version is longer ago than 100 changes", async () => {
    const made = await service.customer();
    let now: Customer = made;
    for (let write = 1; write <= 101; write += 1) now = await patched(now, { name: `Ada ${write}` });
    await expectSame(made, made.etag, stale);
  });

  test.each<[string, () => Promise<never>, number]>([
    ["fails", () => Promise.reject(new StoreUnavailable("the trail is gone")), 60_000],
    ["does not answer in time", () => new Promise<never>(() => {}), 0],
  ])("while the audit trail %s", async (_, history, changesWaitMs) => {
    const on = await TestService.start({
      storage: withHistory(await ANY_WAY.open(crypto.randomUUID()), history),
      changesWaitMs,
    });
    try {
      const made = await on.customer();
      const write = await on.send("PATCH", made.path, {
        body: { name: "Other" },
        headers: { "if-match": made.etag },
      });
      expect(write.status).toBe(204);
      const reply = await refused(made, made.etag, { on });
      expect([reply.json.diagnosis, reply.json.changes, reply.etag]).toEqual([
        "stale",
        undefined,
        write.etag,
      ]);
    } finally {
      await on.stop();
    }
  });
});

test("reads few changes of the trail at first, more where the version is longer ago, and never their values", async () => {
  const limits: number[] = [];
  const withValues = new Set<boolean>();
  const storage = withHistory(await ANY_WAY.open(crypto.randomUUID()), (query, ask) => {
    limits.push(query.limit);
    withValues.add(query.withValues);
    return ask(query);
  });
  const on = await TestService.start({ storage });
  try {
    const made = await on.customer();
    let now = made.etag;
    for (let write = 1; write <= 22; write += 1) {
      const headers = { "if-match": now };
      now = (await on.send("PATCH", made.path, { body: { name: `Ada ${write}` }, headers })).etag;
      if (write === 21) expect((await refused(made, made.etag, { on })).json.changes).toHaveLength(20);
    }
    expect(limits).toEqual([21]);
    expect((await refused(made, made.etag, { on })).json).toMatchObject({ moreChanges: true });
    expect(limits).toEqual([21, 21, 79]);
    expect([...withValues]).toEqual([false]);
  } finally {
    await on.stop();
  }
});

test("no refusal waits for others to read the trail: above 8 it names nothing", async () => {
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  const storage = withHistory(await ANY_WAY.open(crypto.randomUUID()), async (query, ask) => {
    asked += 1;
    await gate.promise;
    return ask(query);
  });
  const on = await TestService.start({ storage });
  try {
    const made = await on.customer();
    const headers = { "if-match": made.etag };
    await on.send("PATCH", made.path, { body: { name: "Other" }, headers });
    const replies = Array.from({ length: 20 }, () => refused(made, made.etag, { on }));
    let answered = 0;
    const unnamed = Promise.withResolvers<void>();
    for (const reply of replies) {
      void reply.then(() => {
        answered += 1;
        if (answered === 12) unnamed.resolve();
      });
    }
    await unnamed.promise;
    expect(asked).toBe(8);
    gate.resolve();
    const named = (await Promise.all(replies)).filter(({ json }) => json.changes !== undefined);
    expect(named).toHaveLength(8);
    // Their places are free again.
    expect((await refused(made, made.etag, { on })).json.changes).toHaveLength(1);
  } finally {
    gate.resolve();
    await on.stop();
  }
});

test.each([
  ["changes", true],
  ["return=representation, Changes; x=1", true],
  ["return=minimal,changes", true],
  ["return=changes", false],
  ["change", false],
  ["changes=0", false],
  ['changes="", return=minimal', true],
  ["respond-async; changes", false],
  ['foo="a, changes"', false],
  ['foo="a, b", changes', true],
  ["changes=0, changes", false],
])("Prefer: %s: %p", async (prefer, isAsked) => {
  const made = await service.customer();
  await patched(made, { name: "Other" });
  const { json } = await refused(made, made.etag, { headers: { prefer } });
  expect(json.changes !== undefined).toBe(isAsked);
});

test("an accepted write is as without the preference, and no 412 asks the trail without it", async () => {
  const made = await service.customer();
  const write = await service.send("PUT", made.path, {
    body: ADA,
    headers: { "if-match": made.etag, prefer: "return=representation, changes" },
  });
  expect([write.status, write.headers.get("preference-applied")]).toEqual([200, "return=representation"]);
  expect((await refused(made, made.etag, { headers: {} })).json.changes).toBeUndefined();
});

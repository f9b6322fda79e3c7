import { expect } from "bun:test";
import { CHAIN_START } from "../../../domain/audit/audit-chain.ts";
import { FIELD_NAMES } from "../../../domain/customer/field-registry.ts";
import { NO_BODY, projectionOf } from "../../../domain/projection.ts";
import { countOf } from "../../../domain/rollout/write-count.ts";
import { reportOnChain } from "../../../storage/audit/chain-report.ts";
import { sealBacklog } from "../../../storage/audit/sealing-timer.ts";
import type { IdempotencyKey, WriteTarget } from "../../../storage/customers/customer-store.ts";
import { openStorage } from "../../../storage/database-url/open-storage.ts";
import type { Storage } from "../../../storage/storage.ts";
import { allCounts } from "../../../storage/write-counts/write-count-store.ts";
import { TEST_ORIGIN } from "../service/test-origin.ts";

const NOW = Date.UTC(2026, 0, 1);
const ALL = projectionOf(FIELD_NAMES);
/** What has misled encodings: quotes, backslashes, braces, what is no ASCII, a byte that sorts after others. */
const NAMES = ["Ada", `"O'Neil" \\ {NULL,x}`, "Zoë 😀", "%_\t", "NULL"];
export const TENANTS = ["acme", "Acme", "a-1", "zz"];

/** Keeps values; retention deletes two of them with their rows. */
const KEEPING = { ...TEST_ORIGIN, keepsValues: true };

/** What a client of a database holds: all of it must hold in a copy. */
type MovedDatabase = Awaited<ReturnType<typeof fillDatabase>>;

/** How many rows {@link fillDatabase} makes, by table. */
export const MOVED_ROWS = {
  tenants: 4,
  customers: 21,
  tokens: 4,
  idempotency_keys: 5,
  audit: 26,
  audit_values: 5,
  audit_anchors: 1,
  write_counts: 3,
};

/** Fills an empty database with every kind of row that a service makes. It is closed again. */
export async function fillDatabase(url: string) {
  const storage = await openStorage(url);
  const { customers, tokens, writeCounts } = storage;
  const create = async (tenant: string, name: string, key: IdempotencyKey | null = null) => {
    const made = await customers.create(
      tenant,
      { name, email: "A.B@Example.com", status: "active" },
      NOW,
      key,
      name === NAMES[0] || (name === NAMES[1] && tenant !== "zz") ? KEEPING : TEST_ORIGIN,
    );
    if (made.kind !== "created") throw new Error(made.kind);
    return { tenant, id: made.id, expected: made.rowVersion } satisfies WriteTarget;
  };
  const key = (name: string): IdempotencyKey => ({ tokenId: "t", key: name, digest: "0aff", nowMs: NOW });
  const targets = [];
  for (const tenant of TENANTS) for (const name of NAMES) targets.push(await create(tenant, name));
  // The greatest id of this tenant is of no customer any more.
  const newest = await create("acme", "Newest");
  await customers.remove(newest, key("removed"), TEST_ORIGIN);
  const created = await create("acme", "Keyed", key("created"));
  const replaced = await customers.update(
    created,
    { name: "R", email: "r@example.com" },
    ALL,
    key("replaced"),
    TEST_ORIGIN,
  );
  const [first, second] = targets;
  if (first === undefined || second === undefined || replaced.kind !== "applied") throw new Error("no rows");
  const patched = await customers.update(
    first,
    { status: "suspended" },
    NO_BODY,
    key("patched"),
    TEST_ORIGIN,
  );
  const gone = await create("acme", "Gone");
  await customers.update(gone, { name: "G" }, ALL, key("gone"), TEST_ORIGIN);
  await customers.remove({ ...gone, expected: { anyExcept: [] } }, null, TEST_ORIGIN);
  const holder = { client: "c", role: "editor", tenant: "acme" };
  const valid = (await tokens.create(holder, NOW, NOW + 1_000)).token;
  const revoked = (await tokens.create({ client: "m", role: "metrics", tenant: null }, NOW, null)).token;
  await tokens.revoke(revoked, NOW);
  const series = { tenant: "acme", client: "c", version: "", method: "PUT" } as const;
  await writeCounts.add([
    countOf(series, "with", NOW),
    countOf({ ...series, version: "1.2" }, "allowed", NOW),
  ]);
  await writeCounts.add([countOf({ ...series, method: "DELETE" }, "refused", NOW + 86_400_000)]);
  const counts = await allCounts(writeCounts, "");
  // Retention has deleted the oldest rows of one tenant.
  await trailOf(storage);
  const old = { tenant: "acme", after: 0, limit: 2 };
  const last = (await storage.audit.rows(old)).at(-1);
  if (last === undefined) throw new Error("no rows");
  expect(await storage.audit.moveStart(CHAIN_START, last)).toBe(true);
  const trail = await trailOf(storage);
  const scope = { fields: "name", operations: "get,patch" };
  const scoped = (await tokens.create({ ...holder, scope }, NOW, NOW + 1_000)).token;
  const rotation = await tokens.rotate(scoped, { overlapMs: 500, lifetimeMs: null }, NOW);
  if (rotation.kind !== "rotated") throw new Error(rotation.kind);
  const rotated = rotation.token;
  const rotatedCaller = await tokens.find(rotated, NOW, "192.0.2.7");
  const rows = await Promise.all(
    TENANTS.map((tenant) =>
      customers.page({ tenant, after: null, limit: 500, status: null, email: null }, ALL),
    ),
  );
  const caller = await tokens.find(valid, NOW);
  const { cursorKey } = customers;
  // Closing writes when the token was used.
  await storage.close();
  const closed = await openStorage(url);
  const records = await closed.tokens.list();
  await closed.close();
  return {
    rows,
    counts,
    trail,
    records,
    caller,
    cursorKey,
    second,
    newest,
    created,
    replaced,
    patched,
    gone,
    valid,
    revoked,
    rotated,
    rotatedCaller,
    key,
  };
}

/** Every row of the audit trail, by tenants, each of which must have a whole chain. */
async function trailOf({ audit }: Storage) {
  await sealBacklog(audit);
  const trail = [];
  for (const tenant of await audit.tenants()) {
    expect((await reportOnChain(audit, tenant, null)).fault).toBeNull();
    trail.push(await audit.chainStart(tenant), await audit.rows({ tenant, after: 0, limit: 1_000 }));
  }
  return trail;
}

/** Looks at a copy as the clients of its source would, and writes to it. */
export async function requireMoved(url: string, before: MovedDatabase): Promise<void> {
  const storage = await openStorage(url);
  const { customers, tokens } = storage;
  try {
    const rows = await Promise.all(
      TENANTS.map((tenant) =>
        customers.page({ tenant, after: null, limit: 500, status: null, email: null }, ALL),
      ),
    );
    expect(rows).toEqual(before.rows);
    expect(await allCounts(storage.writeCounts, "")).toEqual(before.counts);
    expect(await trailOf(storage)).toEqual(before.trail);
    expect(customers.cursorKey).toEqual(before.cursorKey);
    expect(await tokens.list()).toEqual(before.records);
    expect(await tokens.find(before.valid, NOW)).toEqual(before.caller);
    expect(await tokens.find(before.rotated, NOW)).toEqual(before.rotatedCaller);
    expect(await tokens.find(before.revoked, NOW)).toBeNull();
    // A tag from before the move.
    expect(
      await customers.update(before.second, { name: "After" }, NO_BODY, null, TEST_ORIGIN),
    ).toMatchObject({
      kind: "applied",
    });
    expect(
      await customers.update(before.second, { name: "Again" }, NO_BODY, null, TEST_ORIGIN),
    ).toMatchObject({
      kind: "stale",
    });
    // Repeats from before the move.
    const { created, replaced, patched, gone, newest, key } = before;
    const ada = { name: "Keyed", email: "A.B@Example.com", status: "active" } as const;
    expect(await customers.create("acme", ada, NOW, key("created"), TEST_ORIGIN)).toEqual({
      kind: "created",
      id: created.id,
      rowVersion: created.expected,
      isReplayed: true,
    });
    const r = { name: "R", email: "r@example.com" };
    expect(await customers.update(created, r, ALL, key("replaced"), TEST_ORIGIN)).toEqual({
      ...replaced,
      isReplayed: true,
    });
    expect(
      await customers.update(created, r, ALL, { ...key("replaced"), digest: "0b" }, TEST_ORIGIN),
    ).toEqual({
      kind: "key-reused",
    });
    const [first] = before.rows[0]?.items ?? [];
    const target = { tenant: "acme", id: first?.fields.id ?? "", expected: { anyExcept: [] } };
    const repeated = await customers.update(
      target,
      { status: "suspended" },
      NO_BODY,
      key("patched"),
      TEST_ORIGIN,
    );
    expect<object>(repeated).toEqual({ ...patched, isReplayed: true });
    expect(await customers.remove(newest, key("removed"), TEST_ORIGIN)).toEqual({
      kind: "removed",
      isReplayed: true,
    });
    expect(await customers.update(gone, { name: "G" }, ALL, key("gone"), TEST_ORIGIN)).toMatchObject({
      kind: "applied",
      fields: null,
      isReplayed: true,
    });
    // Fields that a copy keeps go with their customer there too.
    expect(
      await customers.remove({ ...created, expected: { anyExcept: [] } }, null, TEST_ORIGIN),
    ).toMatchObject({
      kind: "removed",
    });
    expect(await customers.update(created, r, ALL, key("replaced"), TEST_ORIGIN)).toMatchObject({
      fields: null,
    });
    // Made at the very time of those before it: only the greatest id of the tenant, a deleted one, keeps it above.
    const next = await customers.create("acme", ada, NOW - 1, null, TEST_ORIGIN);
    const ids = [newest.id, created.id, gone.id].sort();
    expect(next.kind === "created" && next.id > (ids.at(-1) ?? "")).toBe(true);
  } finally {
    await storage.close();
  }
}

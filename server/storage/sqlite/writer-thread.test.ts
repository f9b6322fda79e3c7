import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { temporaryDirectory } from "../../tests/support/server-process.ts";
import { StoreUnavailable } from "../customer-store.ts";
import { GROUP_COMMIT_LIMITS, type GroupCommitLimits } from "./group-commit.ts";
import { openDatabase } from "./sqlite-database.ts";
import type { WriteInput } from "./writer.ts";
import { WriterThread } from "./writer-thread.ts";

/** Every Worker that was started, so that a test can end one from outside: what a crash of the thread looks like. */
const started: Worker[] = [];
const RealWorker = globalThis.Worker;

let directory: ReturnType<typeof temporaryDirectory>;
let path: string;
const writers: WriterThread[] = [];

beforeEach(() => {
  directory = temporaryDirectory();
  path = `${directory.path}/customers.db`;
  openDatabase(path).close();
  globalThis.Worker = class extends RealWorker {
    constructor(...args: ConstructorParameters<typeof RealWorker>) {
      super(...args);
      started.push(this);
    }
  };
});
afterEach(async () => {
  globalThis.Worker = RealWorker;
  await Promise.all(writers.splice(0).map((writer) => writer.close()));
  started.splice(0);
  directory.remove();
});

function open(
  limits: Partial<GroupCommitLimits> = {},
  onDeath: (reason: string) => void = () => {},
): WriterThread {
  const writer = new WriterThread(path, { ...GROUP_COMMIT_LIMITS, ...limits }, () => {}, onDeath);
  writers.push(writer);
  return writer;
}

const creation = (name: string): WriteInput<"createCustomer"> => ({
  tenant: "t",
  customer: { name, email: "a@b", status: "active" },
  nowMs: 0,
  key: null,
});

function names(): string[] {
  const db = new Database(path, { readonly: true });
  try {
    return db
      .query<{ name: string }, []>("SELECT name FROM customers ORDER BY name")
      .all()
      .map((row) => row.name);
  } finally {
    db.close();
  }
}

const isUnavailable = (outcome: PromiseSettledResult<unknown>): boolean =>
  outcome.status === "rejected" && outcome.reason instanceof StoreUnavailable;

test("a write is on the disk when it is answered", async () => {
  const writer = open();
  for (const name of ["a", "b", "c"]) {
    await writer.run("createCustomer", creation(name));
    expect(names()).toContain(name);
  }
});

test("a thread that dies fails the writes that it had, keeps every one that was answered, and is replaced", async () => {
  const deaths: string[] = [];
  const writer = open({}, (reason) => deaths.push(reason));
  await writer.run("createCustomer", creation("before"));
  const blocker = new Database(path);
  blocker.run("BEGIN IMMEDIATE"); // so that the batch is still under way when its thread dies
  const underWay = [1, 2, 3].map((n) => writer.run("createCustomer", creation(`lost ${n}`)));
  const settled = Promise.allSettled(underWay);
  await new Promise((next) => setImmediate(next)); // the batch has left
  started.at(-1)?.terminate();
  expect((await settled).map(isUnavailable)).toEqual([true, true, true]);
  blocker.run("ROLLBACK");
  blocker.close();
  expect(deaths).toHaveLength(1);
  await writer.run("createCustomer", creation("after"));
  expect(names()).toEqual(["after", "before"]);
  expect(started).toHaveLength(2);
});

test("a lock held by another process holds up writes and not this thread; then they are made", async () => {
  const writer = open();
  const blocker = new Database(path);
  blocker.run("BEGIN IMMEDIATE");
  const write = writer.run("createCustomer", creation("waited"));
  for (let turn = 0; turn < 20; turn += 1) await new Promise((next) => setTimeout(next, 1));
  expect(names()).toEqual([]);
  blocker.run("ROLLBACK");
  blocker.close();
  await write;
  expect(names()).toEqual(["waited"]);
});

test("writes past the limit of those that may wait are refused at once", async () => {
  const writer = open({ pendingMax: 2 });
  const outcomes = await Promise.allSettled(
    ["a", "b", "c", "d"].map((name) => writer.run("createCustomer", creation(name))),
  );
  expect(outcomes.map(isUnavailable)).toEqual([false, false, true, true]);
  expect(names()).toEqual(["a", "b"]);
});

test("closing finishes the writes that were taken", async () => {
  const writer = open();
  const taken = ["a", "b", "c"].map((name) => writer.run("createCustomer", creation(name)));
  await writer.close();
  expect(await Promise.all(taken)).toHaveLength(3);
  expect(names()).toEqual(["a", "b", "c"]);
  const late = await Promise.allSettled([writer.run("createCustomer", creation("d"))]);
  expect(late.map(isUnavailable)).toEqual([true]);
});

test("a write that fails takes no neighbour down, and its error is told", async () => {
  const writer = open();
  const bad = { ...creation("x"), customer: { name: "x", email: "a@b", status: "open" as "active" } };
  const [good, failed, after] = await Promise.allSettled([
    writer.run("createCustomer", creation("a")),
    writer.run("createCustomer", bad),
    writer.run("createCustomer", creation("b")),
  ]);
  expect([good.status, failed.status, after.status]).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(String((failed as PromiseRejectedResult).reason)).toContain("CHECK constraint failed");
  expect(names()).toEqual(["a", "b"]);
});

import { afterAll, expect, test } from "bun:test";
import { temporaryDirectory } from "../../tests/support/server-process.ts";
import { WatchedDatabase } from "../../tests/support/watched-database.ts";
import { AdaptiveWriter } from "./adaptive-writer.ts";
import { GROUP_COMMIT_LIMITS, GroupCommit } from "./group-commit.ts";
import { openDatabase } from "./sqlite-database.ts";
import { StatementCache } from "./statement-cache.ts";
import type { WriteInput } from "./writer.ts";
import { WriterThread } from "./writer-thread.ts";

const directory = temporaryDirectory();
const path = `${directory.path}/customers.db`;
openDatabase(path).close();
const db = new WatchedDatabase(path, { readwrite: true, create: false, strict: true });
const thread = new WriterThread(
  path,
  GROUP_COMMIT_LIMITS,
  () => {},
  () => {},
);
let isBusy = false;
const writer = new AdaptiveWriter(
  new StatementCache(db),
  new GroupCommit(db, () => {}),
  thread,
  () => isBusy,
);
afterAll(async () => {
  await writer.close();
  db.close();
  directory.remove();
});

const write = () => {
  const customer = { name: "A", email: "a@b", status: "active" } as const;
  const input: WriteInput<"createCustomer"> = { tenant: "t", customer, nowMs: 0, key: null };
  return writer.run("createCustomer", input);
};
/** How many commits this thread made since the last call. */
const commits = () => db.ran.splice(0).filter((sql) => sql === "COMMIT").length;
const turn = () => new Promise((next) => setImmediate(next));

test("one write after another is committed at once, in this thread", async () => {
  for (let n = 0; n < 20; n += 1) {
    await write();
    await turn();
  }
  expect(commits()).toBe(20);
});

test("a crowd's writes share commits in the writer's thread, but for the first few", async () => {
  for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 64 }, write));
  // 8 in each of the ten rounds if it were not seen to be a crowd; a stalled machine may make it look over now and then.
  expect(commits()).toBeLessThanOrEqual(40);
});

test("a write amid many reads goes to the thread", async () => {
  while (commits() === 0) await write(); // the crowd is over
  await turn();
  isBusy = true;
  await write();
  isBusy = false;
  expect(commits()).toBe(0);
});

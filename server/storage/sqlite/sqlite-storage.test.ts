import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdirSync, readlinkSync, statfsSync } from "node:fs";
import { temporaryDirectory } from "../../tests/support/service/server-process.ts";
import { openDatabase } from "./files/sqlite-database.ts";
import { SqliteStorage } from "./sqlite-storage.ts";

let directory: ReturnType<typeof temporaryDirectory>;
let path: string;
beforeEach(() => {
  directory = temporaryDirectory();
  path = `${directory.path}/customers.db`;
});
afterEach(() => directory.remove());

/** The descriptors of this process on the database and its log. Those on -shm stay until it ends. */
function openFiles(): string[] {
  return readdirSync("/proc/self/fd")
    .flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`)];
      } catch {
        return []; // the descriptor that listed them
      }
    })
    .filter((file) => file.startsWith(path) && !file.includes("-shm"));
}

test("a storage that cannot be used after it was opened leaves no connection and no thread", async () => {
  const db = openDatabase(path);
  db.run("DELETE FROM cursor_key");
  db.close();
  expect(() => SqliteStorage.open(path, { hasWriterThread: true })).toThrow("no cursor key");
  while (openFiles().length > 0) await Bun.sleep(1);
  expect(readdirSync(directory.path)).toEqual(["customers.db"]);
});

test.each([
  ["of a command starts no thread", {}, 0],
  ["of a service starts one", { hasWriterThread: true }, 1],
] as const)("the storage %s", async (_, options, threads) => {
  const RealWorker = globalThis.Worker;
  let started = 0;
  globalThis.Worker = class extends RealWorker {
    constructor(...args: ConstructorParameters<typeof RealWorker>) {
      super(...args);
      started += 1;
    }
  };
  try {
    const storage = SqliteStorage.open(path, options);
    await storage.firstStart(false, Date.now());
    await storage.close();
    expect(started).toBe(threads);
  } finally {
    globalThis.Worker = RealWorker;
  }
});

test("what is free on the database's file system is known where it is a file, and NaN in memory", async () => {
  const [file, memory] = [SqliteStorage.open(path), SqliteStorage.open(":memory:")];
  const { blocks, bsize } = statfsSync(directory.path);
  expect(file.stats().freeBytes).toBeGreaterThan(0);
  expect(file.stats().freeBytes).toBeLessThanOrEqual(blocks * bsize);
  expect(memory.stats().freeBytes).toBeNaN();
  await Promise.all([file.close(), memory.close()]);
});

test("an open that finds no file descriptor left is refused in a sentence, at whichever of its files, and leaves none open", () => {
  openDatabase(path).close();
  const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);
  // In a process of its own, with 0, 1, 2 … descriptors free until it can open the database.
  // No thread is started then: Bun ends a process that has no descriptors left for one.
  const script = `
    import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
    import { SqliteStorage } from ${module("./sqlite-storage.ts")};
    import { CommandRefused } from ${module("../../domain/command-refused.ts")};
    globalThis.Worker = class extends EventTarget { postMessage() {} unref() {} };
    for (let free = 0; ; free += 1) {
      const held = [];
      try { for (;;) held.push(openSync("/dev/null", "r")); } catch {}
      for (const fd of held.splice(0, free)) closeSync(fd);
      let refusal = null;
      try { SqliteStorage.open(${JSON.stringify(path)}, { hasWriterThread: true }); } catch (error) { refusal = error; }
      for (const fd of held) closeSync(fd);
      if (refusal === null) break;
      const files = readdirSync("/proc/self/fd").flatMap((fd) => {
        try { return [readlinkSync("/proc/self/fd/" + fd)]; } catch { return []; }
      });
      const open = files.filter((file) => file.startsWith(${JSON.stringify(path)}) && !file.includes("-shm"));
      console.log(refusal instanceof CommandRefused ? "refused" : String(refusal), open.length);
    }
    process.exit();`;
  const { stdout, stderr } = Bun.spawnSync([
    "sh",
    "-c",
    'ulimit -n 64; exec "$0" -e "$1"',
    process.execPath,
    script,
  ]);
  expect(stderr.toString()).toBe("");
  const lines = stdout.toString().trim().split("\n");
  expect(lines.length).toBeGreaterThan(4);
  expect(new Set(lines)).toEqual(new Set(["refused 0"]));
});

import { expect, test } from "bun:test";
import { join } from "node:path";
import { isFailure } from "../outcome/failure.ts";
import { temporaryDirectory } from "../tests/support/client.ts";
import { type Journal, KEY_LIFETIME_MS, openJournal } from "./journal.ts";

const JOURNAL_MODULE = new URL("./journal.ts", import.meta.url).pathname;

const IMPORT = { url: "http://example.com", input: "in.csv" };

function open(path: string, now?: () => number): Journal {
  const opened = openJournal(path, IMPORT, now);
  if (isFailure(opened)) throw new Error(opened.message);
  return opened;
}

/** A process that records rows, then stops forever without closing anything. */
async function recordInChild(path: string, statements: string) {
  const script = `
    const { openJournal } = await import(${JSON.stringify(JOURNAL_MODULE)});
    const journal = openJournal(${JSON.stringify(path)}, ${JSON.stringify(IMPORT)});
    ${statements};
    process.stdout.write("ready");
    setInterval(() => {}, 1 << 30);`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
  await child.stdout.getReader().read();
  return child;
}

test("what was recorded before kill -9 is there afterwards, and the import keeps its id", async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, "journal");
  const child = await recordInChild(
    path,
    `for (let number = 1; number <= 1000; number += 1) journal.finished({ number, fingerprint: number }, "updated");
     journal.failed({ number: 1002, fingerprint: 8 }, "no such customer"); await journal.sent({ number: 1001, fingerprint: 7 })`,
  );
  child.kill("SIGKILL");
  await child.exited;
  const journal = open(path);
  expect(journal.counts()).toEqual({ sent: 1, created: 0, updated: 1000, unchanged: 0, failed: 1 });
  expect(journal.row(1001)).toMatchObject({ fingerprint: 7, state: "sent", reason: null });
  expect(journal.row(1002)).toMatchObject({ fingerprint: 8, state: "failed", reason: "no such customer" });
  expect(journal.lastRow()).toBe(1002);
  expect(journal.row(1003)).toBeUndefined();
  const { record } = journal;
  expect(record).toMatchObject({
    url: "http://example.com",
    complete: false,
  });
  journal.finished({ number: 1001, fingerprint: 7 }, "created");
  journal.complete();
  journal.close();
  const again = open(path);
  expect(again.record).toEqual({ ...record, complete: true });
  expect(again.row(1001)?.state).toBe("created");
  again.restart();
  expect([again.lastRow(), again.record.complete, again.record.importId === record.importId]).toEqual([
    0,
    false,
    false,
  ]);
  again.close();
});

test("each creation that was sent twice is judged by itself: by whether the server knew keys, and still kept this one", () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, "journal");
  let nowMs = 1_000_000;
  const openAt = () => open(path, () => nowMs);
  const first = openAt();
  for (const number of [1, 2, 3]) first.sent({ number, fingerprint: number });
  first.finished({ number: 4, fingerprint: 4 }, "created");
  nowMs += KEY_LIFETIME_MS - 1;
  first.sent({ number: 1, fingerprint: 1 });
  first.finished({ number: 1, fingerprint: 1 }, "created", "doubtful");
  first.close();
  nowMs += 1;
  const second = openAt();
  second.finished({ number: 2, fingerprint: 2 }, "created", "doubtful");
  expect(second.doubtful()).toEqual([1, 2]);
  second.finished({ number: 3, fingerprint: 3 }, "created", "replayed");
  // The server knows keys: the first row's was still kept when it went out again, the second one's was not.
  expect(second.doubtful()).toEqual([2]);
  second.close();
});

test("a row is known by its content, whichever number it has", () => {
  using directory = temporaryDirectory();
  const journal = open(join(directory.path, "journal"));
  journal.finished({ number: 1, fingerprint: 2 ** 53 - 1 }, "created");
  journal.failed({ number: 2, fingerprint: 5 }, "no");
  expect([journal.created(2 ** 53 - 1), journal.created(5), journal.created(6)]).toEqual([
    true,
    false,
    false,
  ]);
  journal.close();
});

test("while one process has the journal, another is refused; the lock ends with the process", async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, "journal");
  const child = await recordInChild(path, "");
  expect(() => open(path)).toThrow("is being imported by another process");
  child.kill("SIGKILL");
  await child.exited;
  open(path).close();
});

test("a file that is no journal is refused and left as it is", async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, "journal");
  await Bun.write(path, "these are somebody's notes, long enough to be no empty database".repeat(100));
  expect(() => open(path)).toThrow("is no journal of an import");
  expect(await Bun.file(path).text()).toStartWith("these are somebody's notes");
});

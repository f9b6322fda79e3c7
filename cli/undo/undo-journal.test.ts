import { expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../tests/support/client.ts";
import { openUndoJournal, undoJournalPath } from "./undo-journal.ts";

const URL = "http://127.0.0.1:1";
const DAY_MS = 24 * 3_600_000;
const change = (tagBefore: string, tagAfter: string, name = "Ada") =>
  ({ url: URL, id: "A", kind: "updated", before: new Map([["name", name]]), tagBefore, tagAfter }) as const;

test("the file and its directory are the operator's alone", () => {
  using home = temporaryDirectory();
  const path = undoJournalPath({ HOME: home.path });
  openUndoJournal(path).close();
  expect(path).toBe(join(home.path, ".local/state/customers/undo.sqlite"));
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700);
});

/** Opens one new journal after another, each at the same moment as every other worker, and records one change in it. */
const WRITER = `
  import { openUndoJournal } from ${JSON.stringify(join(import.meta.dir, "undo-journal.ts"))};
  onmessage = ({ data: { barrier, id, paths, workers } }) => {
    const arrived = new Int32Array(barrier);
    try {
      for (const [round, path] of paths.entries()) {
        Atomics.add(arrived, 0, 1);
        while (Atomics.load(arrived, 0) < workers * (round + 1));
        const journal = openUndoJournal(path);
        const change = { url: "u", id, kind: "updated", before: new Map(), tagBefore: "1", tagAfter: "2" };
        journal.record(change, 1000000);
        journal.close();
      }
      postMessage("done");
    } catch (error) {
      Atomics.add(arrived, 0, workers * paths.length); // the others need not wait
      postMessage(String(error));
    }
  };`;

test("of many that open a new journal at the same moment, each records in it", async () => {
  using home = temporaryDirectory();
  const paths = Array.from({ length: 20 }, (_, round) => join(home.path, String(round), "undo.sqlite"));
  const workers = 3;
  const source = join(home.path, "writer.ts");
  await Bun.write(source, WRITER);
  const barrier = new SharedArrayBuffer(4);
  const ends = Array.from({ length: workers }, (_, id) => {
    const worker = new Worker(source);
    const end = new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = reject;
    });
    worker.postMessage({ barrier, id: String(id), paths, workers });
    return end.finally(() => worker.terminate());
  });
  expect(await Promise.all(ends)).toEqual(ends.map(() => "done"));
  for (const path of paths) {
    const journal = openUndoJournal(path);
    expect(journal.all("u").length).toBe(workers);
    journal.close();
  }
});

test("what has expired is deleted, and its bytes with it", () => {
  using home = temporaryDirectory();
  const path = join(home.path, "undo.sqlite");
  let nowMs = 0;
  const open = () => openUndoJournal(path, () => nowMs);
  const first = open();
  first.record(change('"1"', '"2"', "Ada Lovelace"), DAY_MS);
  first.record(change('"2"', '"3"', "Grace Hopper"), 2 * DAY_MS);
  first.close();
  nowMs = DAY_MS;
  const second = open();
  expect(second.all(URL).map(({ before }) => before.get("name"))).toEqual(["Grace Hopper"]);
  second.close();
  const bytes = readFileSync(path).toString("latin1");
  expect(bytes).toContain("Grace Hopper");
  expect(bytes).not.toContain("Ada Lovelace");
});

test("after an undo the change before it is undone under the new version, if it made the one that was replaced", () => {
  using home = temporaryDirectory();
  const journal = openUndoJournal(join(home.path, "undo.sqlite"));
  journal.record(change('"1"', '"2"'), DAY_MS);
  journal.record(change('"2"', '"3"'), DAY_MS);
  const latest = journal.latest(URL, "a"); // ids are GUIDs, whose case does not matter
  if (latest !== undefined) journal.undone(latest, { id: "A", tag: '"4"' });
  expect(journal.latest(URL, "A")?.tagAfter).toBe('"4"');
  journal.record(change('"7"', '"8"'), DAY_MS); // someone else wrote in between
  const other = journal.latest(URL, "A");
  if (other !== undefined) journal.undone(other, { id: "A", tag: '"9"' });
  expect(journal.latest(URL, "A")?.tagAfter).toBe('"4"');
  journal.close();
});

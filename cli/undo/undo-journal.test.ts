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

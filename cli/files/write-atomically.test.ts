import { afterAll, expect, test } from "bun:test";
import {
  chmodSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../tests/support/client.ts";
import { openDraft, writeAtomically } from "./write-atomically.ts";

const places: Disposable[] = [];
afterAll(() => {
  for (const place of places) place[Symbol.dispose]();
});
function place() {
  const directory = temporaryDirectory();
  places.push(directory);
  return { directory: directory.path, file: join(directory.path, "target") };
}
const modeOf = (path: string) => statSync(path).mode & 0o777;

test.each<[string, number | undefined, number | "keep", number]>([
  ["a new file is for its owner alone", undefined, "keep", 0o600],
  ["an earlier file's mode stays", 0o640, "keep", 0o640],
  ["a mode that is asked for replaces the earlier one", 0o644, 0o600, 0o600],
])("%s", (_, before, mode, after) => {
  const { file } = place();
  if (before !== undefined) {
    writeFileSync(file, "old");
    chmodSync(file, before);
  }
  writeAtomically(file, "new", mode);
  expect([readFileSync(file, "utf8"), modeOf(file)]).toEqual(["new", after]);
});

test.each([
  ["that leads somewhere", true],
  ["that leads nowhere yet", false],
])("a symbolic link %s stays, and what it names is written", (_, exists) => {
  const { directory, file } = place();
  const real = join(directory, "real");
  if (exists) writeFileSync(real, "old");
  symlinkSync("real", file);
  writeAtomically(file, "new", 0o600);
  expect(lstatSync(file).isSymbolicLink()).toBe(true);
  expect(readFileSync(real, "utf8")).toBe("new");
});

test("two drafts of one file are two files, of which the last to be committed stays whole", () => {
  const { directory, file } = place();
  const [one, other] = [openDraft(file, 0o600), openDraft(file, 0o600)];
  writeFileSync(one.fd, "one");
  writeFileSync(other.fd, "other");
  other.commit();
  one.commit();
  expect([readFileSync(file, "utf8"), readdirSync(directory)]).toEqual(["one", ["target"]]);
});

test("a draft that is given up leaves the earlier file, and nothing else", () => {
  const { directory, file } = place();
  writeFileSync(file, "old");
  const draft = openDraft(file, 0o600);
  writeFileSync(draft.fd, "new");
  draft.discard();
  expect([readFileSync(file, "utf8"), readdirSync(directory)]).toEqual(["old", ["target"]]);
});

test("onlyNew never replaces a file that appeared meanwhile", () => {
  const { directory, file } = place();
  const draft = openDraft(file, 0o600);
  writeFileSync(file, "somebody's");
  expect(() => draft.commit({ onlyNew: true })).toThrow("EEXIST");
  draft.discard();
  expect([readFileSync(file, "utf8"), readdirSync(directory)]).toEqual(["somebody's", ["target"]]);
});

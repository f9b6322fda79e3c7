/** An editor that is a script, for tests of `edit`. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./client.ts";

const directories: { [Symbol.dispose](): void }[] = [];

/** For afterAll. */
export function removeEditors(): void {
  for (const directory of directories.splice(0)) directory[Symbol.dispose]();
}

type Step = { replace?: [string, string]; write?: string; exit?: number };

/**
 * An editor that is a script: its n-th start does the n-th step to the file, later ones do nothing. It keeps
 * what it was shown each time.
 */
export function scriptedEditor(steps: Step[]) {
  const directory = temporaryDirectory();
  directories.push(directory);
  const path = join(directory.path, "editor");
  writeFileSync(
    path,
    `#!${process.execPath}
import { existsSync, readFileSync, writeFileSync } from "node:fs";
const file = process.argv[2];
let turn = 0;
while (existsSync(${JSON.stringify(directory.path)} + "/shown-" + turn)) turn += 1;
const text = readFileSync(file, "utf8");
writeFileSync(${JSON.stringify(directory.path)} + "/shown-" + turn, text);
const step = ${JSON.stringify(steps)}[turn] ?? {};
if (step.replace !== undefined) writeFileSync(file, text.replace(...step.replace));
if (step.write !== undefined) writeFileSync(file, step.write);
process.exit(step.exit ?? 0);
`,
  );
  chmodSync(path, 0o700);
  const shown = (turn: number) => {
    const kept = join(directory.path, `shown-${turn}`);
    return existsSync(kept) ? readFileSync(kept, "utf8") : undefined;
  };
  return { editor: path, shown, directory: directory.path };
}

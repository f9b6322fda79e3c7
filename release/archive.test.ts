import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeArchive } from "./archive.ts";
import { runTool } from "./run-tool.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "archive-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

test("files bear the same modes whatever the umask of the release was: all may read, and run what is a program", async () => {
  const [program, document] = [join(directory, "program"), join(directory, "README.md")];
  for (const file of [program, document]) writeFileSync(file, "text");
  const digests: string[] = [];
  for (const [umask, programMode, documentMode] of [
    [0o077, 0o700, 0o600],
    [0o002, 0o775, 0o664],
  ] as const) {
    chmodSync(program, programMode);
    chmodSync(document, documentMode);
    const before = process.umask(umask);
    const files = [
      { name: "program", path: program },
      { name: "docs/README.md", path: document },
      { name: "sbom.json", text: "{}" },
    ];
    const archive = await writeArchive(directory, "release", files, 1_700_000_000);
    process.umask(before);
    digests.push(new Bun.CryptoHasher("sha256").update(await Bun.file(archive).bytes()).digest("hex"));
    const listed = await runTool(["tar", "-tvf", archive]);
    const modes = listed
      .trim()
      .split("\n")
      .map((line) => [line.slice(0, 10), line.split(" ").at(-1)]);
    expect(modes).toEqual([
      ["drwxr-xr-x", "release/"],
      ["drwxr-xr-x", "release/docs/"],
      ["-rw-r--r--", "release/docs/README.md"],
      ["-rwxr-xr-x", "release/program"],
      ["-rw-r--r--", "release/sbom.json"],
    ]);
  }
  expect(new Set(digests).size).toBe(1);
});

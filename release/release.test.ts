import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

test("a directory that holds other files than a release is refused and left as it is", async () => {
  const directory = mkdtempSync(join(tmpdir(), "release-"));
  const file = join(directory, "thesis.txt");
  writeFileSync(file, "text");
  const script = new URL("./release.ts", import.meta.url).pathname;
  const child = Bun.spawn([process.execPath, script, "--draft", "--out", directory], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said = await child.stderr.text();
  const code = await child.exited;
  const isKept = existsSync(file);
  rmSync(directory, { recursive: true });
  expect({ code, isKept }).toEqual({ code: 1, isKept: true });
  expect(said).toBe(
    `${directory} holds other files than a release, and would be emptied. Name a new directory.\n`,
  );
});

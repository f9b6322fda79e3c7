import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { temporaryDirectory } from "../tests/support/service/server-process.ts";
import { publish, stage, stagedToken } from "./staged-token.ts";

let directory: ReturnType<typeof temporaryDirectory>;
let tokenFile: string;
beforeEach(() => {
  directory = temporaryDirectory();
  tokenFile = `${directory.path}/admin.token`;
});
afterEach(() => directory.remove());

test("a staged token can be read until it is published, and is then in its file", () => {
  expect(stagedToken(tokenFile)).toBeNull();
  stage(tokenFile, "cst_one");
  expect(stagedToken(tokenFile)).toBe("cst_one");
  publish(tokenFile);
  expect(stagedToken(tokenFile)).toBeNull();
  expect(readFileSync(tokenFile, "utf8")).toBe("cst_one\n");
  publish(tokenFile); // as another service does that started at the same moment
});

test("a staged token that another service publishes at this moment is the token, or none", async () => {
  const [staged, stop] = [`${tokenFile}.partial`, `${directory.path}/stop`];
  stage(tokenFile, "cst_one");
  const script = `
    import { existsSync, renameSync } from "node:fs";
    const [token, staged, stop] = ${JSON.stringify([tokenFile, staged, stop])};
    while (!existsSync(stop)) { renameSync(staged, token); renameSync(token, staged); }`;
  const other = Bun.spawn([process.execPath, "-e", script], { stderr: "inherit" });
  const found = new Set<string | null>();
  const until = performance.now() + 5_000;
  for (let reads = 0; reads < 20_000 || (found.size < 2 && performance.now() < until); reads += 1) {
    found.add(stagedToken(tokenFile));
  }
  await Bun.write(stop, "");
  expect(await other.exited).toBe(0);
  expect(found).toEqual(new Set(["cst_one", null]));
  expect(existsSync(staged)).toBe(true);
});

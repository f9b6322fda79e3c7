/**
 * The compiled client, built once for a whole test run (by .ci/check.ts) or for a test file that runs alone:
 * it starts in a third of the time that `bun main.ts` takes, and it is what operators run.
 */
import { mkdirSync, renameSync } from "node:fs";

const BUILD = new URL("../../../release/build.ts", import.meta.url).pathname;
const DIST = new URL("../../../dist/", import.meta.url).pathname;
/** On globalThis, because each test file may get modules of its own. */
const shared = globalThis as { compiledCustomers?: Promise<string> };

/** @returns the path of the executable, under dist/. */
export function compiledClient(): Promise<string> {
  const { TEST_CLIENT: path } = process.env;
  if (path !== undefined) return Promise.resolve(path);
  shared.compiledCustomers ??= build();
  return shared.compiledCustomers;
}

async function build(): Promise<string> {
  mkdirSync(DIST, { recursive: true });
  const draft = `${DIST}customers-${process.pid}`;
  const child = Bun.spawn([process.execPath, BUILD, "customers", draft], {
    cwd: DIST, // Bun's own draft lies in the current directory, and stays there when a test run is killed
    stdout: "ignore",
    stderr: "pipe",
  });
  const [complaints, exitCode] = await Promise.all([child.stderr.text(), child.exited]);
  if (exitCode !== 0) throw new Error(`the build failed (exit ${exitCode}): ${complaints}`);
  // Renamed into place: another run of the tests may be using the one before.
  const path = `${DIST}customers-under-test`;
  renameSync(draft, path);
  return path;
}

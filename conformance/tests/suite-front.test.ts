/** The bun test front, as QA starts it: one test a rule. */
import { expect, test } from "bun:test";
import { FAULTS } from "../self/faults.ts";
import { CREDENTIALS } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { startSoundServer } from "../self/service/sound-server.ts";
import { ended, Workplace } from "./testing-cli.ts";

const ROOT = new URL("../..", import.meta.url).pathname;

async function suite(variables: Record<string, string>) {
  const place = new Workplace({ MAIN_KEY: CREDENTIALS.main, ...variables });
  try {
    return await ended(
      Bun.spawn([process.execPath, "test", "--timeout=60000", "./conformance/suite/"], {
        cwd: ROOT,
        env: place.env,
        stdio: ["ignore", "pipe", "pipe"],
      }),
    );
  } finally {
    place.remove();
  }
}

const flags = { HEADER_ENV: "Authorization: Bearer $MAIN_KEY", ONLY: "IFM,ETG-01", QUICK: "1" };

test("a sound deployment passes, one test a rule", async () => {
  const server = await startSoundServer(PLAIN);
  const { exitCode, stderr } = await suite({ ...flags, BASE_URL: server.url });
  await server.close();
  expect(`${exitCode} ${stderr}`).toMatch(/^0 /);
  expect(stderr).toContain("(pass) IFM-03 MUST");
}, 120_000);

test("a faulty one fails in the test of its rule, with the failure block", async () => {
  const fault = FAULTS.find(({ rule }) => rule === "IFM-12");
  const server = await startSoundServer(
    { ...PLAIN, ...fault?.deployment },
    fault?.plant(() => undefined),
  );
  const { exitCode, stderr } = await suite({ ...flags, BASE_URL: server.url });
  await server.close();
  expect(exitCode).toBe(1);
  expect(stderr).toContain("(fail) IFM-12 MUST");
  expect(stderr).toContain("impact");
}, 120_000);

test("without BASE_URL it says so and fails", async () => {
  const { exitCode, stderr } = await suite({});
  expect(exitCode).toBe(1);
  expect(stderr).toContain("BASE_URL is not set");
}, 120_000);

/** The curl line of a failure, run by a shell as it stands, with nothing but the named variable set. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { runKit } from "../run/engine.ts";
import { FAULTS } from "../self/faults.ts";
import { CREDENTIALS } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { type SoundServer, startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";

let server: SoundServer;
beforeAll(async () => {
  const fault = FAULTS.find(({ rule }) => rule === "IFM-12");
  server = await startSoundServer(
    { ...PLAIN, ...fault?.deployment, seeded: 1 },
    fault?.plant(() => undefined),
  );
});
afterAll(() => server.close());

/** Status of the answer that curl printed. */
async function status(line: string, variables: Record<string, string>): Promise<number> {
  const child = Bun.spawn(["bash", "-c", line], {
    env: { PATH: process.env["PATH"], ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const text = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
}

test("it reaches the service with the credential of the variable, and shows the fault again", async () => {
  const profile = readProfile(
    { baseUrl: server.url, headerEnv: ["Authorization: Bearer $TOKEN"], customerId: server.seeded },
    { TOKEN: CREDENTIALS.main },
  );
  const report = await runKit(profile, { ...defaultOptions, only: ["IFM-12"] });
  const line = report.rules[0]?.curl ?? "";
  expect(line).toContain("$TOKEN");
  expect(line).not.toContain(CREDENTIALS.main);
  expect(await status(line, { TOKEN: CREDENTIALS.main })).toBe(204);
  expect(await status(line, { TOKEN: "wrong" })).toBe(401);
}, 60_000);

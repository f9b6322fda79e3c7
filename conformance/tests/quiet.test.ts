/** A rule starts when all requests of the rule before it have ended: what is still under way looks like other people's writes. */
import { expect, test } from "bun:test";
import { runKit } from "../run/engine.ts";
import { profileFlags } from "../self/case.ts";
import { FAULTS } from "../self/faults.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";

test("writers that lose their connections leave no request under way when the next rule starts", async () => {
  const fault = FAULTS.find(({ id }) => id === "losers-dropped");
  const server = await startSoundServer(
    PLAIN,
    fault?.plant(() => undefined),
  );
  try {
    const profile = readProfile(profileFlags(server, PLAIN), {});
    const only = ["ATM-08", "ENV-04"];
    const { ledger } = await runKit(profile, { ...defaultOptions, mode: "quick", exclusive: true, only });
    const of = (rule: string) => ledger.filter((each) => each.rule === rule);
    expect(of("ATM-08").some(({ status }) => status === null)).toBe(true);
    const next = of("ENV-04")[0]?.n ?? 0;
    expect(next).toBeGreaterThan(0);
    expect(of("ATM-08").filter(({ n }) => n > next)).toEqual([]);
  } finally {
    await server.close();
  }
});

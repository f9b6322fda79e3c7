/** A wrong status that comes everywhere is blamed once; what it hides has not passed, and is expected with it. */
import { expect, test } from "bun:test";
import { runKit } from "../run/engine.ts";
import { profileFlags } from "../self/case.ts";
import { FAULTS } from "../self/faults.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";

const KNOWN = { rule: "IFM-32", reason: "r", owner: "o", until: "2999-01-01" };

test.each([
  [[], 1],
  [[KNOWN], 0],
  [[{ ...KNOWN, until: "2020-01-01" }], 1],
] as const)(
  "expecting %j the run ends with %d, and the rule that is hidden points to the one that is blamed",
  async (expected, exitCode) => {
    const fault = FAULTS.find(({ id }) => id === "patch-missing-400");
    const server = await startSoundServer(
      PLAIN,
      fault?.plant(() => undefined),
    );
    try {
      const report = await runKit(readProfile(profileFlags(server, PLAIN), {}), {
        ...defaultOptions,
        mode: "quick",
        only: ["IFM-31", "IFM-32", "IFM-33"],
        expected: [...expected],
      });
      expect(report.rules.map(({ id, outcome }) => [id, outcome])).toEqual([
        ["IFM-31", "pass"],
        ["IFM-32", "violation"],
        ["IFM-33", "could-not-run"],
      ]);
      expect(report.rules[2]?.reason).toContain("; see IFM-32");
      expect(report.exitCode).toBe(exitCode);
    } finally {
      await server.close();
    }
  },
);

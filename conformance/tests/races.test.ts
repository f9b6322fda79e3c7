/** Races set every two kinds of writers against each other, in both orders: each may check by its own code. */
import { expect, test } from "bun:test";
import type { Moment, Report } from "../report/schema.ts";
import { runKit } from "../run/engine.ts";
import { profileFlags } from "../self/case.ts";
import { FAULTS } from "../self/faults.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";

async function run(only: readonly string[], fault?: string): Promise<Report> {
  const plant = FAULTS.find(({ id }) => id === fault)?.plant(() => undefined);
  const server = await startSoundServer(PLAIN, plant);
  try {
    const profile = readProfile(profileFlags(server, PLAIN), {});
    return await runKit(profile, { ...defaultOptions, mode: "quick", rounds: 1, connections: 6, only });
  } finally {
    await server.close();
  }
}

/** The first two that were released in each round. */
function openings(timeline: readonly Moment[]): string[] {
  const rounds = Map.groupBy(timeline, ({ round }) => round);
  return [...rounds.values()].map((moments) => {
    const [first, second] = moments.toSorted((a, b) => a.sentMs - b.sentMs);
    return [first, second].map((each) => each?.what.split(" ")[0]).join(" before ");
  });
}

test("ATM-03 and ATM-04 release each two kinds of writers in both orders, however few rounds are asked for", async () => {
  // Every round has several winners then, so every round is shown.
  const { rules } = await run(["ATM-03", "ATM-04"], "all-find-then-save");
  const seen = new Set(rules.flatMap(({ timeline }) => openings(timeline)));
  for (const [one, other] of [
    ["PATCH", "PUT"],
    ["PUT", "DELETE"],
    ["PATCH", "DELETE"],
  ]) {
    expect(seen).toContain(`${one} before ${other}`);
    expect(seen).toContain(`${other} before ${one}`);
  }
});

test.each(["losers-answered-409", "losers-answered-404", "losers-answered-500"])(
  "losers to an update are not let off because losers to a DELETE are refused as they should be (%s)",
  async (fault) => {
    const { rules } = await run(["ATM-04"], fault);
    expect(rules.map(({ outcome }) => outcome)).toEqual(["violation"]);
  },
);

test.each([
  ["ATM-03", "put-ignores-if-match", "IFM-03"],
  ["ATM-04", "patch-ignores-if-match", "IFM-31"],
])(
  "%s has not passed where one kind of writer is left out because it checks nothing (%s)",
  async (rule, fault, see) => {
    const { rules } = await run([see, rule], fault);
    expect(rules.find(({ id }) => id === rule)).toMatchObject({
      outcome: "could-not-run",
      reason: expect.stringContaining(`see ${see}`),
    });
  },
);

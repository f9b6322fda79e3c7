import type { Attempt } from "../../probe/attempt.ts";
import type { Check } from "../../probe/check.ts";
import {
  contendersOf,
  enforced,
  type Lane,
  RaceAccount,
  raceRound,
  rounds,
  unknown,
  won,
} from "../../probe/race.ts";
import { Losers } from "../../probe/race-losers.ts";
import { difference, type Snapshot, shows, stateOf } from "../../probe/trial.ts";
import type { Values } from "../../probe/values.ts";
import type { atm as rules } from "../races.ts";
import { atmDeletes } from "./atm-deletes.ts";
import { readsAmongWrites } from "./atm-reads.ts";
import { slowBody } from "./atm-slow-body.ts";

function putLanes(t: Attempt): Lane[] {
  return Array.from({ length: contendersOf(t) }, (_, lane) => ({
    who: `writer ${lane + 1}`,
    method: "PUT",
    values: t.kit.values.next(),
  }));
}

/** A round of any lanes with its evidence; the twin is the write that made the tag current. */
async function round(t: Attempt, number: number, lanes: readonly Lane[], allowed: string) {
  const before = await t.state(t.kit.main, "read before");
  const evidence = t.probe(`round ${number}: ${lanes.length} writes with ${before.tag} at once`, allowed);
  const contenders = await raceRound(t, number, t.kit.main, before, lanes);
  const after = await t.state(t.kit.main);
  Object.assign(evidence, {
    came: `accepted: ${
      won(contenders)
        .map(({ who, seen }) => `${who} (${seen?.status}, ETag ${seen?.tag ?? "none"})`)
        .join(", ") || "none"
    }; then read: ${JSON.stringify(after.fields.name)}, ETag ${after.tag}`,
    sent: (won(contenders)[1] ?? won(contenders)[0])?.n ?? null,
    before: stateOf(before.seen),
    after: stateOf(after.seen),
  });
  return { before, contenders, after, evidence };
}

function heldBy(state: Snapshot, values: Partial<Values> | undefined): boolean {
  return Object.entries(values ?? {}).every(([field, value]) =>
    shows(state.fields[field as keyof Values], value),
  );
}

async function putRace(
  t: Attempt,
  count: number,
  look: (number: number, result: Awaited<ReturnType<typeof round>>) => void,
  end: () => Promise<void> = async () => undefined,
): Promise<void> {
  await enforced(t, "PUT");
  const account = new RaceAccount(t);
  const fired = new Set<number>();
  for (let number = 1; number <= count; number += 1) {
    const result = await round(
      t,
      number,
      putLanes(t),
      "exactly one accepted, and the final state is its own",
    );
    account.add(result.contenders);
    look(number, result);
    if (result.evidence.fired.length > 0) fired.add(number);
  }
  await end();
  account.close(fired);
}

export const atm = {
  "ATM-01": async (t) => {
    t.needsStableTag();
    const tags = new Set<string>();
    await putRace(t, rounds(t, 1), (_, { before, contenders, after }) => {
      const winners = won(contenders);
      const open = unknown(contenders);
      t.check(
        "no-fork",
        winners.length <= 1,
        `${winners.length} writes with the tag ${before.tag} were accepted: ${winners.map(({ who }) => who).join(", ")}`,
      );
      t.check(
        "a-winner",
        winners.length > 0 || open.length > 0,
        `of ${contenders.length} writes with the current tag none was accepted`,
      );
      const [winner] = winners;
      if (winners.length === 1 && winner !== undefined) {
        t.check(
          "winner-stays",
          heldBy(after, winner.values),
          `${winner.who} was accepted with ${JSON.stringify(winner.values)}; the final state is ${JSON.stringify(after.fields)}`,
        );
        const { tag } = winner.seen ?? {};
        if (tag !== undefined && heldBy(after, winner.values))
          t.check(
            "final-tag",
            tag === after.tag,
            `the accepted write was answered ${tag}; the final tag is ${after.tag}`,
          );
      }
      if (winners.length === 0) {
        const source = contenders.find(({ values }) => heldBy(after, values));
        t.check(
          "no-lost-write",
          t.same(before, after) || source?.outcome === "unknown",
          () => `no write was accepted, and yet: ${difference(before, after)}`,
        );
      }
      if (winners.length > 0) {
        t.check(
          "no-tag-twice",
          !tags.has(after.tag),
          `the tag ${after.tag} was current before in this chain`,
        );
        tags.add(after.tag);
      }
    });
  },
  "ATM-02": async (t) => {
    const losers = new Losers(t);
    const look = (_: number, { before, contenders, after }: Awaited<ReturnType<typeof round>>) => {
      losers.look(contenders);
      // Without a winner, or with several, it is ATM-01's to blame.
      if (won(contenders).length !== 1) return;
      for (const { who, seen } of contenders)
        if (seen?.status === 412 && seen.tag !== undefined && after.tag !== before.tag)
          t.check(
            "not-own-tag",
            seen.tag !== before.tag,
            `${who} lost, and its 412 carries the very tag that it sent, ${seen.tag}`,
          );
    };
    await putRace(t, rounds(t, 0.25), look, () => losers.judgeSilence());
  },
  "ATM-03": async (t) => {
    await enforced(t, "PATCH");
    const account = new RaceAccount(t);
    const losers = new Losers(t);
    const fired = new Set<number>();
    for (let number = 1; number <= rounds(t, 0.5); number += 1) {
      const lanes: Lane[] = Array.from({ length: contendersOf(t) }, (_, lane) => {
        const { name, email } = t.kit.values.next();
        // PUT and PATCH may check by different code: some rounds set one against the other.
        if (number % 3 === 0 && lane % 2 === 1)
          return { who: `writer ${lane + 1}`, method: "PUT", values: { name, email } };
        return { who: `patcher ${lane + 1}`, method: "PATCH", values: lane % 2 === 0 ? { name } : { email } };
      });
      const { before, contenders, after, evidence } = await round(
        t,
        number,
        lanes,
        "exactly one accepted, and only its field changed",
      );
      account.add(contenders);
      losers.look(contenders);
      const winners = won(contenders);
      t.check(
        "no-fork",
        winners.length <= 1,
        `${winners.length} writes with the tag ${before.tag} were accepted: ${winners.map(({ who }) => who).join(", ")}`,
      );
      const [winner] = winners;
      if (winners.length === 1 && winner?.values !== undefined) {
        const expected = { name: before.fields.name, email: before.fields.email, ...winner.values };
        t.check(
          "only-winner",
          heldBy(after, expected as Values),
          () =>
            `${winner.who} alone was accepted with ${JSON.stringify(winner.values)}; ${difference(before, after)}`,
        );
      }
      if (evidence.fired.length > 0) fired.add(number);
    }
    await losers.judgeSilence();
    account.close(fired);
  },
  "ATM-05": slowBody,
  "ATM-06": readsAmongWrites,
  ...atmDeletes,
} satisfies Record<(typeof rules)[number]["id"], Check>;

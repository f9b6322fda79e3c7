/** ATM: check and update are one step. */

import { CouldNotRun, Inconclusive, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { type Attempt, BASE } from "../../probe/attempt.ts";
import {
  bothOrders,
  enforced,
  heldBy,
  lineUp,
  notEnforced,
  oneWinner,
  race,
} from "../../probe/races/race.ts";
import type { Contender, Round } from "../../probe/races/round.ts";
import { otherWays, ownForRace } from "../../probe/races/ways-of-racing.ts";
import { NEEDS } from "../../probe/refusals/refused.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { difference } from "../../probe/snapshot.ts";

import { interleaving, PUT_RULES } from "./interleaving.ts";

const PATCH_RULES = ["IFM-30", "IFM-31", "IFM-34"] as const;
const DELETE_RULES = ["IFM-40", "IFM-41", "IFM-44"] as const;
/** Whether a read shows what was written; a customer that is gone, or of which nothing was written, shows nothing. */
function showsWritten(text: string, values: Contender["values"] = {}): boolean {
  const shown = text.toLowerCase();
  const written = Object.values(values);
  return written.length > 0 && written.every((value) => shown.includes(value.toLowerCase()));
}

/** 202 says that a DELETE was received, not that it is or will be applied (RFC 9110 15.3.3). */
const isReceivedOnly = ({ seen }: Contender) => seen?.status === 202;

/**
 * Rounds where a write was accepted and a DELETE only received: the write must still stand when the DELETE has had the
 * time that another one needs.
 * @throws Inconclusive where that other one is not applied in time
 */
async function outlasts(t: Attempt, rounds: readonly Round[]): Promise<void> {
  if (rounds.length === 0) return;
  // It is sent after those of the rounds, so theirs are due when it is applied.
  const own = await t.kit.ground.make();
  const removal = await t.write("DELETE", { to: own, purpose: "control request: how long a DELETE takes" });
  const alone = await t.untilGone(own, removal);
  for (const { number, customer, before, winners, proof } of rounds) {
    const update = winners.find(({ method }) => method !== "DELETE");
    const then = await t.get(customer, { query: t.kit.deployment.stateQuery, purpose: "read back later" });
    const stands = then.status === 200 && showsWritten(then.text, update?.values);
    proof.show(update?.seen ?? then, {
      came: `round ${number}: ${update?.who} accepted, DELETE answered 202; later read: ${then.status}`,
      before: before.seen,
      after: then,
    });
    const found = `${update?.who} was accepted with ${before.tag}, a DELETE with the same tag answered 202, and a later read answers ${then.status} without the accepted values`;
    proof.must("no-fork", stands, found);
  }
  if (alone.status === 200 && alone.tag === removal.before.tag)
    throw new Inconclusive(
      "DELETE was answered 202 and is not applied yet, so whether it is checked again when it is applied can't be seen",
    );
}

export const races: readonly Rule[] = [
  rule("ATM-01", "Of concurrent PUTs with one tag exactly one is accepted", {
    spec: ["4.2 atomic", "1.3"],
    reading:
      "The accepted writes form a line from tag to tag, without fork, without a tag twice, and the final state is the last winner's. Some are sent by another caller, at another spelling of the address, in chunks, with a long body, or with values that are stored already; some by another tenant to a customer of its own.",
    hurts: "Lost updates: two people save, both see success, one change is gone.",
    needs: ["write"],
    after: ["ETG-04", ...PUT_RULES],
    async check(t) {
      t.needsStableTag();
      await enforced(t, "PUT");
      const tags = new Set<string>();
      const allowed = "exactly one accepted, and the final state is its own";
      const options = {
        share: 1,
        lineUps: [lineUp(t, "PUT", "PUT")],
        further: await otherWays(t, "PUT"),
        own: await ownForRace(t),
        allowed,
      };
      await race(t, options, (round) => {
        const { before, contenders, winners, unknown, after, proof } = round;
        oneWinner(round, "winner-stays");
        const none = `of ${contenders.length} writes with the current tag none was accepted`;
        proof.must("a-winner", winners.length > 0 || unknown.length > 0, none, OTHERS_MAY_CAUSE);
        if (after === undefined) return;
        const [winner] = winners;
        const tag = winner?.seen?.tag;
        if (winners.length === 1 && tag !== undefined && heldBy(after, winner?.values)) {
          const found = `the accepted write was answered ${tag}; the final tag is ${after.tag}`;
          proof.must("final-tag", tag === after.tag, found, OTHERS_MAY_CAUSE);
        }
        if (winners.length === 0) {
          const source = contenders.find(({ values }) => heldBy(after, values));
          const kept = t.same(before, after) || source?.outcome === "unknown";
          const found = () => `no write was accepted, and yet: ${difference(before, after)}`;
          proof.must("no-lost-write", kept, found, OTHERS_MAY_CAUSE);
          return;
        }
        const twice = `the tag ${after.tag} was current before in this chain`;
        proof.must("no-tag-twice", !tags.has(after.tag), twice);
        tags.add(after.tag);
      });
    },
  }),
  rule("ATM-02", "The losers of a race are answered 412", {
    spec: ["4.2 atomic", "7 rule 1", "4.2 412"],
    reading:
      "With the token of now, never the one that they sent themselves, and never left without an answer. A 5xx now and then is an unknown outcome and a warning.",
    hurts: "Clients cannot tell a conflict from a failure, and do not retry or retry with a dead token.",
    needs: ["write"],
    after: ["IFM-07", ...PUT_RULES],
    async check(t) {
      await enforced(t, "PUT");
      const lineUps = [lineUp(t, "PUT", "PUT")];
      await race(t, { share: 0.25, lineUps, allowed: "412 to all but one" });
    },
  }),
  rule("ATM-03", "Of concurrent PATCHes of different fields, and of PATCH and PUT, exactly one is accepted", {
    spec: ["4.3 PATCH", "4.2 atomic"],
    reading:
      "With one tag, one winner, and only what the winner named is changed. Some are sent by another caller, in chunks, with a long body, or name both fields.",
    hurts: "Two partial updates merge into a customer that nobody has seen or approved.",
    needs: NEEDS.PATCH,
    after: [...PUT_RULES, "IFM-07", ...PATCH_RULES],
    async check(t) {
      await enforced(t, "PATCH");
      const withoutPut = await notEnforced(t, "PUT");
      const lineUps = [lineUp(t, "PATCH", "PATCH")];
      if (withoutPut === undefined) lineUps.push(...bothOrders(t, "PATCH", "PUT"));
      const allowed = "exactly one accepted, and only its field changed";
      const further = await otherWays(t, "PATCH");
      await race(t, { share: 0.5, lineUps, further, allowed }, (round) => oneWinner(round, "only-winner"));
      if (withoutPut !== undefined) throw withoutPut;
    },
  }),
  rule("ATM-04", "Of a PUT or PATCH and a DELETE with one tag at most one is accepted", {
    spec: ["4.2 atomic", "4.3 same"],
    reading:
      "After the first accepted one the other is refused as stale or as missing, and the final state is the winner's.",
    hurts: "A customer that somebody has just saved vanishes, or a deleted one comes back.",
    needs: NEEDS.DELETE,
    after: [...PUT_RULES, "IFM-07", ...PATCH_RULES, ...DELETE_RULES],
    async check(t) {
      await enforced(t, "PUT");
      await enforced(t, "DELETE");
      const patches = await t.patchOffered();
      const withoutPatch = patches ? await notEnforced(t, "PATCH") : undefined;
      const lineUps = bothOrders(t, "PUT", "DELETE");
      if (patches && withoutPatch === undefined) lineUps.push(...bothOrders(t, "PATCH", "DELETE"));
      const allowed = "at most one accepted, and the final state is the winner's";
      const customer = () => t.kit.ground.make();
      const open: Round[] = [];
      await race(t, { share: 0.4, lineUps, allowed, customer }, (round) => {
        const { before, contenders, winners, afterSeen, proof } = round;
        const deletes = winners.filter(({ method }) => method === "DELETE");
        const updates = winners.filter(({ method }) => method !== "DELETE");
        const names = winners.map(({ who }) => who);
        const both = `${names.join(", ")} were ${names.length === 2 ? "both" : "all"} accepted with ${before.tag}`;
        if (updates.length === 1 && deletes.length > 0 && deletes.every(isReceivedOnly)) {
          open.push(round);
          return;
        }
        // Two DELETEs that both report success are ATM-07's matter.
        proof.must("no-fork", updates.length + Math.min(1, deletes.length) <= 1, both);
        if (updates.length === 1 && deletes.length === 0) {
          const stays = afterSeen.status === 200 && showsWritten(afterSeen.text, updates[0]?.values);
          const found = `${updates[0]?.who} alone was accepted, and a read then answers ${afterSeen.status} without its values`;
          proof.must("put-stays", stays, found, OTHERS_MAY_CAUSE);
        }
        if (updates.length === 0 && deletes.length > 0) {
          const back = contenders.some(({ values }) => showsWritten(afterSeen.text, values));
          const found = `a DELETE alone was accepted, and a read then answers ${afterSeen.status} with the values of a refused write`;
          proof.must("delete-stays", !back, found);
        }
      });
      await outlasts(t, open);
      if (withoutPatch !== undefined) throw withoutPatch;
    },
  }),
  rule("ATM-07", "Of concurrent DELETEs with one tag exactly one is accepted", {
    level: "SHOULD",
    spec: ["4.2 atomic", "4.3 same"],
    reading:
      "The first accepted DELETE ends the token; the others find a missing customer or a stale token. Some are sent by another caller.",
    hurts: "Callers that act on a successful DELETE (refunds, mails) act twice.",
    needs: NEEDS.DELETE,
    after: DELETE_RULES,
    async check(t) {
      await enforced(t, "DELETE");
      const lineUps = [lineUp(t, "DELETE", "DELETE")];
      const customer = () => t.kit.ground.make();
      const further = await otherWays(t, "DELETE");
      const options = { share: 0.1, lineUps, further, allowed: "exactly one accepted", customer };
      let received = 0;
      await race(t, options, ({ before, winners, unknown, proof }) => {
        if (winners.length === 0 && unknown.length === 0)
          throw new CouldNotRun("no DELETE with the current tag was accepted", [BASE.DELETE.current]);
        const applied = winners.filter((winner) => !isReceivedOnly(winner));
        if (winners.length > 1) received = Math.max(received, winners.length - applied.length);
        const found = `${applied.length} DELETEs with the tag ${before.tag} were accepted`;
        proof.must("one-winner", applied.length <= 1, found);
      });
      if (received > 0)
        throw new Inconclusive(
          `${received} DELETEs with one tag were answered 202; 202 does not say which of them is applied`,
        );
    },
  }),
  ...interleaving,
].toSorted((a, b) => a.id.localeCompare(b.id));

/** ATM: check and update are one step. */

import { CouldNotRun, Inconclusive, NotApplicable, OTHERS_MAY_CAUSE } from "../http/outcome-signal.ts";
import { type Attempt, BASE, needAccepted } from "../probe/attempt.ts";
import { describe } from "../probe/proof.ts";
import {
  bothOrders,
  CHANGES_TAG,
  type Contender,
  contendersOf,
  enforced,
  heldBy,
  lineUp,
  notEnforced,
  oneWinner,
  type Round,
  race,
} from "../probe/race.ts";
import { NEEDS } from "../probe/refused.ts";
import { type Rule, rule } from "../probe/rule.ts";
import { accepted, difference, shows } from "../probe/snapshot.ts";
import { together } from "../probe/together.ts";
import { registryFields } from "../target/names.ts";

const PUT_RULES = ["IFM-01", "IFM-03", "ETG-08"] as const;
const PATCH_RULES = ["IFM-30", "IFM-31", "IFM-34"] as const;
const DELETE_RULES = ["IFM-40", "IFM-41", "IFM-44"] as const;
/** Whether a read shows what was written; a customer that is gone, or of which nothing was written, shows nothing. */
function holds(text: string, values: Contender["values"] = {}): boolean {
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
    const stands = then.status === 200 && holds(then.text, update?.values);
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

/** How long another request may take while a body is under way, before it counts as held up by it. */
const PATIENCE_MS = 3000;

async function slowBody(t: Attempt, method: "PUT" | "PATCH"): Promise<void> {
  const { tag, written } = await t.control(method);
  const proof = t.proof(
    `${method} whose last body byte comes after another accepted ${method}`,
    "412, and the other's values stay",
  );
  const slow = await t.hold(method, t.kit.main, { ifMatch: tag, purpose: "probe: slow body" });
  const between = t.send(t.writeAsk(method, t.kit.main, { ifMatch: tag, purpose: `${method} in between` }));
  if (!(await isAnswered(t, between))) {
    const other = t.get(t.kit.ground.missing(), { purpose: "is anything answered meanwhile" });
    const alive = await isAnswered(t, other);
    await slow.release();
    await Promise.allSettled([between, other]);
    const late = await between;
    if (!alive)
      throw new NotApplicable(
        "the service takes one request at a time, so no write comes between a slow one's parts",
      );
    const found = `while a slow ${method} was open, another with the current tag was not answered`;
    proof.show(late).must("not-locked", false, found, OTHERS_MAY_CAUSE);
    return;
  }
  const quick = await between;
  const before = await t.state(t.kit.main, "read in between");
  const { exchange, seen } = await slow.release();
  const after = await t.state(t.kit.main);
  proof.show(seen ?? quick, {
    came: seen === undefined ? `no complete reply: ${exchange.failure}` : describe(seen),
    before: before.seen,
    after: after.seen,
    unchanged: t.same(before, after),
    control: { differs: "nobody else writes meanwhile", seen: written.seen },
  });
  const open = t.proof(`${method} with the current tag, while a slow ${method} is open`, "accepted");
  const locked = `while a slow ${method} was open, another with the current tag was answered ${quick.status}`;
  if (!open.show(quick).must("not-locked", accepted(quick.status), locked, OTHERS_MAY_CAUSE)) return;
  if (before.tag === tag)
    throw new CouldNotRun("the tag does not change on an accepted write, so the slow one is not stale", [
      CHANGES_TAG[method],
    ]);
  if (seen !== undefined) {
    const found = `the slow ${method} with the tag ${tag}, stale by then, was answered ${seen.status}`;
    proof.must("refused", !accepted(seen.status), found);
  }
  proof.must(
    "unchanged",
    t.same(before, after),
    () => `the slow ${method}: ${difference(before, after)}`,
    OTHERS_MAY_CAUSE,
  );
}

/** Whether a reply comes in time. A failure is an answer here: the caller awaits the request as well. */
async function isAnswered(t: Attempt, request: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.min(PATIENCE_MS, t.kit.profile.timeoutMs / 2));
  });
  const answered = request.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([answered, late]);
  } finally {
    clearTimeout(timer);
  }
}

const READERS = 4;

/** Readers among a chain of writes. */
async function readsAmongWrites(t: Attempt): Promise<void> {
  const { deployment, main } = t.kit;
  const versions = new Map<string, { name: unknown; email: unknown }>();
  const first = await t.state(main, "read before");
  versions.set(first.tag, { name: first.fields.name, email: first.fields.email });
  const queries = [deployment.stateQuery, "?fields=name,email", "?fields=name", "?fields=email"];
  const reads: { query: string; seen: Awaited<ReturnType<Attempt["get"]>> }[] = [];
  let writing = true;
  const reader = async (_: unknown, lane: number) => {
    for (let count = lane; writing && reads.length < (t.quick ? 40 : 400); count += 1) {
      const query = queries[count % queries.length] ?? "";
      reads.push({ query, seen: await t.get(main, { query, purpose: "read among writes" }) });
    }
  };
  const writer = async () => {
    try {
      let { tag } = first;
      for (let count = 0; count < (t.quick ? 10 : 40); count += 1) {
        const values = t.kit.values.next();
        const seen = await t.send(
          t.writeAsk("PUT", main, { ifMatch: tag, values, purpose: "chain of writes" }),
        );
        needAccepted("PUT", seen);
        tag = seen.tag ?? (await t.state(main)).tag;
        // A tag that stays or comes back is the ETG rules' matter; it cannot tell versions apart here.
        if (versions.has(tag))
          throw new CouldNotRun("the tag does not tell versions apart", ["ETG-08", "ETG-15"]);
        versions.set(tag, values);
      }
    } finally {
      writing = false;
    }
  };
  await together([writer(), ...Array.from({ length: READERS }, reader)]);
  let known = 0;
  for (const { query, seen } of reads) {
    const version = seen.status === 200 && seen.tag !== undefined ? versions.get(seen.tag) : undefined;
    if (version === undefined) continue;
    const { name, email } = registryFields(seen.object ?? {}, deployment.names);
    if (name === undefined && email === undefined) continue;
    known += 1;
    const is = JSON.stringify(version);
    const proof = t.proof(`GET ${query} while others write`, `with ${seen.tag}: ${is}`);
    proof.show(seen, { came: `with ${seen.tag}: ${JSON.stringify({ name, email })}` });
    const together =
      (name === undefined || shows(name, String(version.name))) &&
      (email === undefined || shows(email, String(version.email)));
    const found = `a read showed the tag ${seen.tag} with ${JSON.stringify({ name, email })}; that version is ${is}`;
    proof.must("together", together, found);
  }
  if (known === 0) throw new CouldNotRun("no read among the writes showed a known tag", ["ETG-07"]);
  t.note = `; ${reads.length} reads among ${versions.size - 1} writes`;
}

type Link = { readonly who: string; readonly from: string; readonly to: string; readonly n: number };

/** Each writer goes on from the tag of its own answer, or of the 412 that refused it, as clients do. */
async function chains(t: Attempt): Promise<void> {
  const { main } = t.kit;
  const first = await t.state(main, "read before");
  const links: (Link & { seen: Awaited<ReturnType<Attempt["get"]>> })[] = [];
  const writer = async (who: string) => {
    let { tag } = first;
    // Over a connection that is kept: a writer that is refused writes again within the gap that a winner may leave open.
    const via = t.kit.wire.connect();
    try {
      for (let count = 0; count < (t.quick ? 16 : 48); count += 1) {
        const seen = await t.send(t.writeAsk("PUT", main, { ifMatch: tag, purpose: who, via }));
        if (seen.status >= 500) return;
        if (accepted(seen.status) && seen.tag !== undefined)
          links.push({ who, from: tag, to: seen.tag, n: seen.exchange.n, seen });
        tag = seen.tag ?? (await t.state(main, "read again")).tag;
      }
    } finally {
      via.close();
    }
  };
  await together(Array.from({ length: Math.min(4, contendersOf(t)) }, (_, n) => writer(`writer ${n + 1}`)));
  if (links.length < 2) throw new CouldNotRun("no two writes of the chain were accepted", ["IFM-01"]);
  for (const link of links) {
    const proof = t.proof(
      `${link.who}: PUT with ${link.from}, the tag of its last answer`,
      "one link of one line",
    );
    proof.show(link.seen);
    const also = (by: "from" | "to") => links.find((other) => other !== link && other[by] === link[by]);
    const fork = also("from");
    const found = `${link.who} and ${fork?.who} were both accepted with ${link.from}`;
    proof.must("no-fork", fork === undefined, found, OTHERS_MAY_CAUSE);
    const same = also("to");
    const told = `${link.who} and ${same?.who} were both told the new tag ${link.to}: one of them goes on from a write that is not its own`;
    proof.must("own-tag", same === undefined || same.from === link.from, told, OTHERS_MAY_CAUSE);
  }
  t.note = `; ${links.length} accepted writes were linked`;
}

export const races: readonly Rule[] = [
  rule("ATM-01", "Of concurrent PUTs with one tag exactly one is accepted", {
    spec: ["4.2 atomic", "1.3"],
    reading:
      "The accepted writes form a line from tag to tag, without fork, without a tag twice, and the final state is the last winner's.",
    hurts: "Lost updates: two people save, both see success, one change is gone.",
    needs: ["write"],
    after: ["ETG-04", ...PUT_RULES],
    async check(t) {
      t.needsStableTag();
      await enforced(t, "PUT");
      const tags = new Set<string>();
      const allowed = "exactly one accepted, and the final state is its own";
      await race(t, { share: 1, lineUps: [lineUp(t, "PUT", "PUT")], allowed }, (round) => {
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
    reading: "With one tag, one winner, and only what the winner named is changed.",
    hurts: "Two partial updates merge into a customer that nobody has seen or approved.",
    needs: NEEDS.PATCH,
    after: [...PUT_RULES, "IFM-07", ...PATCH_RULES],
    async check(t) {
      await enforced(t, "PATCH");
      const withoutPut = await notEnforced(t, "PUT");
      const lineUps = [lineUp(t, "PATCH", "PATCH")];
      if (withoutPut === undefined) lineUps.push(...bothOrders(t, "PATCH", "PUT"));
      const allowed = "exactly one accepted, and only its field changed";
      await race(t, { share: 0.5, lineUps, allowed }, (round) => oneWinner(round, "only-winner"));
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
          const stays = afterSeen.status === 200 && holds(afterSeen.text, updates[0]?.values);
          const found = `${updates[0]?.who} alone was accepted, and a read then answers ${afterSeen.status} without its values`;
          proof.must("put-stays", stays, found, OTHERS_MAY_CAUSE);
        }
        if (updates.length === 0 && deletes.length > 0) {
          const back = contenders.some(({ values }) => holds(afterSeen.text, values));
          const found = `a DELETE alone was accepted, and a read then answers ${afterSeen.status} with the values of a refused write`;
          proof.must("delete-stays", !back, found);
        }
      });
      await outlasts(t, open);
      if (withoutPatch !== undefined) throw withoutPatch;
    },
  }),
  rule("ATM-05", "A slow body does not outlive its precondition", {
    spec: ["4.2 atomic"],
    reading: "A write whose headers came before, and whose body came after, another accepted write is stale.",
    hurts: "Each client on a slow line overwrites what others saved meanwhile.",
    needs: ["write"],
    after: PUT_RULES,
    async check(t) {
      await enforced(t, "PUT");
      for (let count = 0; count < (t.quick ? 1 : 3); count += 1) await slowBody(t, "PUT");
      if (await t.patchOffered()) await slowBody(t, "PATCH");
    },
  }),
  rule("ATM-06", "Tag and representation of a read belong together", {
    spec: ["1.2", "2.4.7"],
    reading: "While others write, a read never shows the tag of one version with the fields of another.",
    hurts:
      "A client merges on old values with a new tag, and its write is accepted: a lost update with all rules kept.",
    needs: ["write"],
    after: PUT_RULES,
    check: readsAmongWrites,
  }),
  rule("ATM-07", "Of concurrent DELETEs with one tag exactly one is accepted", {
    level: "SHOULD",
    spec: ["4.2 atomic", "4.3 same"],
    reading: "The first accepted DELETE ends the token; the others find a missing customer or a stale token.",
    hurts: "Callers that act on a successful DELETE (refunds, mails) act twice.",
    needs: NEEDS.DELETE,
    after: DELETE_RULES,
    async check(t) {
      await enforced(t, "DELETE");
      const lineUps = [lineUp(t, "DELETE", "DELETE")];
      const customer = () => t.kit.ground.make();
      const options = { share: 0.1, lineUps, allowed: "exactly one accepted", customer };
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
  rule("ATM-08", "Writers that go on from their own answers never lose an update", {
    spec: ["4.2 atomic", "1.3", "3 accepted"],
    reading:
      "Several writers, each going on from the tag of its own answer or of the 412 that refused it: their accepted writes are one line.",
    hurts:
      "A writer is told the tag of somebody else's later write, and its next write silently undoes that one.",
    needs: ["write"],
    after: ["ETG-04", "ETG-07", "ETG-15", ...PUT_RULES],
    async check(t) {
      t.needsStableTag();
      if (t.kit.doubts.has("tags repeat"))
        throw new CouldNotRun("tags come back, so writes cannot be linked by them", ["ETG-15"]);
      await enforced(t, "PUT");
      await chains(t);
    },
  }),
];

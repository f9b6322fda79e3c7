/** ATM: writes and reads that come between the parts of another write. */

import { CouldNotRun, NotApplicable, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { accepted, isClientError } from "../../http/status.ts";
import type { Caller, Seen } from "../../http/wire.ts";
import { getOf } from "../../probe/answered.ts";
import type { Attempt } from "../../probe/attempt.ts";
import { updatedCustomer } from "../../probe/prepared.ts";
import { describe } from "../../probe/proof.ts";
import { ARRIVAL_MS, CHANGES_TAG, enforced, notEnforced } from "../../probe/races/race.ts";
import { contendersOf } from "../../probe/races/round.ts";
import { together } from "../../probe/races/together.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { difference, type Snapshot, shows, storedValues, WRITABLE } from "../../probe/snapshot.ts";

/** What a race of PUTs stands on. */
export const PUT_RULES = ["IFM-01", "IFM-03", "ETG-08"] as const;

/** How long another request may take while a body is under way, before it counts as held up by it. */
const PATIENCE_MS = 3000;

async function slowBody(
  t: Attempt,
  method: "PUT" | "PATCH",
  caller: "main" | "limited" = "main",
): Promise<void> {
  const { tag, written } = await t.control(method);
  const by = caller === "limited" ? " by the limited caller" : "";
  const proof = t.proof(
    `${method}${by} whose last body byte comes after another accepted ${method}`,
    "412, and the other's values stay",
  );
  const slow = await t.hold(method, t.kit.main, { ifMatch: tag, caller, purpose: "probe: slow body" });
  await t.kit.wire.rest(ARRIVAL_MS);
  const between = t.sendWrite(method, t.kit.main, {
    ifMatch: tag,
    isCurrent: true,
    purpose: `${method} in between`,
  });
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
  });
  proof.control({ differs: "nobody else writes meanwhile", seen: written.seen });
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

/** It has no body by nature, but a client may send one, and some servers wait for its end. */
async function slowDelete(t: Attempt): Promise<void> {
  const { customer, former, now } = await updatedCustomer(t);
  const body = "{}";
  const control = await t.sendWrite("DELETE", customer, {
    ifMatch: former,
    body,
    purpose: "stale, with a body",
  });
  const kept = await t.state(customer, "read after it");
  // What is accepted or applied with a stale tag although nothing comes between is IFM-46's to blame.
  if (!isClientError(control.status) || !t.same(now, kept)) return;
  const proof = t.proof(
    "DELETE whose last body byte comes after an accepted PUT",
    "refused, and the customer stays",
  );
  const slow = await t.hold("DELETE", customer, { ifMatch: now.tag, body, purpose: "probe: slow body" });
  await t.kit.wire.rest(ARRIVAL_MS);
  const between = t.sendWrite("PUT", customer, {
    ifMatch: now.tag,
    isCurrent: true,
    purpose: "PUT in between",
  });
  const isInTime = await isAnswered(t, between);
  const query = t.kit.deployment.stateQuery;
  const before = isInTime
    ? t.snapshotIn(await t.get(customer, { query, purpose: "read in between" }))
    : undefined;
  const { exchange, seen } = await slow.release();
  // A server may carry it out as soon as its head is there, or keep others waiting: then nothing came between.
  const { status } = await between;
  if (!accepted(status) || before === undefined || before.tag === now.tag) return;
  const after = await t.get(customer, { query, purpose: "read back" });
  const then = t.snapshotIn(after);
  const unchanged = then !== undefined && t.same(before, then);
  const came = seen === undefined ? `no complete reply: ${exchange.failure}` : describe(seen);
  proof.show(seen ?? after, { came, before: before.seen, after, unchanged });
  proof.control({ differs: "the tag was stale from the start", seen: control, refused: true });
  if (seen !== undefined) {
    const found = `the slow DELETE with the tag ${now.tag}, stale by then, was answered ${seen.status}`;
    proof.must("refused", !accepted(seen.status), found);
  }
  const found = () =>
    `the slow DELETE: ${then === undefined ? `a read then answers ${after.status}` : difference(before, then)}`;
  proof.must("unchanged", unchanged, found, OTHERS_MAY_CAUSE);
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
/** Ten to a write. */
const READS = { PUT: 400, PATCH: 160 } as const;

/** A query under which the limited caller sees the name or the email as it is: a policy may mask what it shows. */
async function asMainSees(t: Attempt, { fields }: Snapshot): Promise<string | undefined> {
  if (t.kit.profile.limited === undefined) return undefined;
  for (const field of WRITABLE) {
    const query = `?fields=${field}`;
    const seen = await t.get(t.kit.main, { query, caller: "limited", purpose: "read by the limited caller" });
    if (seen.status === 200 && Bun.deepEquals(t.fieldsOf(seen)[field], fields[field])) return query;
  }
  return undefined;
}

/** Readers among a chain of writes. */
async function readsAmongWrites(t: Attempt, method: "PUT" | "PATCH" = "PUT"): Promise<void> {
  const { deployment, main } = t.kit;
  const versions = new Map<string, { name: unknown; email: unknown }>();
  const first = await t.state(main, "read before");
  versions.set(first.tag, { name: first.fields.name, email: first.fields.email });
  const queries = [deployment.stateQuery, "?fields=name,email", "?fields=name", "?fields=email"];
  const reads: { query: string; seen: Seen; caller: Caller }[] = [];
  const limited = await asMainSees(t, first);
  let writing = true;
  const reader = async (_: unknown, lane: number) => {
    // Reads of another role may be other queries.
    const caller = lane === READERS - 1 && limited !== undefined ? "limited" : "main";
    for (let count = lane; writing && reads.length < (t.quick ? 40 : READS[method]); count += 1) {
      const query = (caller === "limited" ? limited : queries[count % queries.length]) ?? "";
      reads.push({ query, caller, seen: await t.get(main, { query, caller, purpose: "read among writes" }) });
    }
  };
  const writer = async () => {
    try {
      let { tag } = first;
      let { email } = storedValues(first);
      for (let count = 0; count < (t.quick ? 10 : READS[method] / 10); count += 1) {
        const fresh = t.kit.values.next();
        if (method === "PUT") ({ email } = fresh);
        const values = { name: fresh.name, email };
        const sent = method === "PUT" ? values : { name: fresh.name };
        const seen = await t.sendWrite(method, main, {
          ifMatch: tag,
          values: sent,
          purpose: "chain of writes",
        });
        t.needAccepted(method, seen);
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
  for (const { query, seen, caller } of reads) {
    const version = seen.status === 200 && seen.tag !== undefined ? versions.get(seen.tag) : undefined;
    if (version === undefined) continue;
    const { name, email } = t.fieldsOf(seen);
    if (name === undefined && email === undefined) continue;
    known += 1;
    const is = JSON.stringify(version);
    const by = caller === "limited" ? " by the limited caller" : "";
    const proof = t.proof(`${getOf(query)}${by} while others write`, `with ${seen.tag}: ${is}`);
    proof.show(seen, { came: `with ${seen.tag}: ${JSON.stringify({ name, email })}` });
    const together =
      (name === undefined || shows(name, String(version.name))) &&
      (email === undefined || shows(email, String(version.email)));
    const found = `a read showed the tag ${seen.tag} with ${JSON.stringify({ name, email })}; that version is ${is}`;
    proof.must("together", together, found);
  }
  if (known === 0) throw new CouldNotRun("no read among the writes showed a known tag", ["ETG-07"]);
  t.note += `; ${reads.length} reads among ${versions.size - 1} writes`;
}

type Link = { readonly who: string; readonly from: string; readonly to: string; readonly seen: Seen };

/** Each writer goes on from the tag of its own answer, or of the 412 that refused it, as clients do. */
async function chains(t: Attempt, method: "PUT" | "PATCH" = "PUT"): Promise<void> {
  const { main } = t.kit;
  const first = await t.state(main, "read before");
  const links: Link[] = [];
  const writer = async (who: string) => {
    let { tag } = first;
    // Over a connection that is kept: a writer that is refused writes again within the gap that a winner may leave open.
    const via = t.kit.wire.connect();
    try {
      for (let count = 0; count < (t.quick || method === "PATCH" ? 16 : 48); count += 1) {
        const seen = await t.sendWrite(method, main, { ifMatch: tag, purpose: who, via });
        if (seen.status >= 500) return;
        if (accepted(seen.status) && seen.tag !== undefined)
          links.push({ who, from: tag, to: seen.tag, seen });
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
      `${link.who}: ${method} with ${link.from}, the tag of its last answer`,
      "one link of one line",
    );
    proof.show(link.seen);
    const also = (by: "from" | "to") => links.find((other) => other !== link && other[by] === link[by]);
    const fork = also("from");
    const found = `${link.who} and ${fork?.who} were both accepted with ${link.from}`;
    proof.must("no-fork", fork === undefined, found, OTHERS_MAY_CAUSE);
    const same = also("to");
    const twice = `${link.who} and ${same?.who} were both told the new tag ${link.to}: one of them goes on from a write that is not its own`;
    proof.must("own-tag", same === undefined || same.from === link.from, twice, OTHERS_MAY_CAUSE);
  }
  t.note += `; ${links.length} accepted writes were linked`;
}

/** Where PATCH keeps the rules while nobody else writes; IFM-30, IFM-31 and ETG-11 blame it where it does not. */
async function racesPatches(t: Attempt): Promise<boolean> {
  return (
    (await t.patchOffered()) &&
    !t.leavesOut("chains of PATCHes") &&
    (await notEnforced(t, "PATCH")) === undefined
  );
}

export const interleaving: readonly Rule[] = [
  rule("ATM-05", "A slow body does not outlive its precondition", {
    spec: ["4.2 atomic"],
    reading:
      "A write by either caller whose headers came before, and whose body came after, another accepted write is stale. So is a DELETE that has a body.",
    hurts: "Each client on a slow line overwrites what others saved meanwhile.",
    needs: ["write"],
    after: PUT_RULES,
    async check(t) {
      await enforced(t, "PUT");
      for (let count = 0; count < (t.quick ? 1 : 3); count += 1) await slowBody(t, "PUT");
      if (await t.patchOffered()) await slowBody(t, "PATCH");
      if (t.kit.profile.limited !== undefined && !t.leavesOut("a slow body of the limited caller"))
        await slowBody(t, "PUT", "limited");
      const { deployment, ground } = t.kit;
      if (deployment.deleteOffered === false || ground.cannotMake !== undefined) return;
      if (!t.leavesOut("a slow body of a DELETE")) await slowDelete(t);
    },
  }),
  rule("ATM-06", "Tag and representation of a read belong together", {
    spec: ["1.2", "2.4.7"],
    reading:
      "While others write, a read by either caller never shows the tag of one version with the fields of another.",
    hurts:
      "A client merges on old values with a new tag, and its write is accepted: a lost update with all rules kept.",
    needs: ["write"],
    after: PUT_RULES,
    async check(t) {
      await readsAmongWrites(t);
      if (await racesPatches(t)) await readsAmongWrites(t, "PATCH");
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
      if (await racesPatches(t)) await chains(t, "PATCH");
    },
  }),
];

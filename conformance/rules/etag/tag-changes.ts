/** ETG: when the entity-tag changes, and which one a write answers. */
import { CouldNotRun, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { accepted } from "../../http/status.ts";
import type { Written } from "../../probe/answered.ts";
import type { Attempt, WriteOptions } from "../../probe/attempt.ts";
import { carriedValues } from "../../probe/refusals/refusal-probe.ts";
import { NEEDS } from "../../probe/refusals/refused.ts";
import type { Refused } from "../../probe/requests/if-match-forms.ts";
import { pathEnd, takenPaths } from "../../probe/requests/other-paths.ts";
import { rowsOf } from "../../probe/requests/request-shapes.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { notShown, type Snapshot, storedValues, WRITABLE } from "../../probe/snapshot.ts";
import type { Lines } from "../../probe/trial.ts";
import { saysNothing } from "../../probe/weather.ts";
import type { PatchForm } from "../../target/patch-form.ts";
import type { Values } from "../../target/values.ts";

const lost = "A stale client's token still matches: its write silently overwrites newer state.";
const unnoticed = "A write that was confirmed between a client's read and its own write goes unnoticed.";

/** A write that must be accepted for the rule to be looked at. */
async function write(
  t: Attempt,
  method: "PUT" | "PATCH",
  what: string,
  options: Pick<WriteOptions, "values" | "before" | "headers"> = {},
): Promise<Written> {
  const written = await t.write(method, { what, allowed: "accepted, and the ETag changes", ...options });
  t.needAccepted(method, written.seen, written);
  return written;
}

function mustChange(written: Written, of: string): boolean {
  const { before, now } = written;
  return written.must(
    "changes",
    now.tag !== before.tag,
    `the ETag did not change: after an accepted ${of} it is still ${before.tag}`,
  );
}

/** What is wrong with the tag of an answer, in words. @param answered what the answer to a write carried; `before` and `after` are what reads show. */
function wrongTag(answered: string | undefined, before: string, after: string): string {
  if (answered === before && before !== after)
    return `the answer carries the tag before the write, ${answered}; the next read shows ${after}`;
  if (answered === `W/${after}`)
    return `the answer carries the new tag weakened, ${answered}; the next read shows ${after}`;
  return `the answer carries ${answered}, which differs from what the next read shows, ${after}`;
}

/** The response of an accepted write carries the tag of now, and that tag serves the next write without a read. */
async function newTagIn(t: Attempt, method: "PUT" | "PATCH"): Promise<void> {
  t.needsStableTag();
  const first = await write(t, method, "the current tag");
  const { seen, before, now } = first;
  const missing = `the answer ${seen.status} of an accepted ${method} carries no ETag`;
  if (!first.must("etag", seen.tag !== undefined, missing) || seen.tag === undefined) return;
  const lines = `the answer ${seen.status} of an accepted ${method} carries ${seen.tags.length} ETag lines`;
  first.must("one-line", seen.tags.length === 1, lines);
  first.must("etag-current", seen.tag === now.tag, wrongTag(seen.tag, before.tag, now.tag), OTHERS_MAY_CAUSE);
  if (now.tag === before.tag || seen.tag !== now.tag) return;
  // Twice in a row, with no read in between: what only reads fill has not seen the tag.
  const isCurrent = true;
  const purpose = "first of two writes";
  const one = await t.sendWrite(method, t.kit.main, { ifMatch: now.tag, isCurrent, purpose });
  if (!accepted(one.status) || one.tag === undefined) return;
  const what = `with the tag ${one.tag} of the answer before, and no read in between`;
  const next = await t.writeOnly(method, t.kit.main, { ifMatch: one.tag, isCurrent, what, allowed: "2xx" });
  if (!saysNothing(next.seen, "main")) next.mustAnswer("serves-next", "2xx", OTHERS_MAY_CAUSE);
}

/** Words for what a customer may be, the harmless ones first: which of them a deployment knows is not shown (2.1). */
const STATUSES = ["inactive", "suspended", "disabled", "blocked", "pending", "active"];

/** Other statuses, in the letters and the type of one that is stored. */
function otherStatuses(stored: unknown): readonly (string | number)[] {
  if (typeof stored === "number") return [0, 1, 2].filter((other) => other !== stored);
  if (typeof stored !== "string") return [];
  const inCase = (word: string): string => {
    if (stored === stored.toLowerCase()) return word;
    return stored === stored.toUpperCase() ? word.toUpperCase() : word[0]?.toUpperCase() + word.slice(1);
  };
  return STATUSES.map(inCase).filter((other) => other !== stored);
}

/** How a status moves is not shown; one that a PATCH moves changes the tag like everything else (2.4.6). */
async function patchOfOtherStatus(t: Attempt): Promise<void> {
  const { ground, deployment } = t.kit;
  if (!deployment.patchesMembers || ground.cannotMake !== undefined) return;
  const to = await ground.make();
  const stored = await t.status(to);
  for (const status of otherStatuses(stored)) {
    const before = await t.state(to, "read before");
    const patch = await t.writeOnly("PATCH", to, {
      ifMatch: before.tag,
      isCurrent: true,
      body: JSON.stringify({ [deployment.bodyNames.status]: status }),
      what: `of the status alone, ${JSON.stringify(status)}`,
      allowed: "a new ETag, where it is accepted and the status is another then",
    });
    if (!patch.accepted) continue;
    const isMoved = Bun.deepEquals(await t.status(to), status);
    const read = await t.get(to, { query: deployment.stateQuery, purpose: "read after it" });
    // The status may hide the customer.
    const after = t.snapshotIn(read);
    if (after === undefined) return;
    // A copy that lags behind the status, or behind the tag, is ENV-04's to blame.
    const isLate = t.kit.doubts.has("reads lag") || (patch.seen.tag ?? before.tag) !== before.tag;
    if (!isMoved || isLate) return;
    patch.show(patch.seen, { before: before.seen, after: read });
    const found = `the ETag did not change: after an accepted PATCH of another status it is still ${before.tag}`;
    patch.must("changes", after.tag !== before.tag, found);
    return;
  }
}

type Way = Partial<Refused> & { readonly patchForm?: PatchForm };

/** The new tag is answered, and is new, in whatever way an accepted write was sent. */
async function everyWay(t: Attempt, method: "PUT" | "PATCH"): Promise<void> {
  t.needsStableTag();
  const see = [method === "PUT" ? "ETG-07" : "ETG-11"] as const;
  const usedKey: Lines = [["Idempotency-Key", crypto.randomUUID()]];
  const ordinary = await write(t, method, "the current tag", { headers: usedKey });
  if (ordinary.seen.tag === undefined || ordinary.seen.tag !== ordinary.now.tag)
    throw new CouldNotRun(`an ordinary ${method} does not answer the current tag`, see);
  if (ordinary.now.tag === ordinary.before.tag)
    throw new CouldNotRun("the tag does not change on an ordinary write", ["ETG-08", "ETG-11"]);
  const ways: (readonly [string, Way | ((tag: string) => Way)])[] = [...(await rowsOf(t, method, usedKey))];
  for (const preference of ["return=minimal", "return=representation"])
    ways.push([`with Prefer: ${preference}`, { headers: [["Prefer", preference]] }]);
  for (const other of await takenPaths(t)) ways.push([`at ${pathEnd(other)}`, { url: other.url }]);
  if (t.kit.ground.cannotMake === undefined) {
    // Where emails are unique it is refused; it is not left out without a word.
    const other = storedValues(await t.state(await t.kit.ground.second(), "read another customer"));
    const name = (stored: Values, fresh: Values) => (method === "PUT" ? fresh : stored).name;
    ways.push([
      "with the email of another customer",
      { values: (stored, fresh) => ({ name: name(stored, fresh), email: other.email }) },
    ]);
  }
  if (method === "PATCH")
    for (const patchForm of await t.otherPatchForms())
      ways.push(
        [`as ${patchForm.mediaType}`, { patchForm }],
        [`as ${patchForm.mediaType}, of the stored name`, { patchForm, values: (stored) => stored }],
      );
  let { now } = ordinary;
  for (const [what, way] of ways) {
    const { opening, allowed: _, ...shape } = typeof way === "function" ? way(now.tag) : way;
    if (opening !== undefined) continue;
    const sent = await t.write(method, {
      ...shape,
      values: carriedValues(t, method, shape, { now }),
      before: now,
      what: `the current tag, ${what}`,
      allowed: "the new ETag, where it is accepted",
    });
    const { seen, before, values } = sent;
    now = sent.now;
    // Such a request may be refused; that of the stored values is asked by ETG-09 and ETG-12.
    if (!sent.accepted) continue;
    sent.control({ differs: "it is sent the ordinary way", seen: ordinary.seen });
    const how = `the accepted ${method}, ${what},`;
    const stays = `after ${how} the ETag is still ${before.tag}`;
    const stored =
      shape.body === "{}" || !WRITABLE.some((field) => before.fields[field] !== now.fields[field]);
    sent.must("changes", now.tag !== before.tag, stays, stored ? { level: "SHOULD" } : {});
    const found = `the answer ${seen.status} to ${how} carries no ETag`;
    if (sent.must("etag", seen.tag !== undefined, found) && seen.tag !== undefined)
      sent.must(
        "etag-current",
        seen.tag === now.tag,
        wrongTag(seen.tag, before.tag, now.tag),
        OTHERS_MAY_CAUSE,
      );
    if (shape.body !== undefined || t.kit.doubts.has("reads lag")) continue;
    const lost = notShown(now.fields, values);
    const not = () => `${how} was answered ${seen.status}, and the new ${lost} is not read back`;
    sent.must("stored", lost === undefined, not, OTHERS_MAY_CAUSE);
  }
}

const everyWayRule = (id: Rule["id"], method: "PUT" | "PATCH"): Rule =>
  rule(id, `An accepted ${method} changes the ETag and answers the new one, in whatever way it is sent`, {
    spec: method === "PUT" ? ["2.4.6", "3 accepted", "4.2 204"] : ["2.4.6", "4.3 same"],
    reading:
      "In chunks, over HTTP/1.0, with parameters, with Prefer, by another caller, at another spelling of the address, of the stored values, under a used Idempotency-Key, in each media type that is taken: where such a request is accepted, it is stored and answered like an ordinary one. A write that changes nothing and keeps the tag is a warning here.",
    hurts: "A client must read again after each write, or its stale tag still matches.",
    needs: NEEDS[method],
    after: method === "PUT" ? ["ETG-07", "ETG-08"] : ["ETG-11"],
    check: (t) => everyWay(t, method),
  });

/** Changes that databases and code compare as none, unless they are told otherwise. */
const NEAR: readonly (readonly [field: keyof Values, now: string, change: (value: string) => string])[] = [
  ["name", "in capitals", (name) => name.toUpperCase()],
  ["name", "with a blank at its end", (name) => `${name} `],
  [
    "name",
    "with an accent on a letter",
    (name) => name.replace(/[aeiou]/i, (vowel) => `${vowel}\u0301`.normalize()),
  ],
  // Of the accent that it has by now.
  ["name", "in another Unicode form", (name) => name.normalize("NFD")],
  ["name", "with a letter beyond ASCII at its end", (name) => `${name}\u00f8`],
  ["email", "in capitals", (email) => email.toUpperCase()],
  ["name", "empty", () => ""],
];

/** A deployment may refuse such a value, or trim it; what it accepts changes the tag (2.4.6). */
async function nearChanges(t: Attempt, method: "PUT" | "PATCH", from: Snapshot): Promise<void> {
  let now = from;
  for (const [field, how, change] of NEAR) {
    const stored = storedValues(now);
    const changed = { [field]: change(stored[field]) };
    const written = await t.write(method, {
      what: `the stored values, the ${field} ${how}`,
      allowed: "accepted, and the ETag changes; or a 4xx",
      values: method === "PUT" ? { ...stored, ...changed } : changed,
      before: now,
    });
    if (written.accepted) mustChange(written, `${method} of the stored values, the ${field} ${how},`);
    now = written.now;
  }
}

/** A version kept in a byte, or a counter that wraps, comes back after 256 writes; with fewer rounds of races, sooner is enough. */
const WRITES_A_ROUND = 16;
const SERIES_MS = 4000;
const SERIES_QUICK_MS = 200;
/** However slow the deployment is. */
const SERIES_MIN = 24;
/** The share of the budget that a series may take: one in so many requests. */
const BUDGET_SHARE = 50;

/** As many further writes as there is time for, each with the tag of the answer before. */
async function longSeries(t: Attempt, tags: string[]): Promise<void> {
  const { rounds, budget } = t.kit.options;
  const most = Math.min(rounds * WRITES_A_ROUND, budget / BUDGET_SHARE);
  const start = performance.now();
  const had = new Set(tags);
  const proof = t.proof("further PUTs of the series", "a token that this customer never had");
  const limitMs = t.quick ? SERIES_QUICK_MS : SERIES_MS;
  while (tags.length < most && (tags.length < SERIES_MIN || performance.now() - start < limitMs)) {
    const put = await t.sendWrite("PUT", t.kit.main, { ifMatch: tags.at(-1) ?? "", purpose: "series" });
    if (!accepted(put.status)) return;
    const tag = put.tag ?? (await t.state(t.kit.main)).tag;
    proof.show(put, { came: `ETag ${tag}` });
    // What an answer shows and no read does is ETG-07's to blame.
    if (had.has(tag) && (await t.state(t.kit.main)).tag !== tag) return;
    const stays = tag === tags.at(-1);
    // Without an answered tag it may be a read that lags.
    if (stays && (put.tag === undefined || t.kit.doubts.has("tag stays"))) return;
    const kept = `after accepted PUT ${tags.length} of a series, sent without a read in between, the tag is still ${tag}`;
    if (!proof.must("moves", !stays, kept)) return;
    const age = tags.length - tags.indexOf(tag);
    if (!proof.must("never-again", !had.has(tag), `the tag ${tag} of ${age} writes ago is back`)) return;
    had.add(tag);
    tags.push(tag);
  }
}

export const tagChanges: readonly Rule[] = [
  rule("ETG-07", "An accepted PUT answers the new ETag", {
    spec: ["3 accepted", "4.2 204", "4.2 order 4"],
    reading: "The one that the next read shows and the next write may use.",
    hurts: "A client must read again after each write, or writes on with a wrong token and is refused.",
    needs: ["write"],
    after: ["ETG-04", "IFM-01"],
    check: (t) => newTagIn(t, "PUT"),
  }),
  rule("ETG-08", "The ETag changes on every accepted PUT", {
    spec: ["2.4.6", "3 accepted"],
    reading:
      "Also when the PUT changes the name alone, the email alone, or of one of them no more than the letter case, a blank, an accent or a letter beyond ASCII; and when it empties the name.",
    hurts: lost,
    needs: ["write"],
    after: ["IFM-01"],
    async check(t) {
      const both = await write(t, "PUT", "other values");
      if (!mustChange(both, "PUT")) return;
      const { name, email } = t.kit.values.next();
      const renamed = await write(t, "PUT", "another name alone", {
        values: { ...storedValues(both.now), name },
        before: both.now,
      });
      mustChange(renamed, "PUT of another name alone");
      const mailed = await write(t, "PUT", "another email alone", {
        values: { ...storedValues(renamed.now), email },
        before: renamed.now,
      });
      mustChange(mailed, "PUT of another email alone");
      await nearChanges(t, "PUT", mailed.now);
    },
  }),
  rule("ETG-09", "The ETag changes even when a PUT writes the same values", {
    spec: ["2.4.6", "2.4.4"],
    hurts: unnoticed,
    needs: ["write"],
    after: ["ETG-08"],
    async check(t) {
      const other = await write(t, "PUT", "other values");
      if (other.now.tag === other.before.tag)
        throw new CouldNotRun("the tag does not change even with the values", ["ETG-08"]);
      const put = await write(t, "PUT", "the values that are stored", {
        values: "as stored",
        before: other.now,
      });
      mustChange(put, "PUT of the same values");
    },
  }),
  rule("ETG-10", "Former values do not bring back a former ETag", {
    spec: ["2.4.3", "2.4.4", "2.4.6"],
    reading: "Values A, then B, then A again: three different tokens.",
    hurts: "A client that read the first A overwrites a history that it never saw.",
    needs: ["write"],
    after: ["ETG-08"],
    async check(t) {
      const first = (await write(t, "PUT", "values A")).now;
      const second = (await write(t, "PUT", "values B", { before: first })).now;
      if (second.tag === first.tag)
        throw new CouldNotRun("the tag does not change with the values", ["ETG-08"]);
      const again = await write(t, "PUT", "values A again", { values: storedValues(first), before: second });
      const { tag } = again.now;
      again.must("new", tag !== first.tag, `with the first values the first tag is back: ${tag}`);
    },
  }),
  rule("ETG-11", "An accepted PATCH changes the ETag and answers the new one", {
    spec: ["2.4.6", "4.3 same"],
    hurts: "A partial update would be invisible to other writers, and lost.",
    needs: NEEDS.PATCH,
    after: ["ETG-04", "IFM-30"],
    async check(t) {
      for (const field of WRITABLE) {
        const patch = await write(t, "PATCH", `another ${field}`, {
          values: { [field]: t.kit.values.next()[field] },
        });
        if (!mustChange(patch, `PATCH of the ${field}`)) return;
      }
      await nearChanges(t, "PATCH", await t.state(t.kit.main, "read before"));
      await newTagIn(t, "PATCH");
      await patchOfOtherStatus(t);
    },
  }),
  rule("ETG-12", "The ETag changes even when a PATCH writes the same value", {
    spec: ["2.4.6", "4.3 same"],
    hurts: "A confirmed update between read and write goes unnoticed.",
    needs: NEEDS.PATCH,
    after: ["ETG-11", "IFM-30"],
    async check(t) {
      const other = await write(t, "PATCH", "another name");
      if (other.now.tag === other.before.tag)
        throw new CouldNotRun("PATCH does not change the tag at all", ["ETG-11"]);
      const again = { values: "as stored", before: other.now } as const;
      const patch = await write(t, "PATCH", "the name that is stored", again);
      mustChange(patch, "PATCH of the same value");
    },
  }),
  rule("ETG-15", "No tag comes back in a customer's life", {
    spec: ["2.4.6"],
    reading: "Over a series of writes in quick succession. The result says how many were looked at.",
    hurts: "A client that slept through a series of writes holds a token that matches again.",
    needs: ["write"],
    after: ["ETG-08", "IFM-01"],
    async check(t) {
      let now = await t.state(t.kit.main, "read before");
      const tags = [now.tag];
      for (let count = 1; count <= (t.quick ? 3 : 16); count += 1) {
        const put = await write(t, "PUT", `the current tag, number ${count} of a series`, { before: now });
        now = put.now;
        const { tag } = now;
        // A tag that does not move is ETG-08's to blame, unless it moved there: one that a clock makes does, now and then.
        const stays = tag === tags.at(-1);
        if (stays && t.kit.doubts.has("tag stays"))
          throw new CouldNotRun("the tag does not change with each of these writes", ["ETG-08"]);
        if (stays && put.seen.tag !== undefined && put.seen.tag !== tag)
          throw new CouldNotRun("a read shows the state before an accepted PUT", ["ENV-04"]);
        put.must("moves", !stays, `after accepted PUT ${count} of a series the tag is still ${tag}`);
        const age = tags.length - tags.indexOf(tag);
        put.must("never-again", !tags.includes(tag) || stays, `the tag ${tag} of ${age} writes ago is back`);
        tags.push(tag);
      }
      if (new Set(tags).size > 1) await longSeries(t, tags);
      t.note = `; ${tags.length - 1} writes were looked at`;
    },
  }),
  everyWayRule("ETG-17", "PUT"),
  everyWayRule("ETG-18", "PATCH"),
];

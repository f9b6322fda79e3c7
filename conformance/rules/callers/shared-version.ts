/** AUT: the version of a customer, which all callers share. */

import type { Customer } from "../../fixtures/ground.ts";
import { CouldNotRun, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import type { Answered } from "../../probe/answered.ts";
import { type Attempt, SPECIAL } from "../../probe/attempt.ts";
import { unrefused } from "../../probe/callers/disclosure.ts";
import { forbidden } from "../../probe/callers/forbidden-field.ts";
import { readBy } from "../../probe/callers/read-by.ts";
import { enforced, notEnforced } from "../../probe/races/race.ts";
import { judgeRefusal } from "../../probe/refusals/refusal-verdict.ts";
import { ifMatch } from "../../probe/requests/if-match-forms.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { difference } from "../../probe/snapshot.ts";
import type { Field } from "../../target/profile-file.ts";

/** More than one field may be forbidden: the first that the limited caller does read. */
async function oneByOne(t: Attempt, fields: readonly Field[]): Promise<Answered | undefined> {
  for (const field of fields) {
    const read = await readBy(t, "limited", `?fields=${field}`, "200");
    if (read.seen.status === 200) return read;
  }
  return undefined;
}

/** Whether the limited caller's write is accepted with a tag that its own write has made stale. */
async function acceptsStale(t: Attempt, method: "PUT" | "PATCH", to: Customer): Promise<boolean> {
  const what = "a tag that is stale by a write of the same caller";
  const own = await t.control(method, { to, caller: "limited" });
  return (await t.write(method, { to, before: own, caller: "limited", ifMatch: ifMatch(own.former), what }))
    .accepted;
}

async function oneVersion(t: Attempt): Promise<void> {
  t.needsStableTag();
  // What is accepted from one caller alone is no matter of several.
  await enforced(t, "PUT");
  const patches = await t.patchOffered();
  const withoutPatch = patches ? await notEnforced(t, "PATCH") : undefined;
  const method = patches && withoutPatch === undefined ? "PATCH" : "PUT";
  const to = await t.ownCustomer();
  const { tag } = await t.state(to, "read before");
  // Another tag while nobody has written is AUT-06's to blame.
  const queries: string[] = [];
  for (const query of ["", "?fields=name"]) {
    const purpose = "fill what is kept for the limited caller";
    const seen = await t.get(to, { query, caller: "limited", purpose });
    if (seen.status === 200 && seen.tag === tag) queries.push(query);
  }
  const first = await t.control("PUT", { to });
  for (const query of queries) {
    const read = await readBy(t, "limited", query, `200 shows ETag ${first.tag}`, to);
    const { status, tag } = read.seen;
    const found = `after a PUT by the main caller, answered with ${first.tag}, the limited caller is shown ${tag ?? "no ETag"}`;
    if (status === 200) read.must("shown", tag === first.tag, found, OTHERS_MAY_CAUSE);
  }
  // The limited caller has not seen this tag.
  const shownToMain = await t.control("PUT", { to });
  const own = await t.write(method, {
    to,
    before: shownToMain,
    caller: "limited",
    what: "the current tag by the limited caller",
  });
  // One that may not write is told so; these say that the token is not the current one.
  const isConflict = [409, 412, 428].includes(own.seen.status) && own.after?.tag === shownToMain.tag;
  const refused = `the limited caller's ${method} with the current tag, which the main caller was answered, was answered ${own.seen.status}`;
  own.must("serves-all", !isConflict, refused, OTHERS_MAY_CAUSE);
  if (!own.accepted) {
    t.note = `; the limited caller's ${method} was answered ${own.seen.status}, so its writes were not looked at`;
    return t.mustHaveLooked(`the limited caller may neither read nor write (${own.seen.status})`);
  }
  const { now } = own;
  if (now.tag === shownToMain.tag)
    throw new CouldNotRun(`${method} does not change the tag, so none is stale`, ["ETG-08", "ETG-11"]);
  if (method === "PATCH") {
    const kept = Bun.deepEquals(now.fields.email, shownToMain.fields.email);
    own.must(
      "others-kept",
      kept,
      () => `a PATCH of the name: ${difference(shownToMain, now)}`,
      OTHERS_MAY_CAUSE,
    );
  }
  const late = await t.write("PUT", {
    to,
    before: now,
    ifMatch: ifMatch(shownToMain.tag),
    what: "the tag before a write by the limited caller",
    allowed: "412, and nothing changed",
  });
  judgeRefusal(t, late, "stale", { what: "the tag before a write by the limited caller" });
  const again = await t.control("PUT", { to });
  const what = "the tag before a write by the main caller, by the limited caller";
  // A refusal that comes and goes is the environment's.
  const theirs = await unrefused(() =>
    t.write(method, {
      to,
      before: again,
      caller: "limited",
      ifMatch: ifMatch(again.former),
      what,
      allowed: "412, and nothing changed",
    }),
  );
  if (theirs.accepted && (await acceptsStale(t, method, to)))
    throw new CouldNotRun(
      `a stale ${method} by the limited caller is accepted, whichever caller wrote before`,
      [SPECIAL[method].shapes],
    );
  const mayWrite = async () =>
    (await t.write(method, { to, caller: "limited", what: "the current tag, once more" })).accepted;
  // 403 is about the tag only where the same caller's current tag is still accepted.
  if (theirs.seen.status === 403 && !(await mayWrite()))
    t.note = "; the limited caller may no longer write, so its stale write was not judged";
  else judgeRefusal(t, theirs, "stale", { what });
  if (withoutPatch !== undefined) throw withoutPatch;
}

export const sharedVersion: readonly Rule[] = [
  rule("AUT-06", "A limited caller reads its allowed fields under the same tag", {
    spec: ["2.4.7", "5.2"],
    reading: "What the policy exposes is answered, and the token is that of the resource, for every caller.",
    hurts: "Callers are locked out of what they may see, or guard their writes with a tag of their own.",
    needs: ["limited"],
    after: ["ETG-04", "ETG-05"],
    async check(t) {
      t.needsStableTag();
      const { others } = await forbidden(t);
      const main = await t.get(t.kit.main, { purpose: "the main caller's tag" });
      const query = `?fields=${others.join(",")}`;
      const asked = await readBy(t, "limited", query, `200 with ${others.join(", ")}, ETag ${main.tag}`);
      const read = asked.seen.status === 200 ? asked : await oneByOne(t, others);
      if (
        read === undefined &&
        (await readBy(t, "limited", "", "200, if anything may be read")).seen.status !== 200
      )
        throw new CouldNotRun("the limited caller may read no field at all, which a policy may say");
      const found = `the limited caller reads none of ${others.join(", ")}: ${query} was answered ${asked.seen.status}`;
      asked.must("readable", read !== undefined, found);
      read?.must(
        "same-tag",
        read.seen.tag === main.tag,
        `the limited caller is shown the tag ${read.seen.tag}, the main caller ${main.tag}`,
        OTHERS_MAY_CAUSE,
      );
    },
  }),
  rule("AUT-14", "All callers share one version of a customer", {
    spec: ["1.3", "2.4.6", "3 stale", "4.1 rule 8"],
    reading:
      "The tag that the service gave to one caller is current for every caller, and a caller that may write gets 412 for a stale one, not 403. A write by one caller makes the tag of another stale, and shows in the reads of another. A PATCH by the limited caller leaves what it does not name, whether the caller may read it or not.",
    hurts: "Each caller is guarded against itself alone, and overwrites what others have saved.",
    needs: ["limited", "write"],
    after: ["ETG-08", "IFM-01", "IFM-03", "IFM-30", "AUT-06"],
    check: oneVersion,
  }),
];

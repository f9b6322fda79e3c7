/** AUT: writes by another tenant. */

import { CouldNotRun, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { accepted, isGone } from "../../http/status.ts";
import type { Seen } from "../../http/wire.ts";
import type { Answered } from "../../probe/answered.ts";
import type { Attempt } from "../../probe/attempt.ts";
import {
  headTellsNoTag,
  mustHideValues,
  mustTellNothing,
  unrefused,
  valuesIn,
} from "../../probe/callers/disclosure.ts";
import { readBy } from "../../probe/callers/read-by.ts";
import {
  asSent,
  STRANGERS_FORMS,
  strangersTarget,
  type WayOfWriting,
  waysOfWriting,
} from "../../probe/callers/strangers-writes.ts";
import type { Prepared } from "../../probe/prepared.ts";
import {
  type Derive,
  firstOfEach,
  INEXACT,
  ifMatch,
  type Refused,
} from "../../probe/requests/if-match-forms.ts";
import { otherPathsOf, pathEnd } from "../../probe/requests/other-paths.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { difference } from "../../probe/snapshot.ts";

/** Refused in a parser, which may load the customer for its answer and know no tenant. */
const WRONG_FORMS = firstOfEach(INEXACT.list, INEXACT.weak, INEXACT.unquoted);
const BAD_BODIES: readonly Derive[] = [
  (tag) => ({ what: "the current tag and an empty object", lines: ifMatch(tag), body: "{}" }),
  (tag) => ({ what: "the current tag and broken JSON", lines: ifMatch(tag), body: "{" }),
  () => ({ what: "no If-Match and an empty object", lines: [], body: "{}" }),
];

const TAG_CHARACTERS_MIN = 8;

/** Whether the answer tells the tag: as its ETag, or in the text where the tag is too long to be there by chance. */
function tellsTag(seen: Seen, tag: string): boolean {
  return seen.tag === tag || (tag.length >= TAG_CHARACTERS_MIN && seen.text.includes(tag.slice(1, -1)));
}

type Foreign = {
  readonly way: WayOfWriting;
  readonly sent: Refused;
  /** The customer, updated once, so that it has a former tag. */
  readonly at: Prepared;
  readonly what: string;
};

/** The same request by the same stranger to a customer that nobody has. */
async function toNobody(t: Attempt, { way, sent }: Foreign): Promise<{ seen: Seen; id: string }> {
  const nobody = t.kit.ground.missing();
  const purpose = "control request: a customer that nobody has";
  const { seen } = await unrefused(async () => ({
    seen: await t.sendWrite(way.method, nobody, { ...asSent(sent, way), purpose }),
  }));
  return { seen, id: nobody.id };
}

/** Every way of writing with every form; a customer that was not left alone is followed by another. */
async function foreignWrites(
  t: Attempt,
  all: readonly Derive[],
  /** @returns whether the customer is as before */
  look: (write: Foreign, proof: Answered) => Promise<boolean>,
): Promise<void> {
  await t.control("PUT");
  for (const way of await waysOfWriting(t)) {
    let at = await strangersTarget(t);
    for (const derive of all) {
      const sent = derive(at.now.tag, at.former, at.customer);
      if (sent === undefined || (way.method === "DELETE" && sent.body !== undefined)) continue;
      const form = way.patchForm === undefined ? "" : ` as ${way.patchForm.mediaType}`;
      const what = `by another tenant with ${sent.what}${form}`;
      const proof = await t.writeOnly(way.method, at.customer, {
        ...asSent(sent, way),
        what,
        allowed: "refused like one to a customer that nobody has; nothing changed",
      });
      if (proof.seen.status === 401)
        throw new CouldNotRun("the other tenant's credentials are refused with 401");
      const kept = await look({ way, sent, at, what: `${way.method} ${what}` }, proof);
      if (!kept) at = await strangersTarget(t);
    }
  }
}

/** Reads back what a stranger's write has done. @returns whether the customer is as before */
async function readBack(
  t: Attempt,
  at: Prepared,
  proof: Answered,
): Promise<{ same: boolean; now: () => string }> {
  const read = await t.get(at.customer, { query: t.kit.deployment.stateQuery, purpose: "read back" });
  const after = isGone(read.status) ? undefined : t.snapshot(read);
  const same = after !== undefined && t.same(at.now, after);
  proof.show(proof.seen, { before: at.now.seen, after: read, unchanged: same });
  return {
    same,
    now: () => (after === undefined ? "the customer is gone" : difference(at.now, after)),
  };
}

/** PUT by every other spelling of the address, the other methods by the one that most frameworks take for the same. */
async function writesByOtherPaths(t: Attempt): Promise<void> {
  let at = await strangersTarget(t);
  for (const way of await waysOfWriting(t)) {
    if (way.patchForm !== undefined) continue;
    const count = way.method === "PUT" ? otherPathsOf(t, at.customer).length : 1;
    for (let nth = 0; nth < count; nth += 1) {
      const path = otherPathsOf(t, at.customer)[nth] ?? at.customer;
      const what = `by another tenant with the current tag to ${pathEnd(path)}`;
      const proof = await t.writeOnly(way.method, at.customer, {
        ifMatch: ifMatch(at.now.tag),
        caller: "other-tenant",
        what,
        url: path.url,
        allowed: "nothing changed",
      });
      const { same, now } = await readBack(t, at, proof);
      proof.must("unchanged", same, now, OTHERS_MAY_CAUSE);
      if (!same) at = await strangersTarget(t);
    }
  }
}

/** To customers that were never updated: what is joined with their history finds none. */
async function writesOfFresh(t: Attempt): Promise<void> {
  for (const way of await waysOfWriting(t)) {
    if (way.patchForm !== undefined) continue;
    const customer = await t.kit.ground.make();
    const now = await t.state(customer, "read before");
    const proof = await t.writeOnly(way.method, customer, {
      ifMatch: now.tag,
      caller: "other-tenant",
      what: "by another tenant with the current tag to a customer that was never updated",
      allowed: "nothing changed",
    });
    const back = await readBack(t, { customer, former: now.tag, now }, proof);
    proof.must("unchanged", back.same, back.now, OTHERS_MAY_CAUSE);
  }
}

/** Whether it is answered like a customer that nobody has: a DELETE may be idempotent (7 says 404 of GET and PUT alone). */
async function nobodysToo(t: Attempt, write: Foreign, { seen }: Answered): Promise<boolean> {
  if (write.way.method !== "DELETE" || seen.tags.length > 0 || valuesIn(seen, write.at.now).length > 0)
    return false;
  return (await toNobody(t, write)).seen.status === seen.status;
}

export const otherTenantWrites: readonly Rule[] = [
  rule("AUT-09", "Another tenant cannot change the customer, whatever tag it sends", {
    spec: ["5.2", "4.1 rule 6"],
    reading: "Where the address is spelled otherwise the status is open, and nothing is changed either.",
    hurts: "One tenant overwrites or deletes another's customers.",
    needs: ["other-tenant", "write"],
    after: ["IFM-01"],
    async check(t) {
      await foreignWrites(t, STRANGERS_FORMS, async (write, proof) => {
        const { status } = proof.seen;
        const { same, now } = await readBack(t, write.at, proof);
        const refused = !accepted(status) || (same && (await nobodysToo(t, write, proof)));
        proof.must("refused", refused, `${write.what} was answered ${status}`);
        proof.must("unchanged", same, now, OTHERS_MAY_CAUSE);
        return same;
      });
      await writesByOtherPaths(t);
      if (t.kit.ground.cannotMake === undefined) await writesOfFresh(t);
    },
  }),
  rule("AUT-10", "Another tenant never learns the current tag, nor that the customer exists", {
    spec: ["5.2", "4.1 rule 6"],
    reading:
      "The tenant is checked before the token and the body: no refusal to another tenant, also of a list, `*`, a weak or an unquoted tag, carries the token or a value, and none but 403 differs from that of a customer that nobody has. HEAD does not carry the token either: it is GET without its body (RFC 9110 9.3.2).",
    hurts: "A 412 tells a stranger that the customer exists and when it changes.",
    needs: ["other-tenant", "write"],
    after: ["IFM-01"],
    async check(t) {
      const main = await t.state(t.kit.main, "control request: the main caller");
      const read = await readBy(t, "other-tenant", "", "no 2xx, and no value of the customer");
      const carries = `the answer ${read.seen.status} to another tenant's GET carries the tag ${main.tag}`;
      if (!accepted(read.seen.status)) {
        const told = !read.must("no-tag", !tellsTag(read.seen, main.tag), carries);
        if (!told) await headTellsNoTag(t, "other-tenant", "another tenant", main.tag);
      }
      const more = t.leavesOut("a list, a weak and an unquoted tag by another tenant") ? [] : WRONG_FORMS;
      await foreignWrites(t, [...STRANGERS_FORMS, ...more, ...BAD_BODIES], async (write, proof) => {
        const { way, sent, at, what } = write;
        const { seen } = proof;
        // AUT-09 blames it.
        if (accepted(seen.status)) return false;
        const found = `the answer ${seen.status} to ${what} carries the tag ${at.now.tag}`;
        proof.must("no-tag", !tellsTag(seen, at.now.tag), found);
        mustHideValues(proof, seen, at.now, what);
        const again = async () => {
          const options = { ...asSent(sent, way), purpose: "the same request again" };
          return { seen: await t.sendWrite(way.method, at.customer, options), id: at.customer.id };
        };
        await mustTellNothing(proof, at.customer.id, what, (to) =>
          to === "customer" ? again() : toNobody(t, write),
        );
        return true;
      });
    },
  }),
];

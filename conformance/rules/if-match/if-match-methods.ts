/** IFM: If-Match on PATCH and DELETE, and what all three methods have alike. */

import type { Customer } from "../../fixtures/ground.ts";
import { CouldNotRun, Inconclusive, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { isClientError, isGone } from "../../http/status.ts";
import type { Seen } from "../../http/wire.ts";
import type { Written } from "../../probe/answered.ts";
import { type Attempt, BASE, SPECIAL } from "../../probe/attempt.ts";
import { type Prepared, preparedFor, updatedCustomer } from "../../probe/prepared.ts";
import { eventsBefore, justBefore } from "../../probe/races/just-before.ts";
import { together } from "../../probe/races/together.ts";
import { afterBase, NEEDS, refusal, refused, refusedInARow } from "../../probe/refusals/refused.ts";
import { shapes } from "../../probe/refusals/refused-shapes.ts";
import {
  BLANKS,
  type Derive,
  EMPTY,
  HOSTILE,
  INEXACT,
  ifMatch,
  memberStandIns,
  NONE,
  PREVIOUS,
  standIns,
  worded,
} from "../../probe/requests/if-match-forms.ts";
import { pathEnd, takenPaths } from "../../probe/requests/other-paths.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { type Method, shows, WRITABLE } from "../../probe/snapshot.ts";
import type { AskOptions, Shape } from "../../probe/trial.ts";
import { saysNothing } from "../../probe/weather.ts";
import type { SpecKey } from "../../specification/spec.ts";
import type { Values } from "../../target/values.ts";

export const overwrite = "A write that its sender did not base on the current state overwrites it silently.";
export const EXACT: readonly SpecKey[] = ["4.2 exact", "3 stale"];

/** 412 carries the tag of now: the one that a read shows, with which a write is accepted. */
async function currentTagIn412(t: Attempt, method: Method): Promise<void> {
  const { customer, former, now } = await preparedFor(t, method);
  const stale = await t.write(method, {
    to: customer,
    ifMatch: ifMatch(former),
    before: now,
    what: "a stale tag",
    allowed: `412 with ETag ${now.tag}`,
  });
  const { status, tag } = stale.seen;
  if (status !== 412)
    throw new CouldNotRun(`a stale ${method} was answered ${status}, not 412`, [BASE[method].stale]);
  // Until it is shown to tell the tag, no other rule blames a 412 that does not.
  const { doubts } = t.kit;
  doubts.add(`tag of 412 on ${method}`);
  if (!stale.must("etag", tag !== undefined, `the 412 of ${method} carries no ETag`) || tag === undefined)
    return;
  if (tag !== now.tag && (await t.state(customer, "read again")).tag === tag)
    throw new CouldNotRun("the read before showed an older tag than the 412", ["ENV-04"], OTHERS_MAY_CAUSE);
  const { length } = stale.seen.tags;
  stale.must("one-line", length === 1, `the 412 of ${method} carries ${length} ETag lines`);
  const current = `the 412 of ${method} carries ${tag}; the current tag is ${now.tag}`;
  if (!stale.must("etag-current", tag === now.tag, current, OTHERS_MAY_CAUSE)) return;
  doubts.delete(`tag of 412 on ${method}`);
  // A client that retries with it.
  const retry = await t.write(method, {
    to: customer,
    ifMatch: tag,
    before: now,
    what: `the tag ${tag} of a 412`,
  });
  if (!retry.mustAnswer("retry", "2xx", OTHERS_MAY_CAUSE) || method === "DELETE") return;
  // And one that does so without a read in between: what only reads fill has not seen the tag.
  const again = await t.sendWrite(method, customer, { ifMatch: tag, purpose: "stale once more" });
  if (again.status !== 412 || again.tag === undefined) return;
  const what = `with the tag ${again.tag} of a 412, and no read in between`;
  const next = await t.writeOnly(method, customer, { ifMatch: again.tag, what, allowed: "2xx" });
  if (!saysNothing(next.seen, "main")) next.mustAnswer("retry-at-once", "2xx", OTHERS_MAY_CAUSE);
}

/** A check that stands in another place, or answers a router's other address, may know no tag. */
async function tagHoweverSent(t: Attempt, method: Method): Promise<void> {
  const { customer, former, now } = await preparedFor(t, method);
  const bodies =
    method === "DELETE" ? [] : [["broken JSON", "{"] as const, ["an empty object", "{}"] as const];
  const ways: readonly (readonly [how: string, way: AskOptions, see: Rule["id"]])[] = [
    ...bodies.map(([what, body]) => [`and ${what}`, { body }, "ORD-11"] as const),
    ...(await takenPaths(t, customer)).map(
      (at) => [`at ${pathEnd(at)}`, { url: at.url }, SPECIAL[method].shapes] as const,
    ),
  ];
  for (const [how, way, see] of ways) {
    const what = `with a stale tag ${how}`;
    const allowed = `412 with ETag ${now.tag}, or another refusal`;
    const probe = await t.writeOnly(method, customer, { ...way, ifMatch: ifMatch(former), what, allowed });
    const { status, tag } = probe.seen;
    if (tag !== now.tag && (await t.state(customer)).tag !== now.tag)
      throw probe.accepted
        ? probe.breach(`${method} ${what} was answered ${status} and applied`, [see])
        : new CouldNotRun(`somebody wrote the customer beside ${method} ${what}`, [], OTHERS_MAY_CAUSE);
    if (status !== 412) continue;
    const carries = tag === undefined ? "no ETag" : `the ETag ${tag}`;
    const found = `the 412 to ${method} ${what} carries ${carries}; the current tag is ${now.tag}`;
    probe.must("etag-however-sent", tag === now.tag, found, OTHERS_MAY_CAUSE);
  }
}

/** A body that an accepted write is answered with is of no fixed shape; but where it shows the name, it is the new one. */
export function showsNew(t: Attempt, written: Written): void {
  const { seen, values, before } = written;
  const { name } = t.fieldsOf(seen);
  const old = name !== undefined && name === before.fields.name && name !== values.name;
  const found = `the answer ${seen.status} shows the former name, ${JSON.stringify(name)}`;
  written.should("shows-new", !old, found);
}

export async function padded(t: Attempt, method: Method, name: string): Promise<void> {
  for (const [before, after] of [
    ["  ", ""],
    ["", "  "],
    ["\t", " \t"],
  ] as const) {
    const { customer, control, now } = await preparedFor(t, method);
    const write = await t.write(method, {
      to: customer,
      ifMatch: ifMatch(`${before}${now.tag}${after}`),
      before: now,
      what: "the current tag between blanks",
      allowed: "accepted like the bare tag",
    });
    if (control !== undefined) write.control({ ...control, differs: "no blanks" });
    write.mustAnswer(name, "2xx", OTHERS_MAY_CAUSE);
  }
}

/** So many writes go before those that are looked at one by one. */
const HISTORY_WRITES = 56;
const LAST_LOOKED_AT = 6;

/** So many PUTs, each with the tag of the answer before. @returns the tags that they made former ones */
async function makeFormer(t: Attempt, customer: Customer, writes: number): Promise<string[]> {
  const tags: string[] = [];
  let { tag } = await t.state(customer, "read before");
  for (let write = 0; write < writes; write += 1) {
    tags.push(tag);
    const seen = await t.sendWrite("PUT", customer, { ifMatch: tag, purpose: "makes a tag a former one" });
    t.needAccepted("PUT", seen);
    tag = seen.tag ?? (await t.state(customer)).tag;
  }
  return tags;
}

/** Values A, B, A, and A once more: the tags from before all of them must be refused, and those of long ago. */
async function formerTags(t: Attempt, method: Method): Promise<void> {
  // A customer of its own has its first tag still to be remembered; where none can be made, the oldest known one.
  const customer = await t.ownCustomer();
  // PUT and PATCH meet the long history of the main customer besides; a DELETE needs a customer to itself.
  const long = method === "DELETE" && !t.leavesOut("DELETE with tags of more than six writes ago");
  const tags = await makeFormer(t, customer, long ? HISTORY_WRITES : 1);
  const [first, second] = [t.kit.values.next(), t.kit.values.next()];
  const write = async (by: "PUT" | "PATCH", values: Partial<Values> | "as stored"): Promise<Prepared> => {
    const control = await t.control(by, { to: customer, values });
    tags.push(control.former);
    const differs = `it is a ${by}, and If-Match was the current tag`;
    return {
      customer,
      former: control.former,
      now: control,
      control: { differs, seen: control.written.seen },
    };
  };
  for (const values of [first, second, first]) await write("PUT", values);
  const at = await write("PUT", "as stored");
  if (long) await unversionedAfterManyWrites(t, at);
  const last = tags.slice(-LAST_LOOKED_AT);
  const old = tags.slice(0, -LAST_LOOKED_AT).filter((_, index) => index % 14 === 0);
  const form = (former: string): Derive => {
    const age = tags.length - tags.lastIndexOf(former);
    return () => ({ what: `the former tag of ${age} writes ago`, lines: ifMatch(former) });
  };
  const bodies = "one";
  // Its control request ends a customer's life, so it comes with the last of them.
  const patched = method !== "DELETE" && (await t.patchOffered());
  await refused(t, method, "stale", [...last, ...old].map(form), { customer, at, bodies });
  if (patched) {
    const now = await write("PATCH", "as stored");
    await refused(t, method, "stale", tags.slice(-2).map(form), { customer, at: now, bodies });
  }
  if (method !== "DELETE") await longAgo(t, method);
}

/** What keeps the last versions of a customer may forget that it has any. */
async function unversionedAfterManyWrites(t: Attempt, at: Prepared): Promise<void> {
  const more = `to a customer that was written ${HISTORY_WRITES} times`;
  const forms = [NONE, ...BLANKS.slice(0, 1)].map((derive) => worded(derive, more));
  const { control } = at;
  if (control !== undefined) await refused(t, "DELETE", "missing", forms, { at, bodies: "one", control });
}

/** So many of the tags that the main customer has had in this run. */
const HISTORY_TRIED = 6;

async function longAgo(t: Attempt, method: "PUT" | "PATCH"): Promise<void> {
  const { main, wire } = t.kit;
  const known = () => [...wire.onlooker.knownTags(new URL(main.url).pathname)];
  // A rule that runs alone, or on a customer of its lane, begins with a short history.
  const missing = HISTORY_WRITES - known().length;
  if (missing > 0) await makeFormer(t, main, missing);
  const tags = known().slice(0, -LAST_LOOKED_AT);
  const every = Math.ceil(tags.length / HISTORY_TRIED);
  const tried = tags
    .map((former, index): Derive => {
      const what = `a former tag, number ${index + 1} of ${tags.length} in this run`;
      return () => ({ what, lines: ifMatch(former) });
    })
    .filter((_, index) => index % every === 0);
  const at = await preparedFor(t, method);
  if (at.control !== undefined) await refusedInARow(t, method, "stale", tried, at.control, at);
}

/** What a body is answered whose shape a deployment does not take. */
const NOT_TAKEN: readonly number[] = [400, 415, 422];

const patch = rule("IFM-30", "PATCH with the current tag is accepted and applied", {
  spec: ["3 same rule", "4.3 same"],
  reading:
    "The named fields are changed (name, email, both), the others stay, in each media type that is taken. The email alone, and both, may be refused by 400, 415 or 422: the payload is not shown (4.3).",
  hurts: "Nobody can update a part, or loses the rest by it.",
  needs: NEEDS.PATCH,
  after: ["IFM-01"],
  async check(t) {
    // By PUT first, so that both values are known and not empty: a PATCH that wipes the rest has something to wipe.
    const before = await t.control("PUT");
    const patch = await t.write("PATCH", {
      before,
      allowed: "2xx; the name is new and the email is as before",
    });
    const { statuses = "2xx" } = t.kit.profile.patch;
    if (!patch.mustAnswer("accepted", statuses, OTHERS_MAY_CAUSE)) return;
    showsNew(t, patch);
    changesWhatItNames(patch);
    for (const fields of [["email"], ["name", "email"]] as const) {
      const fresh = t.kit.values.next();
      const other = await t.write("PATCH", {
        values: Object.fromEntries(fields.map((field) => [field, fresh[field]])),
        what: `the current tag, of ${fields.join(" and ")},`,
        allowed: "2xx; what it names is new, the rest as before",
      });
      if (NOT_TAKEN.includes(other.seen.status)) other.mustNotChange();
      else if (other.mustAnswer("accepted", statuses, OTHERS_MAY_CAUSE)) changesWhatItNames(other);
    }
    for (const patchForm of await t.otherPatchForms(t.kit.main, true)) {
      const other = await t.write("PATCH", {
        // The probe that detected this media type may already have cleared the email.
        before: await t.control("PUT"),
        patchForm,
        what: `the current tag, as ${patchForm.mediaType},`,
        allowed: "where it is accepted, the name is new and the email is as before",
      });
      if (other.accepted) changesWhatItNames(other);
    }
  },
});

function changesWhatItNames(patch: Written): void {
  const { before, values, now } = patch;
  const as = (value: unknown) => JSON.stringify(value);
  for (const field of WRITABLE) {
    const [was, written, is] = [before.fields[field], values[field], now.fields[field]];
    const found = () =>
      written === undefined
        ? `${field} was ${as(was)} and after a PATCH of ${Object.keys(values).join()} is ${as(is)}`
        : `${field} was patched to ${as(written)} and is read back as ${as(is)}`;
    if (written === undefined) patch.must("others-kept", is === was, found, OTHERS_MAY_CAUSE);
    else patch.must("applied", shows(is, written), found, OTHERS_MAY_CAUSE);
  }
}

const remove = rule("IFM-40", "DELETE with the current tag is accepted", {
  spec: ["3 same rule", "4.3 same"],
  reading:
    "It takes effect: the customer is gone, or (soft delete) its token is a new one. Also where the limited caller may delete, or another spelling of the address is taken.",
  hurts: "Nobody can delete, or is told so although nothing happened.",
  needs: NEEDS.DELETE,
  async check(t) {
    const customer = await t.kit.ground.make();
    const removal = await t.write("DELETE", { to: customer });
    if (!removal.mustAnswer("accepted", t.kit.profile.delete.statuses ?? "2xx")) return;
    if (!(await takesEffect(t, customer, removal))) return;
    const spelled = (await takenPaths(t)).length;
    for (let nth = 0; nth < spelled; nth += 1) {
      const to = await t.kit.ground.make();
      const url = (await takenPaths(t, to))[nth]?.url;
      if (url === undefined) continue;
      const what = `the current tag at ${pathEnd({ ...to, url })}`;
      const there = await t.write("DELETE", { to, url, what, allowed: "refused, or applied" });
      if (there.accepted) await takesEffect(t, to, there);
    }
    if (t.kit.profile.limited === undefined) return;
    const other = await t.kit.ground.make();
    const theirs = await t.write("DELETE", {
      to: other,
      caller: "limited",
      what: "the current tag by the limited caller",
      allowed: "refused, or applied",
    });
    if (theirs.accepted) await takesEffect(t, other, theirs);
    else
      t.note = `; the limited caller's DELETE was answered ${theirs.seen.status}, so its effect was not looked at`;
  },
});

/** @throws Inconclusive where it was answered 202 and is not applied in time */
async function takesEffect(t: Attempt, customer: Customer, removal: Written): Promise<boolean> {
  const { seen, before } = removal;
  const after = await t.untilGone(customer, removal);
  const still = after.status === 200 && after.tag === before.tag;
  if (seen.status === 202 && still)
    throw new Inconclusive(
      "DELETE was answered 202 and is not applied yet; 202 does not say when it will be",
    );
  const found = `after an accepted ${removal.evidence.probe} a read still answers 200 with the same tag ${before.tag}`;
  return removal.must("effect", !still, found);
}

const HURTS = {
  PATCH: { stale: "Lost updates through PATCH.", missing: "Blind partial writes" },
  DELETE: {
    stale: "A customer that somebody has just updated is deleted by someone who did not know.",
    missing: "Blind deletes",
  },
} as const;

const specOf = (on: Method): readonly SpecKey[] =>
  on === "PATCH" ? ["4.3 same", "4.3 PATCH"] : on === "PUT" ? [] : ["4.3 same"];

/** The rules that PUT has one by one, in fewer. */
function asOnPut(on: "PATCH" | "DELETE"): Rule[] {
  const base = BASE[on];
  const spec = specOf(on);
  const { stale, missing } = HURTS[on];
  return [
    refusal(base.stale, `${on} with the previous tag is refused with 412`, {
      spec: [...spec, "3 stale"],
      on,
      kind: "stale",
      hurts: stale,
      forms: PREVIOUS,
    }),
    rule(base.missing, `${on} without If-Match is refused with 428`, {
      spec: [...spec, "3 missing"],
      reading:
        on === "PATCH"
          ? "In none of the forms of body that it takes. Nothing stands in for If-Match."
          : "Nothing stands in for If-Match. No read misses the customer right after a refusal.",
      hurts: `${missing}.`,
      needs: NEEDS[on],
      after: afterBase(base.missing, on),
      async check(t) {
        await refused(t, on, "missing", [NONE]);
        const members = on === "PATCH" ? memberStandIns(false) : [];
        // What stands in for a header does not hang on the form of the body.
        await refused(t, on, "missing", [...standIns(), ...members], { bodies: "one" });
        if (on === "DELETE") await staysVisible(t);
      },
    }),
    refusal(base.blank, `${on} with a blank If-Match is refused with 428`, {
      spec: [...spec, "3 missing"],
      on,
      kind: "missing",
      hurts: `${missing} by a client whose variable was blank.`,
      forms: [...EMPTY, ...BLANKS],
    }),
    rule(SPECIAL[on].exact, `${on} compares exactly`, {
      spec: [...spec, ...EXACT],
      reading:
        "Weak, unquoted, `*`, another case, an addition, no tag at all, hostile text: refused as on PUT; a list by 412 or 400. A padded tag is accepted.",
      hurts: overwrite,
      needs: NEEDS[on],
      after: afterBase(SPECIAL[on].exact, on, "stale"),
      async check(t) {
        const gently = t.gentlyLeavesOut(`text in If-Match of ${on} that looks like an attack`);
        const kinds = [...Object.values(INEXACT), ...(gently ? [] : [HOSTILE])];
        const forms = t.leavesOut("all but two forms of each kind of inexact tag")
          ? kinds.flatMap((kind) => kind.slice(0, 2))
          : kinds.flat();
        await refused(t, on, "stale", forms);
        await padded(t, on, "padded");
      },
    }),
  ];
}

/** The rules that all three methods have alike. */
function alike(on: Method): Rule[] {
  const { tag412 } = BASE[on];
  const { shapes: id, former } = SPECIAL[on];
  const spec = specOf(on);
  return [
    rule(tag412, `412 on ${on} carries the current ETag`, {
      spec: on === "PUT" ? ["3 stale", "4.2 412", "7 412"] : [...spec, "7 412"],
      reading:
        "The token of now: the one that a read shows, with which a retry is accepted. Also where the body is bad, and at another spelling of the address that is taken.",
      hurts: "A client cannot tell how far it lagged, or retries with a token that is refused again.",
      needs: NEEDS[on],
      after: afterBase(tag412, on, "stale"),
      async check(t) {
        await currentTagIn412(t, on);
        if (!t.kit.doubts.has(`tag of 412 on ${on}`)) await tagHoweverSent(t, on);
      },
    }),
    rule(former, `${on} with any former tag is refused`, {
      spec: on === "PUT" ? ["3 stale", "1.3"] : [...spec, "3 stale", "1.3"],
      reading:
        "However long ago it was current; also when the values are again what they were under it, and after a write of the values that were stored.",
      hurts: "A client that slept for several versions overwrites them all.",
      needs: NEEDS[on],
      after: afterBase(former, on, "stale"),
      check: (t) => formerTags(t, on),
    }),
    rule(id, `No way of sending a ${on} is exempt from If-Match`, {
      spec: [...spec, "7 rule 2", "3 missing", "3 stale"],
      reading:
        "The second request of a connection, a chunked body, HTTP/1.0, another spelling of the address, another caller, a used Idempotency-Key, the values that are stored, a customer that was never updated, one of the limited caller's or another tenant's own: missing, blank and stale are refused alike. Where such a request is not taken with the current tag either, any refusal will do.",
      hurts: "The check protects those who ask politely; everybody else overwrites.",
      needs: NEEDS[on],
      after: afterBase(id, on, "stale", "missing"),
      check: (t) => shapes(t, on),
    }),
  ];
}

const afterEvents = rule("IFM-49", "What happened right before opens no way past If-Match", {
  spec: ["3 stale", "3 missing", "3 same rule"],
  reading:
    "A 304, a HEAD, an OPTIONS, a refused read, a failed write, a look by another caller or another tenant: a stale or missing If-Match is refused after each of them as ever.",
  hurts:
    "A flag or an entity that is left over from one request lets the next one overwrite what nobody read.",
  needs: ["write"],
  after: (["PUT", "PATCH", "DELETE"] as const).flatMap((method) => [
    ...afterBase("IFM-49", method, "stale", "missing"),
    SPECIAL[method].shapes,
  ]),
  async check(t) {
    const { deployment, ground } = t.kit;
    const events = await eventsBefore(t);
    await justBefore(t, "PUT", events);
    if (t.leavesOut("what happened right before a PATCH or a DELETE")) return;
    if (await t.patchOffered()) await justBefore(t, "PATCH", events);
    if (deployment.deleteOffered !== false && ground.cannotMake === undefined)
      await justBefore(t, "DELETE", events);
  },
});

/** Reads that a service may answer by different code. */
const LOOKS: readonly (readonly [how: string, shape: Shape])[] = [
  ["GET", {}],
  ["GET ?fields=name", { query: "?fields=name" }],
  ["GET ?fields=id,status", { query: "?fields=id,status" }],
  ["GET with another tag in If-None-Match", { headers: [["If-None-Match", '"kit-other"']] }],
  ["GET by the limited caller", { caller: "limited" }],
];

/** Some services carry out a DELETE halfway before they refuse it; no read may miss the customer meanwhile. */
async function staysVisible(t: Attempt): Promise<void> {
  const { customer, former } = await updatedCustomer(t);
  const looks = LOOKS.filter(([, { caller }]) => caller === undefined || t.kit.profile.limited !== undefined);
  const look = ({ query = "", ...shape }: Shape, purpose: string) =>
    t.get(customer, { ...shape, query, purpose });
  const shown = new Map<string, Seen>();
  for (const [how, shape] of looks) {
    const seen = await look(shape, "before the DELETE");
    if (seen.status === 200) shown.set(how, seen);
  }
  for (const [what, lines] of [
    ["no If-Match", []],
    ["a stale tag", ifMatch(former)],
  ] as const) {
    const refusal = await t.sendWrite("DELETE", customer, { ifMatch: lines, purpose: `DELETE with ${what}` });
    if (!isClientError(refusal.status)) return;
    const after = await together(
      looks.map(async ([how, shape]) => [how, await look(shape, `after a DELETE with ${what}`)] as const),
    );
    // One that was carried out all the same is blamed by the rule on it.
    if (isGone((await t.get(customer, { purpose: "is it still there" })).status)) return;
    for (const [how, seen] of after) {
      const before = shown.get(how);
      if (before === undefined) continue;
      const found = `right after a refused DELETE with ${what}, ${how} is answered ${seen.status}`;
      t.proof(`${how} right after a refused DELETE with ${what}`, "200, as before")
        .show(seen, { before, after: seen })
        // A copy that lags may not have the customer yet.
        .must("still-read", !isGone(seen.status) || t.kit.doubts.has("reads lag"), found, OTHERS_MAY_CAUSE);
    }
  }
}

export const methodRules: readonly Rule[] = [
  patch,
  afterEvents,
  ...asOnPut("PATCH"),
  remove,
  ...asOnPut("DELETE"),
  ...(["PUT", "PATCH", "DELETE"] as const).flatMap(alike),
];

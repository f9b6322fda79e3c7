/** IFM: If-Match on PUT, PATCH and DELETE. */

import { CouldNotRun, Inconclusive, OTHERS_MAY_CAUSE } from "../http/outcome-signal.ts";
import type { Written } from "../probe/answered.ts";
import { type Attempt, BASE } from "../probe/attempt.ts";
import {
  AFFIXES,
  BLANKS,
  CASES,
  type Derive,
  EMPTY,
  HOSTILE,
  INEXACT,
  ifMatch,
  LISTS,
  memberStandIns,
  NONE,
  PREVIOUS,
  SPELLINGS,
  STAR,
  SUCCESSORS,
  standIns,
  TWO_LINES,
  UNQUOTED,
  WEAK,
} from "../probe/if-match-forms.ts";
import { afterBase, groundFor, NEEDS, refusal, refused } from "../probe/refused.ts";
import { shapes } from "../probe/request-shapes.ts";
import { type Rule, rule } from "../probe/rule.ts";
import { type Method, shows } from "../probe/snapshot.ts";
import type { SpecKey } from "../specification/spec.ts";
import { registryFields } from "../target/names.ts";

const overwrite = "A write that its sender did not base on the current state overwrites it silently.";
const blind = "Old clients overwrite blindly.";
const EXACT: readonly SpecKey[] = ["4.2 exact", "3 stale"];

/** 412 carries the tag of now: the one that a read shows, with which a write is accepted. */
async function currentTagIn412(t: Attempt, method: Method): Promise<void> {
  const { customer, former, now } = await groundFor(t, method);
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
  const current = `the 412 of ${method} carries ${tag}; the current tag is ${now.tag}`;
  if (!stale.must("etag-current", tag === now.tag, current, OTHERS_MAY_CAUSE)) return;
  doubts.delete(`tag of 412 on ${method}`);
  // A client that retries with it, without a read in between.
  const retry = await t.write(method, {
    to: customer,
    ifMatch: tag,
    before: now,
    what: `the tag ${tag} of a 412`,
  });
  retry.mustAnswer("retry", "2xx", OTHERS_MAY_CAUSE);
}

/** A body that an accepted write is answered with is of no fixed shape; but where it shows the name, it is the new one. */
function showsNew(t: Attempt, written: Written): void {
  const { seen, values, before } = written;
  const { name } = registryFields(seen.object ?? {}, t.kit.deployment.names);
  const old = name !== undefined && name === before.fields.name && name !== values.name;
  written.should(
    "shows-new",
    !old,
    `the answer ${seen.status} shows the former name, ${JSON.stringify(name)}`,
  );
}

async function padded(t: Attempt, method: Method, name: string): Promise<void> {
  for (const [before, after] of [
    ["  ", ""],
    ["", "  "],
    ["\t", " \t"],
  ] as const) {
    const { customer, control, now } = await groundFor(t, method);
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

const put: readonly Rule[] = [
  rule("IFM-01", "PUT with the current tag is accepted and applied", {
    spec: ["1.3", "3 accepted", "4.2 204"],
    hurts: "Nobody can update a customer, or is told so although nothing was stored.",
    needs: ["write"],
    async check(t) {
      const put = await t.write("PUT", { allowed: "204 or 200, and the new values are read back" });
      const { seen, before, now: after, values } = put;
      // Where the values were written all the same, the 412 is no word on a read (a proxy that repeats writes, say).
      const applied = shows(after.fields.name, String(values.name));
      if (!applied && seen.status === 412 && seen.tag !== before.tag && after.tag === seen.tag)
        throw new CouldNotRun(
          "the read before showed an older tag than the 412",
          ["ENV-04"],
          OTHERS_MAY_CAUSE,
        );
      if (!put.mustAnswer("accepted", "2xx", OTHERS_MAY_CAUSE)) return;
      const { made } = t.kit.main;
      if (!made && after.fields.name !== values.name && after.fields.name !== before.fields.name)
        throw new Inconclusive("somebody else wrote this customer meanwhile");
      // Under the tag that the answer gave, nobody else has written.
      const othersMayCause = seen.tag === undefined || seen.tag !== after.tag;
      for (const field of ["name", "email"] as const)
        put.must(
          `applied-${field}`,
          shows(after.fields[field], String(values[field])),
          () =>
            `${field} was written as ${JSON.stringify(values[field])} and is read back as ${JSON.stringify(after.fields[field])}: not applied`,
          { othersMayCause },
        );
      for (const name of ["if-match", "IF-MATCH"]) {
        const now = await t.state(t.kit.main, "read before");
        const spelled = await t.write("PUT", {
          ifMatch: [[name, now.tag]],
          before: now,
          what: `the current tag, the header spelled ${name}`,
          allowed: "accepted: header names have no case",
        });
        spelled.mustAnswer("name-case", "2xx", OTHERS_MAY_CAUSE);
      }
    },
  }),
  rule("IFM-02", "An accepted PUT answers 204 without a body, or 200 with one", {
    spec: ["4.2 204"],
    hurts: "Clients that follow the document take the answer for a failure.",
    needs: ["write"],
    after: ["IFM-01"],
    async check(t) {
      // On a raw socket, since client libraries hide bytes behind a 204.
      const { written } = await t.control("PUT", { via: "socket" });
      const { status, text } = written.seen;
      written.mustAnswer("status", [204, 200]);
      if (status === 204)
        written.must("no-body", text === "", `204 came with a body: ${JSON.stringify(text.slice(0, 60))}`);
      if (status === 200)
        written.should("body", text !== "", "200 came without a body; without one the status is 204");
      showsNew(t, written);
    },
  }),
  refusal("IFM-03", "PUT with the previous tag is refused with 412", {
    spec: ["3 stale", "4.2 order 3", "7 rule 1"],
    hurts: "The lost update: the very thing that the tag is there to prevent.",
    on: "PUT",
    kind: "stale",
    forms: PREVIOUS,
  }),
  refusal("IFM-04", "PUT without If-Match is refused with 428", {
    spec: ["3 missing", "4.2 428", "7 428"],
    hurts: blind,
    on: "PUT",
    kind: "missing",
    forms: [NONE],
  }),
  refusal("IFM-05", "PUT with an empty If-Match is refused with 428", {
    spec: ["3 missing", "4.2 428"],
    hurts: "A client whose variable was empty overwrites blindly, or hears the wrong cause.",
    on: "PUT",
    kind: "missing",
    forms: EMPTY,
  }),
  refusal("IFM-06", "PUT with an If-Match of blanks is refused with 428", {
    spec: ["3 missing", "4.2 428"],
    hurts: "A client whose variable was blank overwrites blindly, or hears the wrong cause.",
    on: "PUT",
    kind: "missing",
    forms: BLANKS,
  }),
  rule("IFM-08", "Blanks around the tag are trimmed", {
    spec: ["4.2 trim"],
    hurts: "Clients and proxies that pad a header are refused forever.",
    needs: ["write"],
    after: ["IFM-01"],
    check: (t) => padded(t, "PUT", "accepted"),
  }),
  refusal("IFM-09", "The current tag weakened is refused", {
    spec: ["2.4.5", ...EXACT],
    reading: "Whether it begins with W/ or w/.",
    hurts: overwrite,
    on: "PUT",
    kind: "stale",
    forms: WEAK,
  }),
  refusal("IFM-10", "The current tag without its quotes is refused", {
    spec: ["2.4.2", ...EXACT],
    hurts: "Clients that mangle tags seem to work here and fail elsewhere.",
    on: "PUT",
    kind: "stale",
    forms: UNQUOTED,
  }),
  refusal("IFM-11", "The current tag in another letter case is refused", {
    spec: EXACT,
    hurts: "Two versions whose tokens differ in case alone are taken for one.",
    on: "PUT",
    kind: "stale",
    forms: CASES,
  }),
  refusal("IFM-12", "If-Match * is refused", {
    spec: EXACT,
    reading: "`*` equals no token, in quotes or without.",
    hurts: "`*` switches the protection off for anyone who sends it.",
    on: "PUT",
    kind: "stale",
    forms: STAR,
  }),
  refusal("IFM-13", "A list that holds the current tag is refused", {
    spec: ["4.2 one value", "4.2 list", "8.2"],
    reading: "Not even one with empty members or the same tag twice. Not supported: 412 or 400.",
    hurts: "A client that collects tags hits by chance and overwrites what it never read.",
    on: "PUT",
    kind: "stale",
    forms: LISTS,
  }),
  refusal("IFM-14", "Two If-Match lines, one of them current, are refused", {
    spec: ["4.2 one value", "4.2 list", "8.2"],
    reading: "Two lines are a list in two lines (RFC 9110 5.3): 412 or 400.",
    hurts: "Which line counts depends on the server and on each proxy before it.",
    on: "PUT",
    kind: "stale",
    forms: TWO_LINES,
  }),
  refusal("IFM-15", "The current tag with something added or cut off is refused", {
    spec: EXACT,
    reading: "Equality is not prefix, suffix or containment.",
    hurts: overwrite,
    on: "PUT",
    kind: "stale",
    forms: AFFIXES,
  }),
  refusal("IFM-16", "Another spelling of the current tag is refused", {
    spec: ["4.2 exact", "5.6"],
    reading:
      "The text is compared and never decoded: other base64 of the same bytes, a leading zero, percent-encoding.",
    hurts: "Tokens are then not opaque: a client can compute one that it never read.",
    on: "PUT",
    kind: "stale",
    forms: SPELLINGS,
  }),
  refusal("IFM-17", "A tag beyond the current one is refused", {
    spec: EXACT,
    reading: "Versions are not ordered for the client: a later token is as wrong as a former one.",
    hurts: "A client that guesses the next version overwrites what it never read.",
    on: "PUT",
    kind: "stale",
    forms: SUCCESSORS,
  }),
  rule("IFM-18", "Every former tag is refused", {
    spec: ["3 stale", "1.3"],
    reading: "However long ago it was current.",
    hurts: "A client that slept for several versions overwrites them all.",
    needs: ["write"],
    after: afterBase("IFM-18", "PUT", "stale"),
    async check(t) {
      // A customer of its own has its first tag still to be remembered; where none can be made, the oldest known one.
      const customer = await t.ownCustomer();
      const tags: string[] = [];
      const writes = t.leavesOut("tags of more than three writes ago") ? 3 : 6;
      for (let write = 0; write < writes; write += 1)
        tags.push((await t.control("PUT", { to: customer })).former);
      const former = tags.map(
        (tag, index): Derive =>
          () => ({ what: `the former tag of ${tags.length - index} writes ago`, lines: ifMatch(tag) }),
      );
      await refused(t, "PUT", "stale", former, { customer });
    },
  }),
  rule("IFM-19", "Another customer's current tag is refused", {
    spec: EXACT,
    reading: "A token counts for its own customer.",
    hurts: "A client that mixed up two customers overwrites the wrong one.",
    needs: ["write"],
    after: afterBase("IFM-19", "PUT", "stale"),
    async check(t) {
      const other = await t.second();
      const main = await t.state(t.kit.main, "read before");
      let foreign = await t.state(other, "read the other customer");
      // Counted tokens of two customers may be equal: write the other until its tag is one of its own.
      for (let write = 0; write < 3 && foreign.tag === main.tag; write += 1)
        foreign = await t.control("PUT", { to: other });
      await refused(t, "PUT", "stale", [
        () => ({ what: "another customer's current tag", lines: ifMatch(foreign.tag) }),
      ]);
    },
  }),
  refusal("IFM-20", "Hostile text in If-Match is only compared", {
    spec: ["5.6"],
    reading: "Wildcards, patterns, SQL and very long text are answered like any other wrong token.",
    hurts: "A header of the client is run as a query or a pattern.",
    needs: ["write", "hostile"],
    on: "PUT",
    kind: "stale",
    forms: HOSTILE,
  }),
  rule("IFM-22", "After 412 the write succeeds with the fresh tag", {
    spec: ["1.5", "7 rule 3"],
    reading: "Nothing stays locked.",
    hurts: "One conflict blocks a customer for good.",
    needs: ["write"],
    after: ["IFM-01", "IFM-03"],
    async check(t) {
      // On a customer of its own where one can be made: earlier conflicts may have locked the main one.
      const own = await t.ownCustomer();
      const { former } = await t.control("PUT", { to: own });
      const conflict = await t.write("PUT", { to: own, ifMatch: ifMatch(former), what: "a stale tag" });
      if (conflict.accepted) throw conflict.breach("a stale PUT was accepted", ["IFM-03"]);
      const put = await t.write("PUT", {
        to: own,
        what: "the tag just read, after a conflict",
        allowed: "accepted: nothing stays locked",
      });
      put.mustAnswer("accepted", "2xx", OTHERS_MAY_CAUSE);
    },
  }),
];

const patch: readonly Rule[] = [
  rule("IFM-30", "PATCH with the current tag is accepted and applied", {
    spec: ["3 same rule", "4.3 same"],
    reading: "The named field is changed, the others stay.",
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
      const { name, email } = patch.now.fields;
      const as = (value: unknown) => JSON.stringify(value);
      patch.must(
        "applied",
        shows(name, String(patch.values.name)),
        () => `name was patched to ${as(patch.values.name)} and is read back as ${as(name)}`,
        OTHERS_MAY_CAUSE,
      );
      patch.must(
        "others-kept",
        email === before.fields.email,
        () => `email was ${as(before.fields.email)} and after a PATCH of the name is ${as(email)}`,
        OTHERS_MAY_CAUSE,
      );
    },
  }),
];

const remove: readonly Rule[] = [
  rule("IFM-40", "DELETE with the current tag is accepted", {
    spec: ["3 same rule", "4.3 same"],
    reading: "It takes effect: the customer is gone, or (soft delete) its token is a new one.",
    hurts: "Nobody can delete, or is told so although nothing happened.",
    needs: NEEDS.DELETE,
    async check(t) {
      const customer = await t.kit.ground.make();
      const removal = await t.write("DELETE", { to: customer });
      const { seen, before } = removal;
      if (!removal.mustAnswer("accepted", t.kit.profile.delete.statuses ?? "2xx")) return;
      const after = await t.untilGone(customer, removal);
      const still = () => after.status === 200 && after.tag === before.tag;
      if (seen.status === 202 && still())
        throw new Inconclusive(
          "DELETE was answered 202 and is not applied yet; 202 does not say when it will be",
        );
      removal.must(
        "effect",
        !still(),
        `after an accepted DELETE a read still answers 200 with the same tag ${before.tag}`,
      );
    },
  }),
];

/** What PATCH and DELETE share with PUT, under the ids that each has beside those of BASE. */
const IDS = {
  PUT: { shapes: "IFM-23" },
  PATCH: { exact: "IFM-35", shapes: "IFM-36" },
  DELETE: { exact: "IFM-45", shapes: "IFM-46" },
} as const satisfies Record<Method, { exact?: Rule["id"]; shapes: Rule["id"] }>;

const HURTS = {
  PATCH: { stale: "Lost updates through the partial door.", missing: "Blind partial writes" },
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
      reading: "In none of the forms of body that it takes. Nothing stands in for If-Match.",
      hurts: `${missing}.`,
      needs: NEEDS[on],
      after: afterBase(base.missing, on),
      async check(t) {
        await refused(t, on, "missing", [NONE]);
        const members = on === "PATCH" ? memberStandIns(false) : [];
        // What stands in for a header does not hang on the form of the body.
        await refused(t, on, "missing", [...standIns(), ...members], { bodies: "one" });
      },
    }),
    refusal(base.blank, `${on} with a blank If-Match is refused with 428`, {
      spec: [...spec, "3 missing"],
      on,
      kind: "missing",
      hurts: `${missing} by a client whose variable was blank.`,
      forms: [...EMPTY, ...BLANKS],
    }),
    rule(IDS[on].exact, `${on} compares exactly`, {
      spec: [...spec, ...EXACT],
      reading:
        "Weak, unquoted, `*`, another case, an addition: refused as on PUT; a list by 412 or 400. A padded tag is accepted.",
      hurts: overwrite,
      needs: NEEDS[on],
      after: afterBase(IDS[on].exact, on, "stale"),
      async check(t) {
        const forms = t.leavesOut("all but two forms of each kind of inexact tag")
          ? INEXACT.flatMap((kind) => kind.slice(0, 2))
          : INEXACT.flat();
        await refused(t, on, "stale", forms);
        await padded(t, on, "padded");
      },
    }),
  ];
}

/** The rules that all three methods have alike. */
function alike(on: Method): Rule[] {
  const { tag412 } = BASE[on];
  const { shapes: id } = IDS[on];
  const spec = specOf(on);
  return [
    rule(tag412, `412 on ${on} carries the current ETag`, {
      spec: on === "PUT" ? ["3 stale", "4.2 412", "7 412"] : [...spec, "7 412"],
      reading: "The token of now: the one that a read shows, with which a retry is accepted.",
      hurts: "A client cannot tell how far it lagged, or retries with a token that is refused again.",
      needs: NEEDS[on],
      after: afterBase(tag412, on, "stale"),
      check: (t) => currentTagIn412(t, on),
    }),
    rule(id, `No way of sending a ${on} is exempt from If-Match`, {
      spec: [...spec, "7 rule 2", "3 missing", "3 stale"],
      reading:
        "The second request of a connection, a chunked body, HTTP/1.0, another spelling of the address, another caller, the values that are stored, a customer that was never updated: missing, blank and stale are refused alike. Where such a request is not taken at all, any refusal will do.",
      hurts: "The check protects those who ask politely; everybody else overwrites.",
      needs: NEEDS[on],
      after: afterBase(id, on, "stale", "missing"),
      check: (t) => shapes(t, on),
    }),
  ];
}

export const ifMatchRules: readonly Rule[] = [
  ...put,
  refusal("IFM-21", "Nothing stands in for If-Match", {
    spec: ["4.2 428", "7 rule 2"],
    reading:
      "If-Unmodified-Since, or the token in a header of another name, a parameter or the body, is no If-Match. IFM-32 and IFM-42 ask the same of PATCH and DELETE.",
    hurts: "A date of one second's grain guards the write, or nothing does.",
    on: "PUT",
    kind: "missing",
    forms: (t) => [
      ...standIns(),
      ...memberStandIns(!t.leavesOut("each name of the token in a body of its own")),
    ],
  }),
  ...patch,
  ...asOnPut("PATCH"),
  ...remove,
  ...asOnPut("DELETE"),
  ...(["PUT", "PATCH", "DELETE"] as const).flatMap(alike),
].toSorted((a, b) => a.id.localeCompare(b.id));

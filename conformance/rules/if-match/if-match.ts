/** IFM: If-Match on PUT; what the methods share stands in if-match-methods.ts. */

import { CouldNotRun, Inconclusive, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { isClientError } from "../../http/status.ts";
import type { Written } from "../../probe/answered.ts";
import { BASE } from "../../probe/attempt.ts";
import { enforced } from "../../probe/races/race.ts";
import { judgeRefusal } from "../../probe/refusals/refusal-verdict.ts";
import { refusal } from "../../probe/refusals/refused.ts";
import {
  BLANKS,
  EMPTY,
  HOSTILE,
  INEXACT,
  ifMatch,
  memberStandIns,
  NONE,
  PREVIOUS,
  SUCCESSORS,
  standIns,
} from "../../probe/requests/if-match-forms.ts";
import { BROTLI, USUAL_HEADERS } from "../../probe/requests/ways-of-reading.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { shows, storedValues, WRITABLE } from "../../probe/snapshot.ts";
import { saysNothing } from "../../probe/weather.ts";
import { EXACT, methodRules, overwrite, padded, showsNew } from "./if-match-methods.ts";

const blind = "Old clients overwrite blindly.";

type OnPut = Omit<Parameters<typeof refusal>[2], "on" | "kind">;
const stale = (id: Rule["id"], title: string, given: OnPut) =>
  refusal(id, title, { on: "PUT", kind: "stale", ...given });
const missing = (id: Rule["id"], title: string, given: OnPut) =>
  refusal(id, title, { on: "PUT", kind: "missing", ...given });

function mustBeApplied(put: Written): void {
  const { seen, values, now } = put;
  // Under the tag that the answer gave, nobody else has written.
  const othersMayCause = seen.tag === undefined || seen.tag !== now.tag;
  for (const field of WRITABLE)
    put.must(
      `applied-${field}`,
      shows(now.fields[field], String(values[field])),
      () =>
        `${field} was written as ${JSON.stringify(values[field])} and is read back as ${JSON.stringify(now.fields[field])}: not applied`,
      { othersMayCause },
    );
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
      mustBeApplied(put);
      for (const field of WRITABLE) {
        const now = await t.state(t.kit.main, "read before");
        const alone = await t.write("PUT", {
          values: { ...storedValues(now), [field]: t.kit.values.next()[field] },
          before: now,
          what: `the current tag and another ${field} alone`,
        });
        if (alone.mustAnswer("accepted", "2xx", OTHERS_MAY_CAUSE)) mustBeApplied(alone);
      }
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
      for (const [how, { headers }] of [...USUAL_HEADERS, BROTLI]) {
        const what = `the current tag, ${how}`;
        const usual = await t.write("PUT", { headers, what, allowed: "accepted" });
        usual.mustAnswer("usual-headers", "2xx", OTHERS_MAY_CAUSE);
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
  stale("IFM-03", "PUT with the previous tag is refused with 412", {
    spec: ["3 stale", "4.2 order 3", "7 rule 1"],
    hurts: "The lost update: the very thing that the tag is there to prevent.",
    forms: PREVIOUS,
  }),
  missing("IFM-04", "PUT without If-Match is refused with 428", {
    spec: ["3 missing", "4.2 428", "7 428"],
    hurts: blind,
    forms: [NONE],
  }),
  missing("IFM-05", "PUT with an empty If-Match is refused with 428", {
    spec: ["3 missing", "4.2 428"],
    hurts: "A client whose variable was empty overwrites blindly, or hears the wrong cause.",
    forms: EMPTY,
  }),
  missing("IFM-06", "PUT with an If-Match of blanks is refused with 428", {
    spec: ["3 missing", "4.2 428"],
    hurts: "A client whose variable was blank overwrites blindly, or hears the wrong cause.",
    forms: BLANKS,
  }),
  rule("IFM-08", "Blanks around the tag are trimmed", {
    spec: ["4.2 trim"],
    hurts: "Clients and proxies that pad a header are refused forever.",
    needs: ["write"],
    after: ["IFM-01"],
    check: (t) => padded(t, "PUT", "accepted"),
  }),
  stale("IFM-09", "The current tag weakened is refused", {
    spec: ["2.4.5", ...EXACT],
    reading: "Whether it begins with W/ or w/.",
    hurts: overwrite,
    forms: INEXACT.weak,
  }),
  stale("IFM-10", "The current tag without its quotes is refused", {
    spec: ["2.4.2", ...EXACT],
    hurts: "Clients that mangle tags seem to work here and fail elsewhere.",
    forms: INEXACT.unquoted,
  }),
  stale("IFM-11", "The current tag in another letter case is refused", {
    spec: EXACT,
    hurts: "Two versions whose tokens differ in case alone are taken for one.",
    forms: INEXACT.otherCase,
  }),
  stale("IFM-12", "If-Match * is refused", {
    spec: EXACT,
    reading: "`*` equals no token, in quotes or without.",
    hurts: "`*` switches the protection off for anyone who sends it.",
    forms: INEXACT.star,
  }),
  stale("IFM-13", "A list that holds the current tag is refused", {
    spec: ["4.2 one value", "4.2 list", "8.2"],
    reading: "Not even one with empty members or the same tag twice. Not supported: 412 or 400.",
    hurts: "A client that collects tags hits by chance and overwrites what it never read.",
    forms: INEXACT.list,
  }),
  stale("IFM-14", "Two If-Match lines, one of them current, are refused", {
    spec: ["4.2 one value", "4.2 list", "8.2"],
    reading: "Two lines are a list in two lines (RFC 9110 5.3): 412 or 400.",
    hurts: "Which line counts depends on the server and on each proxy before it.",
    forms: INEXACT.twoLines,
  }),
  stale("IFM-15", "The current tag with something added or cut off is refused", {
    spec: EXACT,
    reading: "Equality is not prefix, suffix or containment.",
    hurts: overwrite,
    forms: INEXACT.affix,
  }),
  stale("IFM-16", "Another spelling of the current tag is refused", {
    spec: ["4.2 exact", "5.6"],
    reading:
      "The text is compared and never decoded: other base64 of the same bytes, a leading zero, percent-encoding. Nor is it folded: an accent, a soft hyphen, a superscript, a character of full width.",
    hurts: "Tokens are then not opaque: a client can compute one that it never read.",
    forms: [...INEXACT.spelling, ...INEXACT.folding],
  }),
  stale("IFM-17", "A tag beyond the current one is refused", {
    spec: EXACT,
    reading: "Versions are not ordered for the client: a later token is as wrong as a former one.",
    hurts: "A client that guesses the next version overwrites what it never read.",
    forms: SUCCESSORS,
  }),
  stale("IFM-19", "Another customer's current tag is refused", {
    spec: EXACT,
    reading: "A token counts for its own customer.",
    hurts: "A client that mixed up two customers overwrites the wrong one.",
    async forms(t) {
      const other = await t.kit.ground.second();
      const main = await t.state(t.kit.main, "read before");
      let foreign = await t.state(other, "read the other customer");
      // Counted tokens of two customers may be equal: write the other until its tag is one of its own.
      for (let write = 0; write < 3 && foreign.tag === main.tag; write += 1)
        foreign = await t.control("PUT", { to: other });
      return [() => ({ what: "another customer's current tag", lines: ifMatch(foreign.tag) })];
    },
  }),
  stale("IFM-20", "Hostile text in If-Match is only compared", {
    spec: ["5.6"],
    reading: "Wildcards, patterns, SQL and very long text are answered like any other wrong token.",
    hurts: "A header of the client is run as a query or a pattern.",
    needs: ["write", "hostile"],
    forms: HOSTILE,
  }),
  missing("IFM-21", "Nothing stands in for If-Match", {
    spec: ["4.2 428", "7 rule 2"],
    reading:
      "If-Unmodified-Since, or the token in a header of another name, a parameter or the body, is no If-Match. IFM-32 and IFM-42 ask the same of PATCH and DELETE.",
    hurts: "A date of one second's grain guards the write, or nothing does.",
    forms: (t) => [
      ...standIns(),
      ...memberStandIns(!t.leavesOut("each name of the token in a body of its own")),
    ],
  }),
  stale("IFM-48", "A value that holds no tag is refused", {
    spec: EXACT,
    reading:
      "A comma, a quote, `W/`, the customer's id or a date is neither missing nor blank, and equals no token. IFM-35 and IFM-45 ask the same of PATCH and DELETE.",
    hurts:
      "A parser that finds no tag in the header takes the write for one without a condition, and applies it.",
    forms: INEXACT.noTag,
  }),
  rule("IFM-50", "A stale write is refused although it changes another field", {
    spec: ["3 stale", "1.5", "4.3 same"],
    reading:
      "Somebody changes the name alone. A PUT that keeps the name that was read before, and a PATCH, with the tag from before and a new email alone are stale.",
    hurts: "The service merges by itself, and nobody decides whether both changes may stand together.",
    needs: ["write"],
    after: ["IFM-03", "IFM-30", "IFM-31"],
    async check(t) {
      for (const method of await t.updates()) {
        await enforced(t, method);
        const base = await t.state(t.kit.main, "read before");
        const { name, email } = storedValues(base);
        const renamed = { name: t.kit.values.next().name, email };
        const before = await t.control("PUT", { before: base, values: renamed });
        const fresh = t.kit.values.next().email;
        const what = "the tag from before a change of the name alone, and a new email alone";
        const late = await t.write(method, {
          before,
          ifMatch: ifMatch(base.tag),
          values: method === "PUT" ? { name, email: fresh } : { email: fresh },
          what,
          allowed: "412, and nothing changed",
        });
        judgeRefusal(t, late, "stale", { what });
      }
    },
  }),
  rule("IFM-22", "After 412 the write succeeds with the fresh tag", {
    spec: ["1.5", "7 rule 3"],
    reading:
      "Nothing stays locked, whichever method met the conflict; nor is a tag used up by a body that was refused.",
    hurts: "One conflict blocks a customer for good.",
    needs: ["write"],
    after: ["IFM-01", "IFM-03"],
    async check(t) {
      // On a customer of its own where one can be made: earlier conflicts may have locked the main one.
      const own = await t.ownCustomer();
      const removes = t.kit.deployment.deleteOffered === true && own.made;
      const methods = [...(await t.updates()), ...(removes ? (["DELETE"] as const) : [])];
      for (const method of methods) {
        const { former } = await t.control("PUT", { to: own });
        const conflict = await t.write(method, { to: own, ifMatch: ifMatch(former), what: "a stale tag" });
        if (conflict.accepted) throw conflict.breach(`a stale ${method} was accepted`, [BASE[method].stale]);
        const put = await t.write("PUT", {
          to: own,
          what: `the tag just read, after a conflict of a ${method}`,
          allowed: "accepted: nothing stays locked",
        });
        put.mustAnswer("accepted", "2xx", OTHERS_MAY_CAUSE);
      }
      const { tag } = await t.control("PUT", { to: own });
      const refused = await t.sendWrite("PUT", own, { ifMatch: tag, body: "{", purpose: "broken JSON" });
      if (!isClientError(refused.status)) return;
      const what = "with the tag that a refused body came with, and no read in between";
      const next = await t.writeOnly("PUT", own, { what, allowed: "2xx", ifMatch: tag });
      // Where the refused body moved the tag, FLD-16 says so.
      const isUsedUp = !next.accepted && (await t.state(own)).tag === tag;
      if (!saysNothing(next.seen, "main"))
        next.must("accepted-next", !isUsedUp, `${what} a PUT was answered ${next.seen.status}`);
    },
  }),
];

export const ifMatchRules: readonly Rule[] = [...put, ...methodRules].toSorted((a, b) =>
  a.id.localeCompare(b.id),
);

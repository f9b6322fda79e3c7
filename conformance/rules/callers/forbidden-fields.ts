/** AUT: fields that a caller may not read. */

import type { Customer } from "../../fixtures/ground.ts";
import { CouldNotRun } from "../../http/outcome-signal.ts";
import { accepted } from "../../http/status.ts";
import type { Seen } from "../../http/wire.ts";
import type { Answered } from "../../probe/answered.ts";
import type { Attempt } from "../../probe/attempt.ts";
import {
  type Forbidden,
  forbidden,
  memberOf,
  mustHide,
  revealed,
} from "../../probe/callers/forbidden-field.ts";
import { readBy } from "../../probe/callers/read-by.ts";
import { updatedCustomer } from "../../probe/prepared.ts";
import { refusedToMain } from "../../probe/races/just-before.ts";
import { headIsGet } from "../../probe/requests/by-head.ts";
import { spellings } from "../../probe/requests/field-spellings.ts";
import {
  CURRENT,
  type Derive,
  EMPTY,
  firstOfEach,
  INEXACT,
  ifMatch,
  NEVER_GIVEN_TAG,
  NONE,
  STALE,
} from "../../probe/requests/if-match-forms.ts";
import { lists, otherPathsOf, pathEnd } from "../../probe/requests/other-paths.ts";
import {
  claims,
  conditional,
  manyTimes,
  otherMethods,
  otherWays,
  usualParameters,
  type WayOfReading,
} from "../../probe/requests/ways-of-reading.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import type { Snapshot } from "../../probe/snapshot.ts";
import type { Lines, Weight } from "../../probe/trial.ts";
import type { Field } from "../../target/profile-file.ts";

const hurts = "Personal data reaches someone who may not see it.";
const omitted = "A caller takes a silent omission for an empty field.";

/** Whether a forbidden field is answered instead of refused. A page for people is no answer. */
const isAnswered = ({ status, object }: Seen) => status === 304 || (accepted(status) && object !== undefined);

/** The queries whose plain form hides the field from the limited caller: AUT-01 and AUT-05 blame the others. */
async function hiddenPlainly(t: Attempt, { field, value }: Forbidden): Promise<string[]> {
  const hidden: string[] = [];
  for (const query of [`?fields=${field}`, ""]) {
    const seen = await t.get(t.kit.main, { query, caller: "limited", purpose: "the plain read" });
    const shown = revealed(seen, field, value) || memberOf(seen, field) !== undefined;
    if (!shown && !(query !== "" && isAnswered(seen))) hidden.push(query);
  }
  if (hidden.length === 0)
    throw new CouldNotRun(`a plain read by the limited caller does not hide ${field}`, ["AUT-01", "AUT-05"]);
  return hidden;
}

/** What is asked for is refused, what is not leaves the field out. */
function mustStayHidden(read: Answered, at: Forbidden, asked: boolean, weight: Weight = {}): void {
  const what = read.evidence.probe;
  mustHide(read, at, what, weight);
  const { seen } = read;
  const found = `${what} was answered ${seen.status}, not refused`;
  if (asked) read.must("refused", !isAnswered(seen), found, weight);
  else {
    const member = memberOf(seen, at.field)?.[0];
    read.must("no-member", member === undefined, `${what} shows the member ${member}`, weight);
  }
}

/** A 200 tells that the field is there, and how long it is. */
async function refusedByHead(t: Attempt, at: Forbidden): Promise<void> {
  if (!(await headIsGet(t))) return;
  const asked = `?fields=${at.field}`;
  const read = await readBy(t, "limited", asked, "refused, as GET is", t.kit.main, ["", { sentAs: "HEAD" }]);
  mustHide(read, at, read.evidence.probe);
  const found = `HEAD ${asked} was answered ${read.seen.status}, and GET refused`;
  read.should("refused-by-head", !accepted(read.seen.status), found);
}

/** Moments at which a service may take the limited caller for one that may read more. */
async function staysHidden(t: Attempt): Promise<void> {
  // What comes before the plain read is an accepted write of somebody else.
  await t.control("PUT");
  const main = await forbidden(t);
  const hidden = await hiddenPlainly(t, main);
  const { field } = main;
  const to = await t.ownCustomer();
  let at = await forbidden(t, to, field);
  const look = async (when: string, weight: Weight = {}) => {
    for (const query of hidden)
      mustStayHidden(
        await readBy(t, "limited", query, `no ${field}`, to, [when, {}]),
        at,
        query !== "",
        weight,
      );
  };
  if (to !== t.kit.main) await look("before any update");
  for (const [what, happens] of refusedToMain(t, to)) {
    await happens();
    await look(`right after ${what}`);
  }
  const never = ifMatch(NEVER_GIVEN_TAG);
  await t.sendWrite("PUT", to, { caller: "limited", ifMatch: never, purpose: "a stale write" });
  await look("after a stale write of its own");
  let before: Snapshot | undefined;
  const skipped: string[] = [];
  // What it has not written itself must stay hidden; of what it has, only that it is refused was said (5.3).
  const methods =
    field !== "name" && (await t.patchOffered()) ? (["PATCH", "PUT"] as const) : (["PUT"] as const);
  for (const method of methods) {
    const what = "the current tag by the limited caller";
    const own = await t.write(method, {
      to,
      before,
      caller: "limited",
      what,
      allowed: "refused, or applied",
    });
    before = own.now;
    if (method === "PUT") at = await forbidden(t, to, field);
    if (own.accepted) await look(`after a ${method} of its own`, method === "PUT" ? { level: "SHOULD" } : {});
    else skipped.push(`${method} was answered ${own.seen.status}`);
  }
  if (t.kit.deployment.deleteOffered === true && to.made) await staysHiddenOnceDeleted(t, to, field);
  if (skipped.length > 0)
    t.note = `; the limited caller's ${skipped.join(" and ")}, so what it reads afterwards was not looked at`;
}

/** A DELETE may answer the row that it has removed, a refused one the row that it has not. */
async function hiddenByDelete(t: Attempt, field: Field): Promise<void> {
  const { customer, former } = await updatedCustomer(t);
  for (const derive of [NONE, STALE, CURRENT]) {
    const at = await forbidden(t, customer, field);
    const { tag } = await t.state(customer, "read before");
    const form = derive(tag, former, customer);
    if (form === undefined) continue;
    const what = `with ${form.what} by the limited caller`;
    const asked = {
      what,
      allowed: `no ${field} in the answer`,
      ifMatch: form.lines,
      caller: "limited",
    } as const;
    const removal = await t.writeOnly("DELETE", customer, asked);
    mustHide(removal, at, removal.evidence.probe);
    // AUT-07 is not about what is accepted.
    if (accepted(removal.seen.status)) return;
  }
}

/** What refuses a write or a read may show the last row that it knew. */
async function staysHiddenOnceDeleted(t: Attempt, to: Customer, field: Field): Promise<void> {
  // Values that the limited caller did not write itself.
  await t.control("PUT", { to });
  const at = await forbidden(t, to, field);
  const removed = await t.write("DELETE", { to, purpose: "delete" });
  if (!removed.accepted) return;
  for (const query of ["", `?fields=${at.others[0]}`, `?fields=${at.field}`]) {
    const read = await readBy(t, "limited", query, `no ${at.field}`, to, ["once it is deleted", {}]);
    mustHide(read, at, read.evidence.probe);
  }
  const what = "to a deleted customer with its last tag by the limited caller";
  const ifMatch = removed.before.tag;
  const put = await t.writeOnly("PUT", to, { what, allowed: `no ${at.field}`, ifMatch, caller: "limited" });
  mustHide(put, at, put.evidence.probe);
}

type Write = readonly [
  method: "PUT" | "PATCH",
  derive: Derive,
  more?: {
    readonly how: string;
    readonly headers?: Lines;
    readonly body?: string;
    readonly keepsName?: true;
  },
];

const WHOLE: Lines = [["Prefer", "return=representation"]];

export const forbiddenFields: readonly Rule[] = [
  rule("AUT-01", "A forbidden field is refused by a 4xx", {
    spec: ["5.3"],
    reading: "Which 4xx is open.",
    hurts: "A caller takes a silent omission, or a leak, for the truth.",
    needs: ["limited"],
    async check(t) {
      const { field, control } = await forbidden(t);
      const read = await readBy(t, "limited", `?fields=${field}`, "some 4xx");
      read.control({ differs: "the main caller asks", seen: control });
      read.mustAnswer("refused", "4xx");
    },
  }),
  rule("AUT-02", "The value of a forbidden field never comes when it is asked for", {
    spec: ["4.1 rule 6", "5.2"],
    reading: "Whatever the status, no byte of the answer holds the value: not in the body, not in a header.",
    hurts,
    needs: ["limited"],
    async check(t) {
      const at = await forbidden(t);
      mustHide(
        await readBy(t, "limited", `?fields=${at.field}`, "the value does not come"),
        at,
        `?fields=${at.field}`,
      );
    },
  }),
  rule("AUT-03", "A forbidden field beside allowed ones is refused as well", {
    spec: ["5.3"],
    hurts: omitted,
    needs: ["limited"],
    async check(t) {
      const at = await forbidden(t);
      const { field, others } = at;
      for (const query of [`?fields=${others[0]},${field}`, `?fields=${field},${others.join(",")}`]) {
        const read = await readBy(t, "limited", query, "some 4xx");
        mustHide(read, at, query);
        read.mustAnswer("refused", "4xx");
      }
    },
  }),
  rule("AUT-04", "No spelling of a forbidden field gets past the policy", {
    spec: ["4.1 rule 6"],
    reading:
      "Other case, repeats, a repeated parameter, blanks, percent-encoding once or twice, a parameter of another name, the address spelled otherwise: whatever the status, the value never comes.",
    hurts,
    needs: ["limited"],
    async check(t) {
      const at = await forbidden(t);
      const { field, others } = at;
      for (const query of spellings(
        field,
        others[0] ?? "id",
        t.leavesOut("fields and a parameter of another name in one query"),
      ))
        mustHide(await readBy(t, "limited", query, "the value does not come"), at, query);
      for (const parameter of usualParameters(t)) {
        const query = `?${parameter}`;
        mustHide(await readBy(t, "limited", query, "the value does not come"), at, query);
      }
      for (const customer of otherPathsOf(t))
        for (const query of [`?fields=${field}`, ""]) {
          const read = await readBy(t, "limited", query, "the value does not come", customer);
          mustHide(read, at, `${pathEnd(customer)}${query}`);
        }
    },
  }),
  rule("AUT-05", "The default set leaves out what the caller may not read", {
    spec: ["4.1 rule 6", "5.2", "4.1 rule 8"],
    hurts,
    needs: ["limited"],
    async check(t) {
      const at = await forbidden(t);
      // Twice: the second answer may come from a cache that the main caller's read has filled.
      for (const time of ["first", "second"]) {
        const read = await readBy(t, "limited", "", `no ${at.field}`);
        const what = `the ${time} read without fields by the limited caller`;
        mustHide(read, at, what);
        const member = memberOf(read.seen, at.field);
        const found = `${what} has the member ${member?.[0]}: ${JSON.stringify(member?.[1])}`;
        read.must("no-member", member === undefined, found);
        await t.get(t.kit.main, { purpose: "the main caller reads in between" });
      }
    },
  }),
  rule("AUT-07", "No write or refusal shows a forbidden field", {
    spec: ["5.2"],
    reading: "Nor does the 412 to a list, `*`, a weak or an unquoted tag, nor the answer to a DELETE.",
    hurts,
    needs: ["limited", "write"],
    after: ["IFM-01"],
    async check(t) {
      const { field } = await forbidden(t);
      const { former } = await t.control("PUT");
      // A PATCH of the forbidden field itself would be an answer to what the caller said.
      const patches = field !== "name" && (await t.patchOffered());
      const { list, star, weak, unquoted } = INEXACT;
      const refused = [STALE, NONE, ...EMPTY.slice(0, 1), ...firstOfEach(list, star, weak, unquoted)];
      const body = JSON.stringify({ [t.kit.deployment.bodyNames.name]: 1 });
      const whole = { how: " and Prefer: return=representation", headers: WHOLE };
      const probes: readonly Write[] = [
        ...refused.map((derive) => ["PUT", derive] as const),
        ["PUT", CURRENT, { how: " and a bad body", body }],
        ["PUT", CURRENT],
        ["PUT", CURRENT, whole],
        ...(patches
          ? ([
              ["PATCH", STALE],
              ["PATCH", CURRENT],
              ["PATCH", CURRENT, whole],
              ["PATCH", CURRENT, { how: " and the stored name", keepsName: true }],
            ] as const)
          : []),
      ];
      for (const [method, derive, { how, keepsName, ...more } = { how: "" }] of probes) {
        const now = await t.state(t.kit.main, "read the value");
        const form = derive(now.tag, former, t.kit.main);
        if (form === undefined) continue;
        const what = `with ${form.what}${how}`;
        const fresh = t.kit.values.next();
        const stored = now.fields.name;
        const name = keepsName && typeof stored === "string" ? stored : fresh.name;
        const proof = await t.writeOnly(method, t.kit.main, {
          ...more,
          what: `${what} by the limited caller`,
          allowed: `no ${field} in the answer`,
          ifMatch: form.lines,
          values: method === "PUT" ? fresh : { name },
          caller: "limited",
        });
        const { seen } = proof;
        proof.show(seen, { came: `${seen.status} ${seen.text.slice(0, 160)}` });
        if (seen.status === 401)
          throw new CouldNotRun("the limited caller's credentials are refused with 401");
        const asMain = () =>
          t.get(t.kit.main, { query: `?fields=${field}`, purpose: "the main caller reads it" });
        const hidden = now.fields[field] ?? memberOf(await asMain(), field)?.[1];
        const answer = `the answer ${seen.status} to ${method} ${what}`;
        proof.must("no-value", !revealed(seen, field, hidden), `${answer} holds the forbidden ${field}`);
        const member = memberOf(seen, field)?.[0];
        const shown = accepted(seen.status) && member !== undefined;
        proof.must("no-member", !shown, `${answer} has the forbidden member ${member}`, {
          // What the caller has just written itself tells it nothing.
          level: method === "PUT" && field !== "status" ? "SHOULD" : "MUST",
        });
      }
      if (t.kit.deployment.deleteOffered === true && t.kit.ground.cannotMake === undefined)
        await hiddenByDelete(t, field);
    },
  }),
  rule("AUT-15", "No way of sending a read gets past the policy", {
    spec: ["4.1 rule 6", "5.2", "5.3"],
    reading:
      "A condition, another media type or coding that is accepted, the whole URL in the request line, HEAD, OPTIONS, POST, a very long list of fields, a list of customers: whatever the status, the value never comes; and where a plain read of the field is refused, neither 304 nor an object is the answer to the same read sent otherwise. HEAD that is accepted there is a warning.",
    hurts,
    needs: ["limited"],
    after: ["AUT-01", "AUT-05"],
    async check(t) {
      const at = await forbidden(t);
      const current = at.control.tag ?? '"kit-none"';
      const hidden = await hiddenPlainly(t, at);
      const ways = [...conditional(current), ...otherWays(t), ...claims(t, `?fields=${at.field}`)];
      for (const query of hidden)
        for (const way of ways) {
          const read = await readBy(t, "limited", query, `no ${at.field}`, t.kit.main, way);
          mustStayHidden(read, at, query !== "");
        }
      if (hidden.some((query) => query !== "")) await refusedByHead(t, at);
      if (!hidden.includes("")) return;
      // What does not ask for the field.
      const reads: readonly (readonly [query: string, way: WayOfReading])[] = [
        [manyTimes(at.others[0] ?? "id"), ["", {}]],
        ...otherMethods(t).map((way) => ["", way] as const),
      ];
      for (const [query, way] of reads) {
        const read = await readBy(t, "limited", query, `no ${at.field}`, t.kit.main, way);
        mustHide(read, at, read.evidence.probe);
      }
      for (const list of lists(t)) {
        const read = await readBy(t, "limited", "", `no ${at.field}`, list);
        mustHide(read, at, read.evidence.probe);
      }
    },
  }),
  rule("AUT-16", "Nothing that a caller has done shows it a forbidden field", {
    spec: ["5.2", "5.3"],
    reading:
      "Role and tenant decide, so the field stays hidden before the first update, right after whatever the main caller was refused, after a stale write, after a write of the caller's own, and once the customer is deleted. What a PUT of its own has stored it knows already: a warning.",
    hurts,
    needs: ["limited", "write"],
    after: ["IFM-01", "AUT-01", "AUT-05"],
    check: staysHidden,
  }),
];

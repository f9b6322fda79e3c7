/** ORD: the order of checks. */

import type { Customer } from "../../fixtures/ground.ts";
import { CouldNotRun, NotApplicable } from "../../http/outcome-signal.ts";
import { accepted, isClientError, isGone } from "../../http/status.ts";
import { getOf } from "../../probe/answered.ts";
import { type Attempt, BASE, type ReadOptions } from "../../probe/attempt.ts";
import { isAnyIdRead, showsCustomer } from "../../probe/callers/existence.ts";
import { updatedCustomer } from "../../probe/prepared.ts";
import { type Kind, STATUS } from "../../probe/refusals/refusal-probe.ts";
import { afterBase, NEEDS } from "../../probe/refusals/refused.ts";
import {
  type Derive,
  EMPTY,
  firstOfEach,
  INEXACT,
  ifMatch,
  NEVER_GIVEN_TAG,
  NONE,
} from "../../probe/requests/if-match-forms.ts";
import { pathEnd, takenPaths } from "../../probe/requests/other-paths.ts";
import { OTHER_TRANSFERS, OTHER_WAYS } from "../../probe/requests/ways-of-reading.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import type { Method } from "../../probe/snapshot.ts";

type Missing = Pick<Rule, "spec" | "hurts"> & {
  readonly on: Method;
  readonly forms: readonly Derive[];
  readonly answered: 404 | 428;
  readonly reading?: string;
};

const ANY: readonly Derive[] = [
  (tag) => ({ what: "If-Match", lines: ifMatch(tag) }),
  () => ({ what: "If-Match", lines: ifMatch(NEVER_GIVEN_TAG) }),
];
/** That they are no tag of any customer may be seen before the customer is looked for, but is no mismatch. */
const NO_TAGS = firstOfEach(INEXACT.weak, INEXACT.unquoted, INEXACT.list);
const BLANKS: Derive = () => ({ what: "an If-Match of blanks", lines: ifMatch("  \t") });
const PUT_FIRST =
  "PATCH and DELETE follow PUT; the specification says 404 of GET and PUT alone, hence a warning. That nothing is created is no matter of order.";

/** Writes to a customer that does not exist. The control request: the same write to one that does. */
function toMissing(id: Rule["id"], title: string, { on, forms, answered, ...given }: Missing): Rule {
  const level = on === "PUT" ? "MUST" : "SHOULD";
  return rule(id, title, {
    ...given,
    needs: on === "DELETE" ? ["write", "delete"] : NEEDS[on],
    after: afterBase(id, on, ...(answered === 428 ? (["missing"] as const) : [])),
    async check(t) {
      // DELETE has no control request here: one that succeeded has shown that it is offered.
      const control = on === "DELETE" ? undefined : await t.control(on);
      const { tag } = control ?? (await t.state(t.kit.main, "read a real tag"));
      const missing = t.kit.ground.missing();
      for (const derive of forms) {
        const form = derive(tag, tag, missing);
        if (form === undefined) continue;
        const probe = await t.writeOnly(on, missing, {
          what: `to a missing customer with ${form.what}`,
          ifMatch: form.lines,
          allowed: `${answered}, and none is created`,
        });
        const also = NO_TAGS.includes(derive) ? [400] : [];
        const { seen } = probe;
        if (control !== undefined)
          probe.control({
            differs: "the customer exists and If-Match is current",
            seen: control.written.seen,
          });
        const blamed = answered === 428 && t.blamedBefore(on, "missing", seen.status);
        probe.mustAnswer("status", blamed ? seen.status : [answered, ...also], { level });
        if (on === "DELETE") continue;
        const after = await t.get(missing, { purpose: "read back" });
        if (after.status === 200 && (await isAnyIdRead(t))) continue;
        const found = `a GET of the missing customer then answers ${after.status}: it was created`;
        probe.show(seen, { after }).must("not-created", !showsCustomer(after), found);
      }
    },
  });
}

type Bad = { readonly what: string; readonly body: string; readonly json: boolean };

/** Bodies that are no JSON object with Name and Email. */
function badBodies(t: Attempt): readonly Bad[] {
  const { bodyNames } = t.kit.deployment;
  const { name, email } = t.kit.values.next();
  const bad = (what: string, body: string, json = true): Bad => ({ what, body, json });
  return [
    bad("broken JSON", `{"${bodyNames.name}": "${name}", "${bodyNames.email}": `, false),
    bad("an empty body", "", false),
    bad("a JSON list", JSON.stringify([name, email])),
    bad("a JSON string", JSON.stringify(name)),
    bad("JSON null", "null"),
    bad("an empty object", "{}"),
  ];
}

/**
 * Precondition and body both bad. If-Match must be there before all else (4.2), so without it a JSON body is not
 * judged; what is no JSON may be stopped before there is anything to check. When a body is judged beside the later
 * checks is open. IFM-04 says the same of a good body.
 */
const EARLIER_REFUSAL = {
  missing: { json: "MUST", other: "SHOULD" },
  stale: { json: "SHOULD", other: "SHOULD" },
} as const;

function badBody(id: Rule["id"], kind: Kind, given: Pick<Rule, "spec" | "hurts" | "reading">): Rule {
  const what = kind === "missing" ? "without If-Match" : "with a stale tag";
  return rule(id, `PUT ${what} and with a bad body: ${STATUS[kind]}`, {
    ...given,
    needs: ["write"],
    after: afterBase(id, "PUT", kind),
    async check(t) {
      const { former, ...now } = await t.control("PUT");
      const stale = former === now.tag ? NEVER_GIVEN_TAG : former;
      for (const { what, body, json } of badBodies(t)) {
        const put = await t.write("PUT", {
          ifMatch: kind === "missing" ? [] : ifMatch(stale),
          body,
          what: `${kind === "missing" ? "no If-Match" : "a stale tag"} and ${what}`,
          allowed: `${STATUS[kind]}, nothing changed`,
        });
        const level = put.accepted ? "MUST" : EARLIER_REFUSAL[kind][json ? "json" : "other"];
        const blamed = t.blamedBefore("PUT", kind, put.seen.status);
        const name = kind === "missing" && !json ? "no-json" : "status";
        put.mustAnswer(name, blamed ? put.seen.status : STATUS[kind], { level });
        put.mustNotChange();
      }
    },
  });
}

/** PATCH and DELETE of a deleted customer: 404 is said of GET and PUT alone (7), and a DELETE may be idempotent. */
async function late(t: Attempt, method: "PATCH" | "DELETE", customer: Customer, tag: string): Promise<void> {
  const what = `${method === "PATCH" ? "to" : "of"} a deleted customer with its last tag`;
  const write = await t.writeOnly(method, customer, { what, allowed: "404", ifMatch: tag });
  const { status } = write.seen;
  const found = `${method} ${what} was answered ${status}`;
  const after = await t.get(customer, { purpose: "read back" });
  write.show(write.seen, { after });
  if (method === "PATCH") write.must("patch-refused", !accepted(status), `${found}: accepted`);
  write.must("not-revived", after.status !== 200, `${found}, and the deleted customer is back`);
  write.should("gone", accepted(status) || isGone(status), `${found}, not 404`);
}

export const order: readonly Rule[] = [
  toMissing("ORD-01", "PUT to a missing customer without If-Match: 428 before 404", {
    spec: ["4.2 order 1"],
    hurts:
      "Clients that forgot the header learn it only on ids that exist, and ids can be probed without a token.",
    on: "PUT",
    forms: [NONE],
    answered: 428,
  }),
  toMissing("ORD-02", "PUT to a missing customer with a blank If-Match: 428 before 404", {
    spec: ["4.2 order 1"],
    hurts: "The same fault of a client is answered in two ways.",
    on: "PUT",
    forms: [...EMPTY, BLANKS],
    answered: 428,
  }),
  toMissing("ORD-03", "PUT to a missing customer with If-Match: 404 before 412", {
    spec: ["4.2 order 2", "7 404"],
    hurts:
      "On 412 a client reads again and retries forever against a customer that is gone, or creates one by accident.",
    reading:
      "Also with a weak tag, one without quotes, or a list, which match no customer; 400 will do for these.",
    on: "PUT",
    forms: [...ANY, ...NO_TAGS],
    answered: 404,
  }),
  toMissing("ORD-04", "PUT to a missing customer with If-Match *: 404", {
    spec: ["4.2 order 2", "7 404"],
    hurts: "A client that sends `*` creates or overwrites what it never read.",
    on: "PUT",
    forms: firstOfEach(INEXACT.star),
    answered: 404,
  }),
  ...(
    [
      ["ORD-06", "PATCH to", "with If-Match", 404],
      ["ORD-07", "PATCH to", "without If-Match", 428],
      ["ORD-08", "DELETE of", "with If-Match", 404],
      ["ORD-09", "DELETE of", "without If-Match", 428],
    ] as const
  ).map(([id, what, how, answered]) =>
    toMissing(id, `${what} a missing customer ${how}: ${answered}`, {
      spec: ["4.3 same", answered === 404 ? "4.2 order 2" : "4.2 order 1"],
      reading: PUT_FIRST,
      hurts: "The methods answer the same situation differently.",
      on: what === "PATCH to" ? "PATCH" : "DELETE",
      forms: answered === 404 ? ANY : [NONE],
      answered,
    }),
  ),
  rule("ORD-05", "A write to a deleted customer with its last tag: 404", {
    spec: ["4.2 order 2", "7 404"],
    reading:
      "Once a read says 404, a PUT with the last token, or one before it, is 404, a PATCH is refused, and nothing brings the customer back: no projection, no conditional read, no read by the limited caller, by HEAD, over HTTP/1.0 or at another spelling of the address. Another refusal than 404 of PATCH or a second DELETE is a warning.",
    hurts: "A deleted customer rises again with old data.",
    needs: NEEDS.DELETE,
    after: ["IFM-40"],
    async check(t) {
      const { customer, former } = await updatedCustomer(t);
      const projections = ["?fields=name", "?fields=id", "?fields=status"];
      // A cache that reads fill may keep them.
      for (const query of projections) await t.get(customer, { query, purpose: "read before the DELETE" });
      const spelled = await takenPaths(t, customer);
      for (const to of spelled) await t.get(to, { purpose: "read before the DELETE" });
      const caller = t.kit.profile.limited === undefined ? undefined : ("limited" as const);
      if (caller !== undefined) await t.get(customer, { caller, purpose: "read before the DELETE" });
      const removal = await t.write("DELETE", { to: customer, what: "the current tag", purpose: "delete" });
      const gone = await t.untilGone(customer, removal);
      const { status } = removal.seen;
      if (gone.status === 410 || (gone.status === 200 && accepted(status)))
        throw new NotApplicable(
          `after DELETE a read answers ${gone.status}: deletion leaves a trace here, and the customer is not plainly gone`,
        );
      if (gone.status !== 404)
        throw new CouldNotRun(
          `DELETE answered ${status} and a read then ${gone.status}, so the customer is not plainly gone`,
          [BASE.DELETE.current],
        );
      for (const [what, ifMatch] of [
        ["its last tag", removal.before.tag],
        ["a former tag", former],
      ] as const) {
        const put = await t.writeOnly("PUT", customer, {
          what: `to a deleted customer with ${what}`,
          allowed: "404",
          ifMatch,
        });
        const after = await t.get(customer, { purpose: "read back" });
        put.show(put.seen, { after });
        put.mustAnswer("status", 404);
        put.must("not-revived", after.status !== 200, "the deleted customer is back");
      }
      if (await t.patchOffered()) await late(t, "PATCH", customer, removal.before.tag);
      await late(t, "DELETE", customer, removal.before.tag);
      for (const query of projections) {
        const what = `${getOf(query)} of the deleted customer`;
        (await t.read(query, "404, as without fields", { to: customer, what })).mustAnswer(
          "projection-gone",
          404,
        );
      }
      const others: readonly (readonly [how: string, shape: ReadOptions])[] = [
        ["with its last tag in If-None-Match", { headers: [["If-None-Match", removal.before.tag]] }],
        ...(caller === undefined ? [] : [["by the limited caller", { caller }] as const]),
        ...OTHER_TRANSFERS,
        ...OTHER_WAYS,
        ...spelled.map((to) => [`at ${pathEnd(to)}`, { to }] as const),
      ];
      for (const [how, shape] of others) {
        const what = `GET of the deleted customer ${how}`;
        const read = await t.read("", "404, as by the main caller", { to: customer, ...shape, what });
        const there = accepted(read.seen.status) || read.seen.status === 304;
        read.must("read-gone", !there, `${what} was answered ${read.seen.status}`);
      }
      const what = "HEAD of the deleted customer";
      const head = await t.read("", "404, as GET", { to: customer, sentAs: "HEAD", what });
      const { status: answered, tag } = head.seen;
      const nobodys = await t.get(t.kit.ground.missing(), {
        sentAs: "HEAD",
        purpose: "control request: HEAD",
      });
      const shown = accepted(answered) && tag !== undefined && !accepted(nobodys.status);
      const found = `${what} was answered ${answered} with ${tag}, that of one that never existed ${nobodys.status}`;
      head.must("head-gone", !shown, found);
    },
  }),
  badBody("ORD-10", "missing", {
    spec: ["4.2 order 1"],
    reading:
      "A body that is no JSON at all may be stopped before there is anything to check: a warning. Being applied is not.",
    hurts: "A client corrects its body only to learn that it lacked the header all along.",
  }),
  badBody("ORD-11", "stale", {
    spec: ["4.2 order 3"],
    reading:
      "Where a bad body is refused is not said, so an earlier refusal is a warning; being applied is not.",
    hurts: "A client corrects its body only to learn that it was stale all along.",
  }),
  rule("ORD-12", "Unknown field on a missing customer: 400 before 404", {
    spec: ["4.1 rule 5"],
    reading: "The answer does not depend on whether the customer exists.",
    hurts: "A fault of the client hides behind 404, and each bad request costs a read.",
    async check(t) {
      const missing = t.kit.ground.missing();
      const get = (to: Customer, query: string, purpose: string) => t.get(to, { query, purpose });
      const exists = await get(t.kit.main, "?fields=kitunknown", "control request: the customer exists");
      const known = await get(missing, "?fields=name", "control request: the field is known");
      if (!isClientError(exists.status) || accepted(known.status))
        throw new CouldNotRun(
          `an unknown field is answered ${exists.status}, a missing customer ${known.status}`,
          ["FLD-03", "PRB-01"],
        );
      for (const query of ["?fields=kitunknown", "?fields=name,kitunknown"]) {
        const what = `${getOf(query)} of a missing customer`;
        const read = await t.read(query, "400, as for one that exists", { to: missing, what, body: false });
        read.control({ differs: "the customer exists", seen: exists });
        // Which status it should be is FLD-03's matter; here it must not hang on existence.
        const found = `${what} was answered ${read.seen.status}, of one that exists ${exists.status}`;
        read.must("status", read.seen.status === exists.status, found);
      }
    },
  }),
  rule("ORD-13", "A bad body with the current tag is refused and nothing is changed", {
    spec: ["2.3 Name", "2.3 Email", "4.2 body"],
    reading: "By some 4xx, whatever the token.",
    hurts: "Half a body overwrites a whole customer.",
    needs: ["write"],
    after: ["IFM-01"],
    async check(t) {
      for (const { what, body } of badBodies(t)) {
        const { written } = await t.control("PUT");
        const put = await t.write("PUT", {
          before: written.now,
          body,
          what: `the current tag and ${what}`,
          allowed: "some 4xx, nothing changed",
        });
        put.control({ differs: "the body is good", seen: written.seen });
        put.mustAnswer("refused", "4xx");
        put.mustNotChange();
      }
    },
  }),
  rule("ORD-14", "PUT to a deleted customer without If-Match: 428 before 404", {
    spec: ["4.2 order 1", "4.2 428"],
    reading: "If-Match is looked at first, whether the customer never was or was deleted.",
    hurts: "Clients that forgot the header learn it only as long as the customer lives.",
    needs: NEEDS.DELETE,
    after: ["IFM-04", "IFM-40"],
    async check(t) {
      const customer = await t.kit.ground.make();
      const removal = await t.control("DELETE", { to: customer });
      await t.untilGone(customer, removal.written);
      for (const [how, lines] of [
        ["no If-Match", []],
        ["a blank If-Match", ifMatch("  ")],
      ] as const) {
        const what = `to a deleted customer with ${how}`;
        const put = await t.writeOnly("PUT", customer, { what, allowed: "428", ifMatch: lines });
        const { status } = put.seen;
        put.mustAnswer("status", t.blamedBefore("PUT", "missing", status) ? status : 428);
      }
    },
  }),
].toSorted((a, b) => a.id.localeCompare(b.id));

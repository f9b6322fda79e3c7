/** AUT: reads by another tenant. */

import type { Customer } from "../../fixtures/ground.ts";
import { CouldNotRun, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { accepted, isClientError } from "../../http/status.ts";
import { type Answered, getOf } from "../../probe/answered.ts";
import type { Attempt } from "../../probe/attempt.ts";
import { mustHideValues, mustTellNothing, unrefused } from "../../probe/callers/disclosure.ts";
import { readBy } from "../../probe/callers/read-by.ts";
import { refusedToMain } from "../../probe/races/just-before.ts";
import { lists, otherPathsOf, pathEnd } from "../../probe/requests/other-paths.ts";
import {
  claims,
  manyTimes,
  otherMethods,
  otherWays,
  usualParameters,
  type WayOfReading,
} from "../../probe/requests/ways-of-reading.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import type { Snapshot } from "../../probe/snapshot.ts";
import { saysNothing } from "../../probe/weather.ts";

const asOther = (t: Attempt, query: string, to?: Customer, way?: WayOfReading): Promise<Answered> =>
  readBy(t, "other-tenant", query, "no 2xx, and no value of the customer", to, way);

/** Of a customer that was never updated: what is joined with its history finds none. */
async function readsOfFresh(t: Attempt): Promise<void> {
  const customer = await t.neverUpdated();
  if (customer === undefined) return;
  const now = await t.state(customer, "read by the owner");
  for (const query of ["", "?fields=name"]) {
    const what = `another tenant's ${getOf(query)} of a customer that was never updated`;
    const read = await asOther(t, query, customer);
    const { status } = read.seen;
    read.must("refused", !accepted(status), `${what} was answered ${status}, not refused`);
    mustHideValues(read, read.seen, now, what);
  }
}

/** Right after requests of the owner that were refused, and the owner right after one of the stranger. */
async function readsJustAfter(t: Attempt, main: Snapshot): Promise<void> {
  for (const [what, happens] of refusedToMain(t, t.kit.main)) {
    await happens();
    const read = await asOther(t, "", t.kit.main, [`right after ${what}`, {}]);
    const { status } = read.seen;
    read.must("refused", !accepted(status), `${read.evidence.probe} was answered ${status}, not refused`);
    mustHideValues(read, read.seen, main, read.evidence.probe);
  }
  const query = "?fields=kitunknown";
  await t.get(t.kit.main, { query, caller: "other-tenant", purpose: "right before" });
  const what = `GET by the owner, right after another tenant's ${getOf(query)}`;
  const own = await t.read("", "200", { what });
  if (!saysNothing(own.seen, "main")) own.mustAnswer("owner-unaffected", 200, OTHERS_MAY_CAUSE);
}

/** Headers on which a read may take another way through the service. */
const READ_HEADERS = (tag: string): readonly WayOfReading[] => [
  ["", {}],
  ["with the current tag in If-None-Match", { headers: [["If-None-Match", tag]] }],
  ["with If-None-Match *", { headers: [["If-None-Match", "*"]] }],
  ["with Accept-Encoding: gzip", { headers: [["Accept-Encoding", "gzip"]] }],
];

/** A filter may be bound to one role. A caller may belong to more than one tenant, so it is a warning. */
async function limitedReadsNoOthers(t: Attempt): Promise<void> {
  if (t.kit.profile.limited === undefined || t.kit.options.mode === "read-only") return;
  const theirs = await t.kit.ground.madeBy("other-tenant");
  if (theirs === undefined) return;
  const mainReadsIt = accepted(
    (await t.get(theirs, { caller: "main", purpose: "control request: the main caller" })).status,
  );
  // Where the main caller may read it too, something else than the tenant separates them.
  if (mainReadsIt) return;
  const read = await readBy(t, "limited", "", "4xx, as the main caller", theirs);
  const { status } = read.seen;
  const found = `the limited caller reads a customer of the other tenant, which the main caller does not: ${status}`;
  read.should("not-by-limited", !accepted(status), found);
}

export const otherTenantReads: readonly Rule[] = [
  rule("AUT-08", "Another tenant cannot read the customer", {
    spec: ["4.1 rule 6", "5.2", "4.1 rule 8"],
    reading:
      "No 2xx and no value, with and without `fields`, in capitals and in a long list. To HEAD, OPTIONS and POST, and where the address is spelled otherwise, the status is open, and no value comes either; nor in a list of customers, where there is one. That the limited caller reads the other tenant's customer is a warning.",
    hurts: "One tenant reads another's customers.",
    needs: ["other-tenant"],
    async check(t) {
      const main = await t.state(t.kit.main, "control request: the main caller");
      for (const query of [
        "",
        "?fields=name",
        "?fields=id",
        "?fields=status",
        "?fields=id,name,email,status",
      ]) {
        const before = await t.get(t.kit.main, { query, purpose: "the owner reads before the stranger" });
        let status = 0;
        for (const way of READ_HEADERS(main.tag)) {
          const [how, shape] = way;
          const read = await asOther(t, query, t.kit.main, way);
          read.control({ differs: "the main caller asks", seen: before });
          status = read.seen.status;
          const what = `another tenant's ${getOf(query)} ${how}`.trim();
          read.mustAnswer("refused", "4xx");
          mustHideValues(read, read.seen, main, what);
          if (accepted(status)) continue;
          await mustTellNothing(read, t.kit.main.id, what, async (to) => {
            const asked = to === "customer" ? t.kit.main : t.kit.ground.missing();
            return { seen: await t.get(asked, { ...shape, query, caller: "other-tenant" }), id: asked.id };
          });
        }
        // A cache that keys on the URL alone now hands the stranger's refusal to the owner.
        const own = await t.read(query, `${before.status}, as before the stranger's`, {
          what: `${getOf(query)} by the owner, after another tenant's was answered ${status},`,
        });
        own.mustAnswer("owner-unaffected", before.status, OTHERS_MAY_CAUSE);
      }
      for (const query of ["?fields=NAME,EMAIL", manyTimes("name")]) {
        const read = await asOther(t, query);
        const { status } = read.seen;
        const what = `another tenant's GET ${query}`;
        read.must("refused", !accepted(status), `${what} was answered ${status}, not refused`);
        mustHideValues(read, read.seen, main, what);
      }
      const ways = [...otherWays(t), ...claims(t, ""), ...otherMethods(t)];
      const reads = [
        ...ways.map((way) => ["", way] as const),
        ...usualParameters(t).map((parameter) => [`?${parameter}`, undefined] as const),
      ];
      for (const [query, way] of reads) {
        const read = await asOther(t, query, t.kit.main, way);
        mustHideValues(read, read.seen, main, read.evidence.probe);
      }
      await readsOfFresh(t);
      await readsJustAfter(t, main);
      for (const customer of otherPathsOf(t))
        for (const query of ["", "?fields=name,email"]) {
          const read = await asOther(t, query, customer);
          mustHideValues(read, read.seen, main, `another tenant's GET ${pathEnd(customer)}${query}`);
        }
      for (const list of lists(t)) {
        const read = await asOther(t, "", list);
        mustHideValues(read, read.seen, main, read.evidence.probe);
      }
      await limitedReadsNoOthers(t);
    },
  }),
  rule("AUT-11", "Unknown fields are refused to every caller alike", {
    level: "SHOULD",
    spec: ["4.1 rule 5"],
    reading: "400 before any data is read, so also for another tenant's customer.",
    hurts: "The answer tells a stranger whether the customer exists.",
    needs: ["other-tenant"],
    async check(t) {
      const query = "?fields=kitunknown";
      const control = await t.get(t.kit.main, { query, purpose: "control request: the main caller" });
      if (!isClientError(control.status))
        throw new CouldNotRun(`an unknown field is answered ${control.status}`, ["FLD-03"]);
      const read = await unrefused(() => asOther(t, query));
      read.control({ differs: "the main caller asks", seen: control });
      read.mustAnswer("status", control.status);
    },
  }),
];

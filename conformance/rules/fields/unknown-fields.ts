/** FLD: names that no field has are refused. */

import { accepted } from "../../http/status.ts";
import type { Answered } from "../../probe/answered.ts";
import type { Attempt } from "../../probe/attempt.ts";
import { unrefused } from "../../probe/callers/disclosure.ts";
import { readBy } from "../../probe/callers/read-by.ts";
import { headIsGet } from "../../probe/requests/by-head.ts";
import { COMPRESSED, conditional, USUAL_HEADERS } from "../../probe/requests/ways-of-reading.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { WRITABLE } from "../../probe/snapshot.ts";
import { holds } from "../../probe/token/holds.ts";
import { saysNothing } from "../../probe/weather.ts";
import { FIELDS } from "../../target/profile-file.ts";
import { knownFieldsWork } from "./selected-fields.ts";

/** A firewall before the service may take these for an attack. */
const STOPPABLE = /[;'"|$*\0<{%(]/;

const FEW = 10;

/** Each name must be unknown. The control request: a known name is answered 200. */
async function unknown(t: Attempt, names: readonly string[]): Promise<void> {
  const control = await knownFieldsWork(t);
  for (const name of names) {
    const text = encodeURIComponent(name);
    const beside = [`?fields=name,${text}`, `?fields=${text},id`];
    const short = names.length > FEW && t.leavesOut("odd names beside known ones");
    for (const query of [`?fields=${text}`, ...(short ? [] : beside)]) {
      const stoppable = STOPPABLE.test(name);
      const read = await t.read(query, "400", { answers: stoppable ? [403] : [] });
      read.control({ differs: "the name is known: ?fields=name", seen: control });
      read.mustAnswer("status", stoppable ? [400, 403] : 400);
    }
  }
}

/** Where the limited caller is shown the rest of the list, nothing but the unknown name is left to refuse. */
async function limitedMustAnswer400(t: Attempt, read: Answered, known: string): Promise<void> {
  const { status } = read.seen;
  if (status === 400 || accepted(status) || saysNothing(read.seen, "limited")) return;
  const { search } = new URL(read.seen.exchange.request.url);
  const again = async () => ({
    seen: await t.get(t.kit.main, { query: search, caller: "limited", purpose: "the same request again" }),
  });
  // A refusal that comes and goes is the environment's.
  if ((await unrefused(again)).seen.status !== status) return;
  const query = `?fields=${known || "id"}`;
  const control = await t.get(t.kit.main, { query, caller: "limited", purpose: "control request" });
  if (control.status !== 200) return;
  read.control({ differs: `the name is known: ${query}`, seen: control });
  read.mustAnswer("limited-status", 400);
}

/** The rights of the limited caller may explain any refusal, but no 2xx. */
async function refusedToLimited(t: Attempt, names: string): Promise<Answered> {
  const read = await readBy(t, "limited", `?fields=${names}`, "some 4xx");
  const { status } = read.seen;
  read.must("refused", !accepted(status), `${read.evidence.probe} was answered ${status}, not refused`);
  return read;
}

/** An unknown name in a long list, or named twice. Sections 8.1 and 7.7 allow other refusals, but no 2xx. */
async function unknownIsRefused(t: Attempt): Promise<void> {
  const known = FIELDS.join(",");
  for (const names of [
    "name,kitunknown,kitunknown",
    `${known},${known},${known},kitunknown`,
    `${known},kitunknown,${known},${known}`,
    `${`${known},`.repeat(16)}kitunknown`,
    `${`${known},`.repeat(60)}kitunknown`,
  ]) {
    const read = await t.read(`?fields=${names}`, "some 4xx", { what: `GET ?fields=${names}` });
    const found = `a list of ${names.split(",").length} names, not all of them known, was answered ${read.seen.status}, not refused`;
    read.must("refused", !accepted(read.seen.status), found);
  }
  if (t.kit.profile.limited === undefined) return;
  for (const known of ["", ...FIELDS]) {
    const read = await refusedToLimited(t, known === "" ? "kitunknown" : `${known},kitunknown`);
    await limitedMustAnswer400(t, read, known);
  }
}

/** Looks only where other unknown names are refused: else FLD-03 reports it. */
async function createdAtToLimited(t: Attempt): Promise<void> {
  if (t.kit.profile.limited === undefined) return;
  for (const known of ["", "name,"]) {
    const query = `?fields=${known}kitunknown`;
    const purpose = "control request: any unknown name";
    const control = await t.get(t.kit.main, { query, caller: "limited", purpose });
    if (!accepted(control.status)) await refusedToLimited(t, `${known}createdAt`);
  }
}

/** A customer that was never updated may be read from the event of its create, which has more fields. */
async function unknownBeforeAnyUpdate(t: Attempt, unknown: string): Promise<void> {
  const to = await t.neverUpdated();
  if (to === undefined) return;
  const query = `?fields=${unknown}`;
  const what = `GET ${query} of a customer that was never updated`;
  const read = await t.read(query, "400", { to, what });
  const { status } = read.seen;
  read.must("never-updated", !accepted(status), `${what} was answered ${status}, not refused`);
}

/** A filter that confirms what the caller holds, or a copy that is kept, may come before anything looks at the query. */
async function unknownIsRefusedHoweverAsked(t: Attempt): Promise<void> {
  const control = await t.state(t.kit.main, "control request: no fields");
  const query = "?fields=name,kitunknown";
  for (const [how, shape] of [...conditional(control.tag), ...COMPRESSED, ...USUAL_HEADERS]) {
    const read = await t.read(query, "400", { ...shape, what: `GET ${query} ${how}` });
    read.control({ differs: "no unknown name", seen: control.seen });
    read.mustAnswer("status", 400);
  }
  const plain = await t.get(t.kit.main, { query, purpose: "the same by GET" });
  if (accepted(plain.status) || !(await headIsGet(t))) return;
  const read = await t.read(query, "400, as GET", { sentAs: "HEAD", what: `HEAD ${query}`, body: false });
  const found = `HEAD ${query} was answered ${read.seen.status}, and GET ${plain.status}`;
  read.should("by-head", !accepted(read.seen.status), found);
}

const ODD_NAMES = [
  ..."nam names name.first customer.name * __proto__ constructor toString 1 name;email".split(" "),
  ..."name|email $name id'-- na_me _id -name +name name-".split(" "),
  ..."statuses emails ids mail emailAddress fullName state all default tenant tenantId".split(" "),
  ..."a:name name() name/first % name%".split(" "),
  "kitunknown".repeat(7),
  ...['"name"', "'name'", "[name]", "na me", "na\0me", "na\u00a0me", "na\u200bme", "n\u00e3me"],
];

export const unknownFields: readonly Rule[] = [
  rule("FLD-03", "An unknown name is refused with 400", {
    spec: ["2.2 unknown", "4.1 400", "7 400"],
    reading:
      "Also beside known ones, in a conditional read, compressed, before the first update, and by the limited caller beside what it may read; by HEAD with a warning. In a long list, named twice, or beside a field that it may not read, by some 4xx.",
    hurts: "A misspelt field silently vanishes from every page that shows it.",
    async check(t) {
      await unknown(t, ["kitunknown", "phone"]);
      await unknownIsRefused(t);
      if (t.failures.length === 0) await unknownBeforeAnyUpdate(t, "kitunknown");
      await unknownIsRefusedHoweverAsked(t);
    },
  }),
  rule("FLD-04", "The refusal of an unknown name carries no customer data", {
    spec: ["4.1 rule 5"],
    reading:
      "For the main caller, the limited one, and one of another tenant. The answer does not carry the customer's ETag either.",
    hurts: "A bad request leaks what it was refused.",
    async check(t) {
      const full = await t.state(t.kit.main, "read the values");
      const { limited, otherTenant } = t.kit.profile;
      for (const [caller, by, configured] of [
        ["main", "", true],
        ["limited", " by the limited caller", limited !== undefined],
        ["other-tenant", " by another tenant", otherTenant !== undefined],
      ] as const)
        for (const query of ["?fields=kitunknown", "?fields=email,kitunknown", "?fields=kitunknown,name"]) {
          if (!configured) continue;
          const what = `GET ${query}${by}`;
          const read = await t.read(query, "400, and no value of the customer", { caller, what });
          const { seen } = read;
          if (accepted(seen.status)) continue;
          const come = WRITABLE.filter((field) => holds(seen, full.fields[field]));
          const found = `the answer ${seen.status} to ${what} holds the ${come.join(" and ")}`;
          read.must("no-values", come.length === 0, found);
          const tagged = `the answer ${seen.status} to ${what} carries the ETag ${full.tag}, so data was read`;
          read.must("no-tag", seen.tag !== full.tag, tagged);
        }
      t.mustHaveLooked("unknown fields are answered 200", "FLD-03");
    },
  }),
  rule("FLD-06", "CreatedAt cannot be selected", {
    spec: ["2.1 CreatedAt", "2.2 unknown"],
    reading: "Nor by the limited caller, nor while the customer was never updated.",
    hurts: "The registry is not the list that it claims to be.",
    async check(t) {
      await unknown(t, ["createdAt", "createdat", "CreatedAt", "created_at"]);
      await createdAtToLimited(t);
      await unknownBeforeAnyUpdate(t, "createdAt");
    },
  }),
  rule("FLD-07", "The row version cannot be selected", {
    spec: ["2.1 RowVersion", "2.2 unknown"],
    hurts: "Internal state leaks and clients come to lean on it.",
    check: (t) => unknown(t, ["rowVersion", "rowversion", "RowVersion", "row_version", "etag", "version"]),
  }),
  rule("FLD-08", "Near and odd names are unknown", {
    spec: ["2.2 unknown"],
    reading:
      "A prefix, a plural, a path, `*`, `all`, another word for a field, a long name, a known name with a sign, a quote or a dash added, or a name that a language gives to every object. A letter that only Unicode folds onto another is a warning.",
    hurts: "Names reach reflection or SQL and select what nobody listed.",
    async check(t) {
      const gently = t.gentlyLeavesOut("names that look like an attack");
      await unknown(t, gently ? ODD_NAMES.filter((name) => !STOPPABLE.test(name)) : ODD_NAMES);
      // Unicode folds some letters onto others, and many a mapping to capitals too: no more than a warning.
      for (const name of ["\u0131d", "\u017ftatus", "\uff4eame"]) {
        const query = `?fields=${encodeURIComponent(name)}`;
        const read = await t.read(query, "400");
        const { status } = read.seen;
        read.should("folded", !accepted(status), `GET ${query} was answered ${status}, not 400`);
      }
    },
  }),
];

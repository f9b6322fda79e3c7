/** FLD: the fields that a read selects. */

import { CouldNotRun } from "../../http/outcome-signal.ts";
import { accepted, isClientError } from "../../http/status.ts";
import type { Seen } from "../../http/wire.ts";
import type { Answered } from "../../probe/answered.ts";
import type { Attempt, ReadOptions } from "../../probe/attempt.ts";
import { memberOf } from "../../probe/callers/forbidden-field.ts";
import { readBy } from "../../probe/callers/read-by.ts";
import { pathEnd, takenPaths } from "../../probe/requests/other-paths.ts";
import {
  COMPRESSED,
  conditional,
  otherWays,
  UNKNOWN_PARAMETER,
  usualParameters,
  type WayOfReading,
  withIfMatch,
} from "../../probe/requests/ways-of-reading.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { holds } from "../../probe/token/holds.ts";
import { plain } from "../../target/names.ts";
import { FIELDS, type Field } from "../../target/profile-file.ts";
import { COMBINATIONS } from "../../target/projections.ts";

const less = "Clients get less than they asked for, or data that they did not ask for.";
const isOneOf = (name: string, fields: readonly Field[]) =>
  (fields as readonly string[]).includes(plain(name));

/** Looks at an answer that should hold exactly these fields. A null in place of an absent member is FLD-09's. */
async function selects(t: Attempt, query: string, fields: readonly Field[]): Promise<void> {
  const read = await t.read(query, `200 with exactly ${fields.join(", ")}`);
  const { object } = read.seen;
  if (!read.mustAnswer("status", 200)) return;
  const names = Object.entries(object ?? {})
    .filter(([name, value]) => value !== null || isOneOf(name, fields))
    .map(([name]) => plain(name));
  const missing = fields.filter((field) => !names.includes(field));
  const extra = names.filter((name) => !fields.includes(name as Field));
  const shown = `${missing.join(", ")} did not come; it shows ${names.join(", ") || "nothing"}`;
  const found = `GET ${query}: ${object === undefined ? "the body is no JSON object" : shown}`;
  read.must("complete", missing.length === 0, found);
  read.must("no-other", extra.length === 0, `GET ${query}: ${extra.join(", ")} came as well, not requested`);
}

/** 200 has no member beyond those named; a 5xx is a warning. */
function nothingBeyond(read: Answered, what: string, fields: readonly Field[]): void {
  const { status, object } = read.seen;
  read.should("no-5xx", status < 500, `${what} was answered ${status}`);
  if (status !== 200) return;
  const extra = Object.keys(object ?? {}).filter((name) => !isOneOf(name, fields));
  read.must("no-other", extra.length === 0, `${what}: ${extra.join(", ")} came as well, beyond those named`);
}

/**
 * The maximum number of fields of a request exists, and its value is open (8.1): the size from which on every
 * selection is refused by a 4xx, while one name alone is answered 200.
 */
async function fieldsAtMost(t: Attempt): Promise<number> {
  await knownFieldsWork(t);
  for (let size = FIELDS.length; size > 2; size -= 1) {
    for (const fields of COMBINATIONS.filter(({ length }) => length === size)) {
      const query = `?fields=${fields.join(",")}`;
      const { status } = await t.get(t.kit.main, { query, purpose: "find the maximum of fields" });
      if (!isClientError(status)) return size;
    }
  }
  // A list of one is none: pairs must be taken.
  return 2;
}

export async function knownFieldsWork(t: Attempt): Promise<Seen> {
  const control = await t.get(t.kit.main, { query: "?fields=name", purpose: "control request" });
  if (control.status !== 200)
    throw new CouldNotRun(
      `GET ?fields=name was answered ${control.status}, so a refusal would prove nothing`,
      ["FLD-01"],
    );
  return control;
}

/** The whole, or all of it as a part (RFC 9110 15.3.7). */
const SHOWN = [200, 206];

/** A 200 has no member beyond these fields. FLD-09 looks at those that are null. */
function noOther(read: Answered, name: string, fields: readonly Field[]): void {
  const { status, object } = read.seen;
  if (!SHOWN.includes(status)) return;
  const extra = Object.entries(object ?? {})
    .filter(([member, value]) => value !== null && !isOneOf(member, fields))
    .map(([member]) => member);
  const found = `${read.evidence.probe}: ${extra.join(", ")} came as well, not requested`;
  read.must(name, extra.length === 0, found);
}

const ONE = "?fields=name";

/** What another piece of code answers, if it answers anything, holds no more than what was asked for. */
async function selectsInOtherWays(t: Attempt): Promise<void> {
  const { fields, tag } = await t.state(t.kit.main, "read the values");
  const shaped: readonly WayOfReading[] = [...otherWays(t), ...conditional(tag), withIfMatch(tag)];
  const ways: (readonly [what: string, query: string, options: ReadOptions])[] = [
    ...shaped.map(([how, shape]) => [`GET ${ONE} ${how}`, ONE, shape] as const),
    ...[
      `?${UNKNOWN_PARAMETER}&fields=name`,
      ...[UNKNOWN_PARAMETER, ...usualParameters(t)].map((parameter) => `${ONE}&${parameter}`),
    ].map((query) => [`GET ${query}`, query, {}] as const),
    ...(await takenPaths(t)).map((to) => [`GET ${pathEnd(to)}${ONE}`, ONE, { to }] as const),
  ];
  for (const [what, query, options] of ways) {
    const read = await t.read(query, "no field but the name", { ...options, what });
    noOther(read, "no-other", ["name"]);
    const isCompressed = COMPRESSED.some(([how]) => what.endsWith(how));
    const garbled = `the answer 200 to ${what} is no JSON object`;
    if (isCompressed && read.seen.status === 200)
      read.must("object", read.seen.object !== undefined, garbled);
    // A page for people is no representation of the customer.
    const { status, object } = read.seen;
    const found = `the answer to ${what} holds the email, which was not requested`;
    if (SHOWN.includes(status))
      read.should("no-other-value", object !== undefined || !holds(read.seen, fields.email), found);
  }
}

/** Which fields the limited caller may read is open, but it is never shown one that it did not name. */
async function selectsForLimited(t: Attempt): Promise<void> {
  if (t.kit.profile.limited === undefined) return;
  const shown: Field[] = [];
  for (const field of FIELDS) {
    const read = await readBy(t, "limited", `?fields=${field}`, `no field but ${field}`);
    noOther(read, "no-other-limited", [field]);
    if (read.seen.status === 200) shown.push(field);
  }
  const two = shown.slice(0, 2);
  if (two.length < 2) return;
  const both = await readBy(t, "limited", `?fields=${two.join(",")}`, `no field but ${two.join(" and ")}`);
  noOther(both, "no-other-limited", two);
}

/** It may be read from the event of its create. */
async function selectsBeforeAnyUpdate(t: Attempt): Promise<void> {
  const to = await t.neverUpdated();
  if (to === undefined) return;
  const what = `GET ${ONE} of a customer that was never updated`;
  noOther(await t.read(ONE, "no field but the name", { to, what }), "no-other", ["name"]);
}

/** The object that a write has loaded may answer the next read, whatever that asks for. */
async function selectsAfterWrites(t: Attempt): Promise<void> {
  if (t.kit.options.mode === "read-only") return;
  for (const method of await t.updates()) {
    const { tag } = await t.state(t.kit.main, "read before");
    const via = t.kit.wire.connect();
    const write = await t.sendWrite(method, t.kit.main, { ifMatch: tag, via });
    const what = `GET ${ONE} right after a ${method} on the same connection`;
    if (accepted(write.status))
      noOther(await t.read(ONE, "no field but the name", { via, what }), "no-other-after-write", ["name"]);
    via.close();
  }
}

async function caselessForLimited(t: Attempt): Promise<void> {
  if (t.kit.profile.limited === undefined) return;
  for (const field of FIELDS) {
    const inLowerCase = `?fields=${field}`;
    const control = await t.get(t.kit.main, {
      query: inLowerCase,
      caller: "limited",
      purpose: "control request",
    });
    if (control.status !== 200) continue;
    const read = await readBy(t, "limited", `?fields=${field.toUpperCase()}`, `200, as to ${inLowerCase}`);
    read.control({ differs: `the name is in lower case: ${inLowerCase}`, seen: control });
    read.mustAnswer("limited-status", 200);
  }
}

export const selectedFields: readonly Rule[] = [
  rule("FLD-01", "Each registry name selects exactly its field", {
    spec: ["2.2 names", "4.1 fields", "4.1 rule 1", "1.4"],
    reading:
      "For the limited caller too, and in whatever way the read is asked: another media type, coding or version of HTTP, the whole URL, a condition, another parameter beside it, the address spelled otherwise, right after a write. Such a read may be refused, but 200 shows no other field. An answer that is no JSON and holds other values is a warning.",
    hurts: less,
    async check(t) {
      for (const field of FIELDS) await selects(t, `?fields=${field}`, [field]);
      await selectsInOtherWays(t);
      await selectsForLimited(t);
      await selectsBeforeAnyUpdate(t);
      await selectsAfterWrites(t);
    },
  }),
  rule("FLD-02", "A combination selects exactly its fields", {
    spec: ["4.1 rule 1", "4.1 rule 4"],
    reading: "In whatever order they are named. Fewer than the maximum of 8.1.",
    hurts: less,
    async check(t) {
      const short = t.leavesOut("two of three combinations");
      const combinations = COMBINATIONS.filter((_, index) => !short || index % 3 === 1);
      const most = await fieldsAtMost(t);
      for (const fields of combinations.filter(({ length }) => length <= most))
        await selects(t, `?fields=${fields.join(",")}`, fields);
      // A comma may travel percent-encoded (RFC 3986 2.1).
      for (const comma of ["%2C", "%2c"]) await selects(t, `?fields=id${comma}email`, ["id", "email"]);
      if (most < FIELDS.length) t.note = `; at most ${most} fields a request are taken here, as 8.1 allows`;
    },
  }),
  rule("FLD-05", "Registry names are matched without regard to case", {
    spec: ["2.2 case"],
    reading: "Also for the limited caller, where it reads the field by its name in lower case.",
    hurts: "Clients on another naming style are refused.",
    async check(t) {
      await knownFieldsWork(t);
      for (const names of ["NAME", "Email", "iD", "ID", "EMAIL", "sTaTuS", "NAME,eMail"]) {
        await selects(t, `?fields=${names}`, names.toLowerCase().split(",") as Field[]);
      }
      await caselessForLimited(t);
    },
  }),
  rule("FLD-09", "A field that was not requested is absent, never null", {
    spec: ["4.1 rule 2"],
    reading: "For the limited caller too.",
    hurts: "A client that merges the answer wipes fields that it never asked for.",
    async check(t) {
      const theirs = t.kit.profile.limited === undefined ? [] : (["name", "id"] as const);
      for (const [fields, caller] of [
        ...([["name"], ["id"], ["status"], ["id", "status"], ["name", "email"]] as const).map(
          (fields) => [fields, "main"] as const,
        ),
        ...theirs.map((field) => [[field], "limited"] as const),
      ]) {
        const query = `?fields=${fields.join(",")}`;
        const what = `GET ${query}${caller === "main" ? "" : " by the limited caller"}`;
        const read = await t.read(query, "members that were not requested are absent", { caller, what });
        const { status, object } = read.seen;
        if (status !== 200 || object === undefined) continue;
        const nulls = Object.entries(object).filter(
          ([name, value]) => value === null && !isOneOf(name, fields),
        );
        const found = `${what}: ${nulls.map(([name]) => name).join(", ")} came as null`;
        read.must("absent", nulls.length === 0, found);
      }
      t.mustHaveLooked("no projected read was answered 200", "FLD-01");
    },
  }),
  rule("FLD-11", "Without fields the same default set is applied each time", {
    spec: ["4.1 rule 3"],
    reading: "Which fields it holds is open. Repeated reads by one caller show the same members.",
    hurts: "Clients cannot rely on any field.",
    async check(t) {
      const members = ({ seen }: Answered) =>
        Object.keys(seen.object ?? {})
          .sort()
          .join(", ");
      const first = await t.read("", "some fields");
      if (first.seen.status !== 200 || first.seen.object === undefined)
        throw new CouldNotRun("a read without fields shows no object", ["ETG-01"]);
      const found = "a read without fields shows an empty object, no field at all";
      first.must("not-empty", members(first) !== "", found);
      for (let count = 0; count < 3; count += 1) {
        const read = await t.read("", `the members ${members(first)}`);
        const found = `one read without fields shows ${members(first)}, another ${members(read)}`;
        read.must("same", members(read) === members(first), found);
      }
    },
  }),
  rule("FLD-13", "Repeated names, repeated parameters and an empty list are handled", {
    spec: ["4.1 rule 1", "4.1 rule 9", "7 rule 7"],
    reading:
      "Their status is open. A 200 has exactly the fields that are named; where they stand in two parameters, it may have fewer. A 5xx is a warning.",
    hurts: "A slip of a client makes the service fail or widens what it shows.",
    async check(t) {
      for (const [query, fields] of [
        ["?fields=name,name", ["name"]],
        ["?fields=name,NAME,id", ["name", "id"]],
        ["?fields=name,,id", ["name", "id"]],
        ["?fields=name,", ["name"]],
        ["?fields=,name", ["name"]],
        ["?fields=%20name%20,%20id", ["name", "id"]],
      ] as const) {
        const read = await t.read(query, `200 with ${fields.join(" and ")}, or a 4xx`);
        nothingBeyond(read, `GET ${query}`, fields);
        if (read.seen.status !== 200) continue;
        // What a plain list lacks as well is the matter of FLD-01 and FLD-02.
        const ordinary = await t.get(t.kit.main, {
          query: `?fields=${fields.join(",")}`,
          purpose: "control request: each name once",
        });
        const missing = fields.filter(
          (field) => memberOf(ordinary, field) !== undefined && memberOf(read.seen, field) === undefined,
        );
        const found = `GET ${query} was answered 200, and ${missing.join(" and ")} did not come`;
        read.must("complete", missing.length === 0, found);
      }
      const twice = "?fields=id&fields=name";
      const read = await t.read(twice, "200 with no member beyond those named, or a 4xx");
      nothingBeyond(read, `GET ${twice}`, ["id", "name"]);
      for (const query of ["?fields=", "?fields=,", "?fields=%20"]) {
        const read = await t.read(query, "open, but no 5xx");
        read.should("no-5xx", read.seen.status < 500, `GET ${query} was answered ${read.seen.status}`);
      }
    },
  }),
  rule("FLD-14", "A very long field list is handled", {
    spec: ["8.1", "4.1 rule 9"],
    reading:
      "A maximum exists, its value is open: a thousand names are collapsed or refused by 4xx. A 5xx is a warning.",
    hurts: "One request ties up the service.",
    needs: ["hostile"],
    async check(t) {
      for (const [names, count] of [
        [["name"], 1000],
        [["id", "name"], 400],
      ] as const) {
        const query = `?fields=${Array.from({ length: count }, (_, index) => names[index % names.length]).join(",")}`;
        const what = `GET with ${count} names in fields`;
        nothingBeyond(
          await t.read(query, "200 with those fields, or a 4xx", { what, body: false }),
          what,
          names,
        );
      }
    },
  }),
];

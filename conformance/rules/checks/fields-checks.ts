import type { Seen } from "../../http/wire.ts";
import type { Attempt } from "../../probe/attempt.ts";
import type { Check } from "../../probe/check.ts";
import { ask, isOneOf } from "../../probe/field-query.ts";
import { holds } from "../../probe/holds.ts";
import { CouldNotRun } from "../../probe/outcome-signal.ts";
import { accepted } from "../../probe/trial.ts";
import { plain, registryFields } from "../../target/names.ts";
import { FIELDS, type Field } from "../../target/profile-file.ts";
import type { fld as rules } from "../fields.ts";
import { fldBodies } from "./fld-bodies.ts";
import { fldLists, unknownIsRefused } from "./fld-lists.ts";

/** Every set of two fields or more, in orders of all kinds. */
export const COMBINATIONS: readonly (readonly Field[])[] = [
  ["id", "name"],
  ["name", "email"],
  ["email", "status"],
  ["status", "id"],
  ["name", "status"],
  ["id", "email"],
  ["id", "name", "email"],
  ["status", "email", "name"],
  ["name", "status", "id"],
  ["email", "id", "status"],
  ["id", "name", "email", "status"],
  ["status", "name", "id", "email"],
];
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Looks at an answer that should hold exactly these fields. A null in place of an absent member is FLD-09's. */
async function selects(t: Attempt, query: string, fields: readonly Field[], remark = ""): Promise<void> {
  const seen = await ask(t, query, `200 with exactly ${fields.join(", ")}`);
  if (!t.check("status", seen.status === 200, `GET ${query} was answered ${seen.status}${remark}`)) return;
  const members = Object.entries(seen.object ?? {});
  const names = members
    .filter(([name, value]) => value !== null || isOneOf(name, fields))
    .map(([name]) => plain(name));
  const missing = fields.filter((field) => !names.includes(field));
  const extra = names.filter((name) => !fields.includes(name as Field));
  t.check(
    "complete",
    missing.length === 0,
    seen.object === undefined
      ? `GET ${query}: the body is no JSON object`
      : `GET ${query}: ${missing.join(", ")} did not come; other than asked for, it shows ${names.join(", ") || "nothing"}`,
  );
  t.check("no-other", extra.length === 0, `GET ${query}: ${extra.join(", ")} came as well, not requested`);
}

/**
 * The maximum number of fields of a request exists, and its value is open (8.1): the size from which on every
 * selection is refused by a 4xx, while one name alone is answered 200.
 */
async function fieldsAtMost(t: Attempt): Promise<number> {
  await knownFieldsWork(t);
  for (let size = FIELDS.length; size > 2; size -= 1) {
    for (const fields of COMBINATIONS.filter(({ length }) => length === size)) {
      const { status } = await t.get(t.kit.main, {
        query: `?fields=${fields.join(",")}`,
        purpose: "find the maximum of fields",
      });
      if (status < 400 || status > 499) return size;
    }
  }
  // A list of one is none: pairs must be taken.
  return 2;
}

/** Each name must be unknown. The twin: a known name is answered 200. */
async function unknown(t: Attempt, names: readonly string[]): Promise<void> {
  await knownFieldsWork(t);
  for (const name of names) {
    // A firewall before the service may take these for an attack.
    const stoppable = /[;'"|$*\0<{]/.test(name);
    for (const query of [
      `?fields=${encodeURIComponent(name)}`,
      `?fields=name,${encodeURIComponent(name)}`,
      `?fields=${encodeURIComponent(name)},id`,
    ]) {
      const seen = await ask(t, query, "400");
      t.check(
        "status",
        seen.status === 400 || (seen.status === 403 && stoppable),
        `GET ${query} was answered ${seen.status}, not 400`,
      );
    }
  }
}

async function knownFieldsWork(t: Attempt): Promise<Seen> {
  const twin = await t.get(t.kit.main, { query: "?fields=name", purpose: "twin" });
  if (twin.status !== 200)
    throw new CouldNotRun(
      `GET ?fields=name was answered ${twin.status}, so a refusal would prove nothing; see FLD-01`,
    );
  return twin;
}

export const fld = {
  "FLD-01": async (t) => {
    for (const field of FIELDS) await selects(t, `?fields=${field}`, [field]);
  },
  "FLD-02": async (t) => {
    const combinations = t.quick ? COMBINATIONS.filter((_, index) => index % 3 === 1) : COMBINATIONS;
    const most = await fieldsAtMost(t);
    for (const fields of combinations.filter(({ length }) => length <= most))
      await selects(t, `?fields=${fields.join(",")}`, fields);
    // A comma may travel percent-encoded (RFC 3986 2.1).
    await selects(t, "?fields=id%2Cemail", ["id", "email"]);
    if (most < FIELDS.length) t.note = `; at most ${most} fields a request are taken here, as 8.1 allows`;
  },
  "FLD-03": async (t) => {
    await unknown(t, ["kitunknown", "phone"]);
    await unknownIsRefused(t);
  },
  "FLD-04": async (t) => {
    const full = await t.state(t.kit.main, "read the values");
    for (const query of ["?fields=kitunknown", "?fields=email,kitunknown", "?fields=kitunknown,name"]) {
      const seen = await ask(t, query, "400, and no value of the customer");
      if (seen.status === 200) continue;
      const come = (["name", "email"] as const).filter((field) => holds(seen, full.fields[field]));
      t.check(
        "no-values",
        come.length === 0,
        `the answer ${seen.status} to GET ${query} holds the ${come.join(" and ")}`,
      );
    }
    if (t.assertions.size === 0) throw new CouldNotRun("unknown fields are answered 200; see FLD-03");
  },
  "FLD-05": async (t) => {
    await knownFieldsWork(t);
    for (const [query, fields] of [
      ["?fields=NAME", ["name"]],
      ["?fields=Email", ["email"]],
      ["?fields=iD", ["id"]],
      ["?fields=ID", ["id"]],
      // In a Turkish locale the small letter of I is no i.
      ["?fields=ID", ["id"]],
      ["?fields=EMAIL", ["email"]],
      ["?fields=sTaTuS", ["status"]],
      ["?fields=NAME,eMail", ["name", "email"]],
    ] as const)
      await selects(t, query, fields, ": names are matched without regard to case");
  },
  "FLD-06": (t) => unknown(t, ["createdAt", "createdat", "CreatedAt", "created_at"]),
  "FLD-07": (t) => unknown(t, ["rowVersion", "rowversion", "RowVersion", "row_version", "etag", "version"]),
  "FLD-08": async (t) => {
    await unknown(t, [
      "nam",
      "names",
      "name.first",
      "customer.name",
      "*",
      "__proto__",
      "constructor",
      "toString",
      "1",
      "name;email",
      "name|email",
      "$name",
      "id'--",
      "na_me",
      "_id",
      "-name",
      "+name",
      "name-",
      '"name"',
      "'name'",
      "[name]",
      "na me",
      "na\0me",
      "na\u00a0me",
      "na\u200bme",
      "n\u00e3me",
    ]);
    // Unicode folds some letters onto others, and many a mapping to capitals too: no more than a warning.
    for (const name of ["\u0131d", "\u017ftatus", "\uff4eame"]) {
      const query = `?fields=${encodeURIComponent(name)}`;
      const seen = await ask(t, query, "400");
      t.check(
        "folded",
        !accepted(seen.status),
        `GET ${query} was answered ${seen.status}, not 400`,
        "SHOULD",
      );
    }
  },
  "FLD-09": async (t) => {
    for (const fields of [["name"], ["id"], ["id", "status"], ["name", "email"]] as const) {
      const query = `?fields=${fields.join(",")}`;
      const seen = await ask(t, query, "members that were not requested are absent");
      if (seen.status !== 200 || seen.object === undefined) continue;
      const nulls = Object.entries(seen.object).filter(
        ([name, value]) => value === null && !isOneOf(name, fields),
      );
      t.check(
        "absent",
        nulls.length === 0,
        `GET ${query}: ${nulls.map(([name]) => name).join(", ")} came as null`,
      );
    }
    if (t.assertions.size === 0) throw new CouldNotRun("no projected read was answered 200; see FLD-01");
  },
  "FLD-10": async (t) => {
    // A value written just now: a projection from an old copy shows.
    const full =
      t.kit.options.mode === "read-only" ? await t.state(t.kit.main) : await t.twin("PUT", t.kit.main);
    for (const query of [
      "?fields=id",
      "?fields=name",
      "?fields=email",
      "?fields=name,email",
      "?fields=id,name,email,status",
    ]) {
      const seen = await ask(t, query, "the values of the full read");
      if (seen.status !== 200) continue;
      const shown = registryFields(seen.object ?? {}, t.kit.deployment.names);
      for (const field of ["id", "name", "email"] as const) {
        if (!query.includes(field) || shown[field] === undefined || full.fields[field] === undefined)
          continue;
        t.check(
          "value",
          Bun.deepEquals(shown[field], full.fields[field]),
          `GET ${query} shows another value of ${field}, ${JSON.stringify(shown[field])}, than the full read, ${JSON.stringify(full.fields[field])}`,
        );
      }
    }
    if (t.assertions.size === 0) throw new CouldNotRun("no projected read showed its field; see FLD-01");
  },
  "FLD-11": async (t) => {
    const first = await t.get(t.kit.main, { purpose: "read without fields" });
    if (first.status !== 200 || first.object === undefined)
      throw new CouldNotRun("a read without fields shows no object; see ETG-01");
    const members = (seen: Seen) =>
      Object.keys(seen.object ?? {})
        .sort()
        .join(", ");
    t.check(
      "not-empty",
      members(first) !== "",
      "a read without fields shows an empty object, no field at all",
    );
    for (let read = 0; read < 3; read += 1) {
      const seen = await ask(t, "", `the members ${members(first)}`);
      t.check(
        "same",
        members(seen) === members(first),
        `one read without fields shows ${members(first)}, another ${members(seen)}`,
      );
    }
  },
  "FLD-12": async (t) => {
    for (const query of ["", "?fields=id,name,email,status"]) {
      const seen = await ask(t, query, "Id a UUID and the one asked for; Name and Email strings");
      if (seen.status !== 200 || seen.object === undefined) continue;
      const shown = registryFields(seen.object, t.kit.deployment.names);
      for (const field of ["name", "email"] as const) {
        if (field in shown)
          t.check(
            `${field}-string`,
            typeof shown[field] === "string",
            `${field} is ${JSON.stringify(shown[field])}, no string`,
          );
      }
      // An enumeration may travel by name or by number, and may have no value yet: 2.1 shows neither type nor values.
      if ("status" in shown)
        t.check(
          "status-scalar",
          shown.status === null || ["string", "number"].includes(typeof shown.status),
          `status is ${JSON.stringify(shown.status)}, no value of an enumeration`,
        );
      if (!("id" in shown)) continue;
      t.check(
        "id-uuid",
        typeof shown.id === "string" && UUID.test(shown.id),
        `id is ${JSON.stringify(shown.id)}, no UUID string`,
      );
      t.check(
        "id-own",
        String(shown.id).toLowerCase() === t.kit.main.id.toLowerCase(),
        `id is ${JSON.stringify(shown.id)} at the path of ${t.kit.main.id}`,
      );
    }
    if (t.assertions.size === 0)
      throw new CouldNotRun("no read showed a registry field; see ETG-01 and FLD-01");
  },
  ...fldLists,
  ...fldBodies,
} satisfies Record<(typeof rules)[number]["id"], Check>;

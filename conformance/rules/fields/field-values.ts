/** FLD: the values of the fields that a read shows, and their types. */

import { OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { type Answered, getOf } from "../../probe/answered.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { WRITABLE } from "../../probe/snapshot.ts";
import { bareGuid } from "../../target/names.ts";
import { FIELDS, type Field } from "../../target/profile-file.ts";
import { COMBINATIONS } from "../../target/projections.ts";

export const fieldValues: readonly Rule[] = [
  rule("FLD-10", "A projection shows the values of the full read", {
    spec: ["1.4", "4.1 200"],
    reading:
      "Selected members carry the current values, each under its own name; the status is the same in every projection, and in the default set where it is there.",
    hurts: "Clients show old or swapped data.",
    async check(t) {
      // A value written just now: a projection from an old copy shows.
      const full = t.kit.options.mode === "read-only" ? await t.state(t.kit.main) : await t.control("PUT");
      const shownBy = async (query: string, purpose: string) =>
        t.fieldsOf(await t.get(t.kit.main, { query, purpose }));
      const as = (value: unknown) => JSON.stringify(value);
      const statusAsAlone = async (
        read: Answered,
        query: string,
        before: Partial<Record<Field, unknown>>,
      ) => {
        const shown = t.fieldsOf(read.seen);
        if (before.status === undefined || shown.status === undefined) return;
        // A job of the deployment may change it between two reads.
        const same =
          Bun.deepEquals(shown.status, before.status) ||
          Bun.deepEquals(shown.status, (await shownBy("?fields=status", "the status after")).status);
        const found = `${getOf(query)} shows the status ${as(shown.status)}, GET ?fields=status ${as(before.status)}`;
        read.must("status-value", same, found, OTHERS_MAY_CAUSE);
      };
      for (const fields of [...FIELDS.map((field) => [field]), ...COMBINATIONS]) {
        const query = `?fields=${fields.join(",")}`;
        const before = fields.includes("status") ? await shownBy("?fields=status", "the status before") : {};
        const read = await t.read(query, "the values of the full read");
        if (read.seen.status !== 200) continue;
        const shown = t.fieldsOf(read.seen);
        for (const field of ["id", "name", "email"] as const) {
          if (!fields.includes(field) || shown[field] === undefined || full.fields[field] === undefined)
            continue;
          const found = `${getOf(query)} shows another value of ${field}, ${as(shown[field])}, than the full read, ${as(full.fields[field])}`;
          read.must("value", Bun.deepEquals(shown[field], full.fields[field]), found, OTHERS_MAY_CAUSE);
        }
        await statusAsAlone(read, query, before);
      }
      t.mustHaveLooked("no projected read showed its field", "FLD-01");
      // Another piece of code may put the default set together.
      const before = await shownBy("?fields=status", "the status before");
      await statusAsAlone(await t.read("", "the status of a projection"), "", before);
    },
  }),
  rule("FLD-12", "Members have the types of the table", {
    spec: ["2.1 Id", "2.1 Name", "2.1 Email", "2.1 Status"],
    reading:
      "Id is a UUID string in any of its textual forms, and the one in the path; Name and Email are strings. The JSON type of Status is open: a string, a number or null.",
    hurts: "Typed clients fail to read the answer.",
    async check(t) {
      for (const query of ["", "?fields=id,name,email,status"]) {
        const read = await t.read(query, "Id a UUID and the one asked for; Name and Email strings");
        if (read.seen.status !== 200 || read.seen.object === undefined) continue;
        const shown = t.fieldsOf(read.seen);
        const is = (field: Field) => `${field} is ${JSON.stringify(shown[field])}`;
        for (const field of WRITABLE)
          if (field in shown)
            read.must(`${field}-string`, typeof shown[field] === "string", `${is(field)}, no string`);
        if ("status" in shown) {
          const scalar = shown.status === null || ["string", "number"].includes(typeof shown.status);
          read.must("status-scalar", scalar, `${is("status")}, no value of an enumeration`);
        }
        if (!("id" in shown)) continue;
        const uuid = typeof shown.id === "string" && /^[0-9a-f]{32}$/.test(bareGuid(shown.id));
        read.must("id-uuid", uuid, `${is("id")}, no UUID string`);
        const found = `${is("id")} at the path of ${t.kit.main.id}`;
        read.must("id-own", bareGuid(shown.id) === bareGuid(t.kit.main.id), found);
      }
      t.mustHaveLooked("no read showed a registry field", "ETG-01", "FLD-01");
    },
  }),
];

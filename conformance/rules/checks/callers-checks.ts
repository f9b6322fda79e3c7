/** Field-level authorization; the rules on tenants stand in aut-tenants.ts. */

import type { Seen } from "../../http/wire.ts";
import type { Attempt } from "../../probe/attempt.ts";
import type { Check } from "../../probe/check.ts";
import { excerpt, note } from "../../probe/evidence.ts";
import { holds } from "../../probe/holds.ts";
import { otherPaths, pathEnd, shownPath } from "../../probe/other-paths.ts";
import { CouldNotRun } from "../../probe/outcome-signal.ts";
import { accepted } from "../../probe/trial.ts";
import type { Customer } from "../../run/ground.ts";
import { plain } from "../../target/names.ts";
import { FIELDS, type Field } from "../../target/profile-file.ts";
import type { aut as rules } from "../callers.ts";
import { autTenants } from "./aut-tenants.ts";

/** The field that the limited caller may not read: told by the profile, else the first that it is refused. */
async function deniedField(t: Attempt): Promise<Field> {
  const told = t.kit.profile.limited?.denied;
  if (told !== undefined) return told;
  for (const field of ["email", "name", "status", "id"] as const) {
    const seen = await t.get(t.kit.main, {
      query: `?fields=${field}`,
      caller: "limited",
      purpose: "find the forbidden field",
    });
    if (seen.status >= 400 && seen.status < 500) return field;
  }
  throw new CouldNotRun(
    "the limited caller is refused no field; name the forbidden one with --limited-denied",
  );
}

/** The forbidden field and its value as the main caller reads it. The twin: the main caller is answered. */
async function forbidden(t: Attempt): Promise<{ field: Field; value: unknown; others: Field[] }> {
  const field = await deniedField(t);
  const twin = await t.get(t.kit.main, { query: `?fields=${field}`, purpose: "twin: the main caller" });
  const value = Object.entries(twin.object ?? {}).find(([name]) => plain(name) === field)?.[1];
  if (twin.status !== 200 || value === undefined)
    throw new CouldNotRun(`the main caller reads no ${field} itself (${twin.status}); see FLD-01`);
  return { field, value, others: FIELDS.filter((other) => other !== field) };
}

async function asLimited(
  t: Attempt,
  query: string,
  allowed: string,
  customer: Customer = t.kit.main,
): Promise<Seen> {
  const path = shownPath(t, customer);
  const evidence = t.probe(`GET ${path}${query} by the limited caller`, allowed);
  const seen = await t.get(customer, { query, caller: "limited", purpose: "probe" });
  note(evidence, seen, { came: excerpt(seen) });
  if (seen.status === 401) throw new CouldNotRun("the limited caller's credentials are refused with 401");
  return seen;
}

/**
 * Whether the answer gives the value away. The id stands in the path anyway and a status is a word like any other,
 * so those two count as members of a body alone.
 */
function revealed(seen: Seen, field: Field, value: unknown): boolean {
  if (field === "id" || field === "status")
    return (
      accepted(seen.status) &&
      Object.entries(seen.object ?? {}).some(([name, shown]) => plain(name) === field && shown === value)
    );
  return holds(seen, value);
}

/** Names under which other APIs, frameworks and query parsers know a selection of fields. */
const PARAMETERS = [
  "fields[]",
  "fields%5B%5D",
  "fields[0]",
  "Fields",
  "%66ields",
  "field",
  "_fields",
  "$fields",
  "select",
  "$select",
  "include",
  "expand",
  "$expand",
  "projection",
  "attributes",
  "props",
  "columns",
  "view",
];

/** Letters that a case folding, or a mapping to capitals, takes for others. */
const folded = (name: string) => name.replaceAll("i", "\u0131").replaceAll("s", "\u017f");

const refusedBy4xx = (seen: Seen) => seen.status >= 400 && seen.status < 500;

export const aut = {
  "AUT-01": async (t) => {
    const { field } = await forbidden(t);
    const seen = await asLimited(t, `?fields=${field}`, "some 4xx");
    t.check(
      "refused",
      refusedBy4xx(seen),
      `the limited caller asked for ${field} and was answered ${seen.status}, not by a 4xx`,
    );
  },
  "AUT-02": async (t) => {
    const { field, value } = await forbidden(t);
    const seen = await asLimited(t, `?fields=${field}`, "the value does not come");
    t.check(
      "no-value",
      !revealed(seen, field, value),
      `the answer ${seen.status} holds the forbidden ${field}`,
    );
  },
  "AUT-03": async (t) => {
    const { field, value, others } = await forbidden(t);
    for (const query of [`?fields=${others[0]},${field}`, `?fields=${field},${others.join(",")}`]) {
      const seen = await asLimited(t, query, "some 4xx");
      t.check(
        "refused",
        refusedBy4xx(seen),
        `the limited caller asked ${query} and was answered ${seen.status}, not by a 4xx`,
      );
      t.check(
        "no-value",
        !revealed(seen, field, value),
        `the answer ${seen.status} to ${query} holds the forbidden ${field}`,
      );
    }
  },
  "AUT-04": async (t) => {
    const { field, value, others } = await forbidden(t);
    const [ok = "id"] = others;
    const first =
      encodeURIComponent(field.charAt(0)) === field.charAt(0)
        ? `%${field.charCodeAt(0).toString(16)}${field.slice(1)}`
        : field;
    const queries = [
      `?fields=${field.toUpperCase()}`,
      `?fields=${field.charAt(0).toUpperCase()}${field.slice(1)}`,
      `?fields=${field},${field}`,
      `?fields=${ok}&fields=${field}`,
      `?fields=${field}&fields=${ok}`,
      `?fields=%20${field}%20`,
      `?fields=${ok},%20${field}`,
      `?fields=${first}`,
      `?FIELDS=${field}`,
      `?fields=${ok},,${field}`,
      `?fields=${ok}%2C${field}`,
      "?fields=*",
      "?fields=",
      ...PARAMETERS.flatMap((name) => [
        `?${name}=${field}`,
        ...(t.quick ? [] : [`?fields=${ok}&${name}=${field}`]),
      ]),
      ...[
        folded(field),
        `${ok};${field}`,
        `${ok}|${field}`,
        `${ok} ${field}`,
        `["${field}"]`,
        `${field}\0`,
      ].map((names) => `?fields=${encodeURIComponent(names)}`),
    ];
    for (const query of queries) {
      const seen = await asLimited(t, query, "the value does not come");
      t.check(
        "no-value",
        !revealed(seen, field, value),
        `the answer ${seen.status} to ${query} holds the forbidden ${field}`,
      );
    }
    for (const customer of otherPaths(t.kit.main, t.quick)) {
      for (const query of [`?fields=${field}`, ""]) {
        const seen = await asLimited(t, query, "the value does not come", customer);
        t.check(
          "no-value",
          !revealed(seen, field, value),
          `the answer ${seen.status} to ${pathEnd(customer)}${query} holds the forbidden ${field}`,
        );
      }
    }
  },
  "AUT-05": async (t) => {
    const { field, value } = await forbidden(t);
    // Twice: the second answer may come from a cache that the main caller's read has filled.
    for (const time of ["first", "second"]) {
      const seen = await asLimited(t, "", `no ${field}`);
      const member = Object.entries(seen.object ?? {}).find(([name]) => plain(name) === field);
      t.check(
        "no-value",
        !revealed(seen, field, value),
        `the ${time} read without fields by the limited caller holds the forbidden ${field}`,
      );
      t.check(
        "no-member",
        member === undefined,
        `the ${time} read without fields by the limited caller has the member ${member?.[0]}: ${JSON.stringify(member?.[1])}`,
      );
      await t.get(t.kit.main, { purpose: "the main caller reads in between" });
    }
  },
  "AUT-06": async (t) => {
    t.needsStableTag();
    const { others } = await forbidden(t);
    const main = await t.get(t.kit.main, { purpose: "the main caller's tag" });
    const query = `?fields=${others.join(",")}`;
    const seen = await asLimited(t, query, `200 with ${others.join(", ")}, ETag ${main.tag}`);
    const readable = seen.status === 200 ? seen : await oneByOne(t, others);
    if (readable === undefined && (await asLimited(t, "", "200, if anything may be read")).status !== 200)
      throw new CouldNotRun("the limited caller may read no field at all, which a policy may say");
    if (
      !t.check(
        "readable",
        readable !== undefined,
        `the limited caller reads none of ${others.join(", ")}: ${query} was answered ${seen.status}`,
      ) ||
      readable === undefined
    )
      return;
    t.check(
      "same-tag",
      readable.tag === main.tag,
      `the limited caller is shown the tag ${readable.tag}, the main caller ${main.tag}`,
    );
  },
  "AUT-07": async (t) => {
    const { field } = await forbidden(t);
    const { former, tag } = await t.twin("PUT", t.kit.main);
    const patch = (await t.kit.deployment.patchOffer(t.kit.main, async () => tag)).kind === "offered";
    const probes: readonly (readonly [string, "PUT" | "PATCH", "stale" | "none" | "current"])[] = [
      ["PUT with a stale tag", "PUT", "stale"],
      ["PUT without If-Match", "PUT", "none"],
      ["PUT with the current tag", "PUT", "current"],
      // A PATCH of the forbidden field itself would be an answer to what the caller said.
      ...(patch && field !== "name"
        ? ([
            ["PATCH with a stale tag", "PATCH", "stale"],
            ["PATCH of the name with the current tag", "PATCH", "current"],
          ] as const)
        : []),
    ];
    for (const [what, method, kind] of probes) {
      const now = await t.state(t.kit.main, "read the value");
      const evidence = t.probe(`${what} by the limited caller`, `no ${field} in the answer`);
      const fresh = t.kit.values.next();
      const seen = await t.rawWrite(method, t.kit.main, {
        ifMatch: kind === "stale" ? former : kind === "current" ? now.tag : undefined,
        values: method === "PUT" ? fresh : { name: fresh.name },
        caller: "limited",
        purpose: "probe",
      });
      note(evidence, seen, { came: excerpt(seen) });
      if (seen.status === 401) throw new CouldNotRun("the limited caller's credentials are refused with 401");
      const stored = now.fields[field] ?? (await readAsMain(t, field));
      t.check(
        "no-value",
        !revealed(seen, field, stored),
        `the answer ${seen.status} to ${what} holds the forbidden ${field}`,
      );
      const member = Object.keys(seen.object ?? {}).find((name) => plain(name) === field);
      t.check(
        "no-member",
        !accepted(seen.status) || member === undefined,
        `the answer ${seen.status} to ${what} has the forbidden member ${member}`,
        // What the caller has just written itself tells it nothing.
        method === "PUT" && field !== "status" ? "SHOULD" : "MUST",
      );
    }
  },
  ...autTenants,
} satisfies Record<(typeof rules)[number]["id"], Check>;

async function readAsMain(t: Attempt, field: Field): Promise<unknown> {
  const seen = await t.get(t.kit.main, { query: `?fields=${field}`, purpose: "the main caller reads it" });
  return Object.entries(seen.object ?? {}).find(([name]) => plain(name) === field)?.[1];
}

/** More than one field may be forbidden: the first that the limited caller does read. */
async function oneByOne(t: Attempt, fields: readonly Field[]): Promise<Seen | undefined> {
  for (const field of fields) {
    const seen = await asLimited(t, `?fields=${field}`, "200");
    if (seen.status === 200) return seen;
  }
  return undefined;
}

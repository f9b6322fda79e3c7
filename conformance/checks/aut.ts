import type { Customer } from "../ground.ts";
import { plain } from "../names.ts";
import { CouldNotRun } from "../outcome-signal.ts";
import { FIELDS, type Field } from "../profile-file.ts";
import type { aut as rules } from "../rules/aut.ts";
import { accepted, difference, type Method, type Snapshot, same, stateOf, type Trial } from "../trial.ts";
import type { Seen } from "../wire.ts";
import type { Check } from "./check.ts";
import { holds } from "./fld.ts";
import { describe } from "./refusal.ts";

/** The field that the limited caller may not read: told by the profile, else the first that it is refused. */
async function deniedField(t: Trial): Promise<Field> {
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
async function forbidden(t: Trial): Promise<{ field: Field; value: unknown; others: Field[] }> {
  const field = await deniedField(t);
  const twin = await t.get(t.kit.main, { query: `?fields=${field}`, purpose: "twin: the main caller" });
  const value = Object.entries(twin.object ?? {}).find(([name]) => plain(name) === field)?.[1];
  if (twin.status !== 200 || value === undefined)
    throw new CouldNotRun(`the main caller reads no ${field} itself (${twin.status}); see FLD-01`);
  return { field, value, others: FIELDS.filter((other) => other !== field) };
}

async function asLimited(t: Trial, query: string, allowed: string): Promise<Seen> {
  const evidence = t.probe(`GET ${query} by the limited caller`, allowed);
  const seen = await t.get(t.kit.main, { query, caller: "limited", purpose: "probe" });
  Object.assign(evidence, { came: `${seen.status} ${seen.text.slice(0, 160)}`, sent: seen.exchange.n });
  if (seen.status === 401) throw new CouldNotRun("the limited caller's credentials are refused with 401");
  return seen;
}

async function asOther(t: Trial, query: string, customer: Customer = t.kit.main): Promise<Seen> {
  const evidence = t.probe(`GET ${query} by another tenant`, "no 2xx, and no value of the customer");
  const seen = await t.get(customer, { query, caller: "other-tenant", purpose: "probe" });
  Object.assign(evidence, { came: `${seen.status} ${seen.text.slice(0, 160)}`, sent: seen.exchange.n });
  if (seen.status === 401) throw new CouldNotRun("the other tenant's credentials are refused with 401");
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

/** Whether the answer tells the tag: as its ETag, or in the text where the tag is too long to be there by chance. */
function tellsTag(seen: Seen, tag: string): boolean {
  return seen.tag === tag || (tag.length >= TAG_CHARACTERS_MIN && seen.text.includes(tag.slice(1, -1)));
}

const TAG_CHARACTERS_MIN = 8;

const refusedBy4xx = (seen: Seen) => seen.status >= 400 && seen.status < 500;

function valuesIn(seen: Seen, of: Snapshot): string[] {
  return (["name", "email"] as const).filter((field) => holds(seen, of.fields[field]));
}

/** Writes by the other tenant with every right token; each must be refused and change nothing. */
async function foreignWrites(
  t: Trial,
  look: (seen: Seen, method: Method, before: Snapshot, after: Snapshot) => void,
  tag: (before: Snapshot) => string | undefined,
): Promise<void> {
  const { ground, deployment } = t.kit;
  await t.twin("PUT", t.kit.main);
  const methods: Method[] = ["PUT"];
  if (
    (await deployment.patchOffer(t.kit.main, async () => (await t.state(t.kit.main)).tag)).kind === "offered"
  )
    methods.push("PATCH");
  if (deployment.deleteOffered !== false && ground.cannotMake === undefined) methods.push("DELETE");
  for (const method of methods) {
    const customer = method === "DELETE" ? await ground.make() : t.kit.main;
    const before = await t.state(customer, "read before");
    const evidence = t.probe(`${method} by another tenant`, "refused, nothing changed, no token told");
    const seen = await t.write(method, customer, {
      ifMatch: tag(before),
      caller: "other-tenant",
      purpose: "probe",
    });
    if (seen.status === 401) throw new CouldNotRun("the other tenant's credentials are refused with 401");
    const read = await t.get(customer, { query: deployment.stateQuery, purpose: "read back" });
    const after =
      read.status === 200 && read.tag !== undefined
        ? await t.state(customer)
        : { ...before, tag: "", fields: {} };
    Object.assign(evidence, {
      came: describe(seen),
      sent: seen.exchange.n,
      before: stateOf(before.seen),
      after: stateOf(read),
      unchanged: same(before, after),
    });
    look(seen, method, before, after);
  }
}

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
    ];
    for (const query of queries) {
      const seen = await asLimited(t, query, "the value does not come");
      t.check(
        "no-value",
        !revealed(seen, field, value),
        `the answer ${seen.status} to ${query} holds the forbidden ${field}`,
      );
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
    const { others } = await forbidden(t);
    const main = await t.get(t.kit.main, { purpose: "the main caller's tag" });
    const query = `?fields=${others.join(",")}`;
    const seen = await asLimited(t, query, `200 with ${others.join(", ")}, ETag ${main.tag}`);
    const readable = seen.status === 200 ? seen : await oneByOne(t, others);
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
    const { field, value } = await forbidden(t);
    const { former, tag } = await t.twin("PUT", t.kit.main);
    const now = await t.state(t.kit.main, "read the value");
    const secret = field in now.fields ? now.fields[field] : value;
    const name = { name: t.kit.values.next().name };
    const bodyless = field === "name" ? {} : { values: name };
    const offer = await t.kit.deployment.patchOffer(t.kit.main, async () => tag);
    const probes = [
      ["PUT with a stale tag", "PUT", { ifMatch: former }],
      ["PUT without If-Match", "PUT", {}],
      ...(offer.kind === "offered" && field !== "name"
        ? ([
            ["PATCH with a stale tag", "PATCH", { ifMatch: former, ...bodyless }],
            [
              "PATCH of the name with the current tag",
              "PATCH",
              { ifMatch: (await t.state(t.kit.main)).tag, ...bodyless },
            ],
          ] as const)
        : []),
    ] as const;
    for (const [what, method, options] of probes) {
      const evidence = t.probe(`${what} by the limited caller`, `no ${field} in the answer`);
      const seen = await t.write(method, t.kit.main, { ...options, caller: "limited", purpose: "probe" });
      Object.assign(evidence, { came: `${seen.status} ${seen.text.slice(0, 160)}`, sent: seen.exchange.n });
      const current =
        field === "email" || field === "name" ? (await t.state(t.kit.main)).fields[field] : secret;
      const leaked =
        revealed(seen, field, secret) ||
        (accepted(seen.status) && method === "PATCH" && revealed(seen, field, current));
      t.check("no-value", !leaked, `the answer ${seen.status} to ${what} holds the forbidden ${field}`);
    }
  },
  "AUT-08": async (t) => {
    const main = await t.state(t.kit.main, "twin: the main caller");
    for (const query of ["", "?fields=name", "?fields=id,name,email,status"]) {
      const seen = await asOther(t, query);
      t.check(
        "refused",
        !accepted(seen.status) && seen.status >= 400 && seen.status < 500,
        `another tenant's GET ${query} was answered ${seen.status}`,
      );
      const values = valuesIn(seen, main);
      t.check(
        "no-values",
        values.length === 0,
        `another tenant's GET ${query}, answered ${seen.status}, holds the ${values.join(" and ")}`,
      );
    }
  },
  "AUT-09": (t) =>
    foreignWrites(
      t,
      (seen, method, before, after) => {
        t.check(
          "refused",
          !accepted(seen.status),
          `${method} by another tenant with the current tag was answered ${seen.status}`,
        );
        t.check("unchanged", same(before, after), () =>
          after.tag === "" ? "the customer is gone" : difference(before, after),
        );
      },
      (before) => before.tag,
    ),
  "AUT-10": async (t) => {
    const main = await t.state(t.kit.main, "twin: the main caller");
    const read = await asOther(t, "");
    if (!accepted(read.status))
      t.check(
        "no-tag",
        !tellsTag(read, main.tag),
        `the answer ${read.status} to another tenant's GET carries the tag ${main.tag}`,
      );
    await foreignWrites(
      t,
      (seen, method, before) => {
        if (accepted(seen.status)) return;
        t.check(
          "no-tag",
          !tellsTag(seen, before.tag),
          `the answer ${seen.status} to another tenant's ${method} carries the tag ${before.tag}`,
        );
        const values = valuesIn(seen, before);
        t.check(
          "no-values",
          values.length === 0,
          `the answer ${seen.status} to another tenant's ${method} holds the ${values.join(" and ")}`,
        );
      },
      () => '"kit-never-given"',
    );
  },
  "AUT-11": async (t) => {
    const twin = await t.get(t.kit.main, { query: "?fields=kitunknown", purpose: "twin: the main caller" });
    if (twin.status < 400 || twin.status > 499)
      throw new CouldNotRun(`an unknown field is answered ${twin.status}; see FLD-03`);
    const seen = await asOther(t, "?fields=kitunknown");
    t.check(
      "status",
      seen.status === twin.status,
      `another tenant's GET with an unknown field was answered ${seen.status}, the main caller's ${twin.status}`,
    );
  },
  "AUT-12": async (t) => {
    const main = await t.state(t.kit.main, "twin: the main caller");
    for (const query of ["", "?fields=email"]) {
      const evidence = t.probe(`GET ${query} without credentials`, "no personal data");
      const seen = await t.get(t.kit.main, { query, caller: "anonymous", purpose: "probe" });
      Object.assign(evidence, { came: String(seen.status), sent: seen.exchange.n });
      const values = valuesIn(seen, main);
      t.check(
        "no-values",
        values.length === 0,
        `GET ${query} without credentials, answered ${seen.status}, holds the ${values.join(" and ")}`,
      );
    }
  },
} satisfies Record<(typeof rules)[number]["id"], Check>;

/** More than one field may be forbidden: the first that the limited caller does read. */
async function oneByOne(t: Trial, fields: readonly Field[]): Promise<Seen | undefined> {
  for (const field of fields) {
    const seen = await asLimited(t, `?fields=${field}`, "200");
    if (seen.status === 200) return seen;
  }
  return undefined;
}

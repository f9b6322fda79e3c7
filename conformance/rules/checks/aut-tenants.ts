/** Tenants, and requests without credentials. */

import type { Seen } from "../../http/wire.ts";
import type { Attempt } from "../../probe/attempt.ts";
import type { Check } from "../../probe/check.ts";
import { excerpt, note } from "../../probe/evidence.ts";
import { holds } from "../../probe/holds.ts";
import { otherPaths, pathEnd, shownPath } from "../../probe/other-paths.ts";
import { CouldNotRun } from "../../probe/outcome-signal.ts";
import { accepted, difference, type Method, type Snapshot } from "../../probe/trial.ts";
import type { Customer } from "../../run/ground.ts";

async function asOther(t: Attempt, query: string, customer: Customer = t.kit.main): Promise<Seen> {
  const path = shownPath(t, customer);
  const evidence = t.probe(`GET ${path}${query} by another tenant`, "no 2xx, and no value of the customer");
  const seen = await t.get(customer, { query, caller: "other-tenant", purpose: "probe" });
  note(evidence, seen, { came: excerpt(seen) });
  if (seen.status === 401) throw new CouldNotRun("the other tenant's credentials are refused with 401");
  return seen;
}

function valuesIn(seen: Seen, of: Snapshot): string[] {
  return (["name", "email"] as const).filter((field) => holds(seen, of.fields[field]));
}

/** Whether the answer tells the tag: as its ETag, or in the text where the tag is too long to be there by chance. */
function tellsTag(seen: Seen, tag: string): boolean {
  return seen.tag === tag || (tag.length >= TAG_CHARACTERS_MIN && seen.text.includes(tag.slice(1, -1)));
}

const TAG_CHARACTERS_MIN = 8;

/** Writes by the other tenant with every right token; each must be refused and change nothing. */
async function foreignWrites(
  t: Attempt,
  look: (seen: Seen, method: Method, before: Snapshot, after: Snapshot) => void | Promise<void>,
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
    const seen = await t.rawWrite(method, customer, {
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
    note(evidence, seen, { before: before.seen, after: read, unchanged: t.same(before, after) });
    await look(seen, method, before, after);
  }
}

/**
 * Whether the answer is the one of a customer that nobody has, and so tells nothing and did nothing: a DELETE may be
 * idempotent, since 404 is said of GET and PUT alone (7). PUT and PATCH are not asked: they might create it.
 */
async function nobodysToo(t: Attempt, seen: Seen, method: Method, before: Snapshot): Promise<boolean> {
  if (method !== "DELETE" || seen.tags.length > 0 || valuesIn(seen, before).length > 0) return false;
  const nobodys = await t.rawWrite(method, t.kit.ground.missing(), {
    ifMatch: before.tag,
    caller: "other-tenant",
    purpose: "twin: a customer that nobody has",
  });
  return nobodys.status === seen.status;
}

export const autTenants = {
  "AUT-08": async (t) => {
    const main = await t.state(t.kit.main, "twin: the main caller");
    for (const query of ["", "?fields=name", "?fields=id,name,email,status"]) {
      const before = await t.get(t.kit.main, { query, purpose: "the owner reads before the stranger" });
      const seen = await asOther(t, query);
      t.check(
        "refused",
        !accepted(seen.status) && seen.status >= 400 && seen.status < 500,
        `another tenant's GET ${query} was answered ${seen.status}`,
      );
      // A cache that keys on the URL alone now hands the stranger's refusal to the owner.
      const own = await t.get(t.kit.main, { query, purpose: "the owner reads after the stranger" });
      t.check(
        "owner-unaffected",
        own.status === before.status,
        `after another tenant's GET ${query} was answered ${seen.status}, the owner's, ${before.status} before, is answered ${own.status}`,
      );
      const values = valuesIn(seen, main);
      t.check(
        "no-values",
        values.length === 0,
        `another tenant's GET ${query}, answered ${seen.status}, holds the ${values.join(" and ")}`,
      );
    }
    for (const customer of otherPaths(t.kit.main, t.quick)) {
      for (const query of ["", "?fields=name,email"]) {
        const seen = await asOther(t, query, customer);
        const values = valuesIn(seen, main);
        t.check(
          "no-values",
          values.length === 0,
          `another tenant's GET ${pathEnd(customer)}${query}, answered ${seen.status}, holds the ${values.join(" and ")}`,
        );
      }
    }
  },
  "AUT-09": (t) =>
    foreignWrites(
      t,
      async (seen, method, before, after) => {
        const same = t.same(before, after);
        t.check(
          "refused",
          !accepted(seen.status) || (same && (await nobodysToo(t, seen, method, before))),
          `${method} by another tenant with the current tag was answered ${seen.status}`,
        );
        t.check("unchanged", same, () =>
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
    const bare = t.kit.main;
    for (const [customer, query] of [
      [bare, ""],
      [bare, "?fields=email"],
      ...otherPaths(bare, t.quick).map((each) => [each, ""] as const),
    ] as const) {
      const path = shownPath(t, customer);
      const evidence = t.probe(`GET ${path}${query} without credentials`, "no personal data");
      const seen = await t.get(customer, { query, caller: "anonymous", purpose: "probe" });
      note(evidence, seen, { came: String(seen.status) });
      const values = valuesIn(seen, main);
      t.check(
        "no-values",
        values.length === 0,
        `GET ${path}${query} without credentials, answered ${seen.status}, holds the ${values.join(" and ")}`,
      );
    }
  },
} satisfies Record<`AUT-${"08" | "09" | "10" | "11" | "12"}`, Check>;

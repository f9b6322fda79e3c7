/** Fields of request bodies. */

import type { Seen } from "../../http/wire.ts";
import type { Attempt } from "../../probe/attempt.ts";
import type { Check } from "../../probe/check.ts";
import { note } from "../../probe/evidence.ts";
import { opaque } from "../../probe/tag-forms.ts";
import { accepted, difference, type Snapshot } from "../../probe/trial.ts";

/** A PUT with the current tag and a body of its own, and the state on both sides. */
async function put(
  t: Attempt,
  what: string,
  body: Record<string, unknown>,
  allowed: string,
): Promise<{ seen: Seen; before: Snapshot; after: Snapshot }> {
  const before = await t.state(t.kit.main, "read before");
  const evidence = t.probe(`PUT with ${what}`, allowed);
  const seen = await t.rawWrite("PUT", t.kit.main, {
    ifMatch: before.tag,
    body: JSON.stringify(body),
    purpose: "probe",
  });
  const after = await t.state(t.kit.main);
  note(evidence, seen, { before: before.seen, after: after.seen, unchanged: t.same(before, after) });
  return { seen, before, after };
}

/** A body as the deployment takes it, as an object that a probe can change. */
function goodBody(t: Attempt): Record<string, unknown> {
  return JSON.parse(t.kit.deployment.putBody(t.kit.values.next()));
}

async function requires(t: Attempt, field: "name" | "email"): Promise<void> {
  await t.twin("PUT", t.kit.main);
  const member = t.kit.deployment.bodyNames[field];
  const without = goodBody(t);
  delete without[member];
  for (const [what, body] of [
    [`no ${member}`, without],
    [`${member} null`, { ...goodBody(t), [member]: null }],
  ] as const) {
    const { seen, before, after } = await put(t, what, body, "some 4xx, nothing changed");
    t.check(
      "refused",
      seen.status >= 400 && seen.status < 500,
      `PUT with ${what} was answered ${seen.status}, not by a 4xx`,
    );
    t.check("unchanged", t.same(before, after), () => `PUT with ${what}: ${difference(before, after)}`);
  }
}

/** Further than this run will count. */
const FAR = 1_000_000;

export const fldBodies = {
  "FLD-15": async (t) => {
    await t.twin("PUT", t.kit.main);
    const other = t.kit.ground.missing();
    const { seen, before, after } = await put(
      t,
      "another id in the body",
      { ...goodBody(t), [t.kit.deployment.bodyNames.id]: other.id },
      "a 4xx, or the id ignored",
    );
    if (before.fields.id !== undefined)
      t.check(
        "id-kept",
        Bun.deepEquals(after.fields.id, before.fields.id),
        `the id ${JSON.stringify(before.fields.id)} became ${JSON.stringify(after.fields.id)}`,
      );
    t.check(
      "answer",
      (seen.status >= 400 && seen.status < 500) || accepted(seen.status),
      `PUT with another id in the body was answered ${seen.status}`,
    );
    const moved = await t.get(other, { purpose: "read the other id" });
    // Where a GET of any id is 200, that is PRB-01's to blame.
    const everywhere =
      moved.status === 200 &&
      (await t.get(t.kit.ground.missing(), { purpose: "twin: another id" })).status === 200;
    t.check(
      "not-moved",
      moved.status !== 200 || everywhere,
      `a customer now answers at the id in the body, ${other.id}`,
    );
  },
  "FLD-16": (t) => requires(t, "name"),
  "FLD-17": (t) => requires(t, "email"),
  "FLD-18": async (t) => {
    await t.twin("PUT", t.kit.main);
    for (const field of ["name", "email"] as const) {
      const member = t.kit.deployment.bodyNames[field];
      for (const value of [42, true, ["a"], { a: "b" }]) {
        const what = `${member} ${JSON.stringify(value)}`;
        const { seen, after } = await put(
          t,
          what,
          { ...goodBody(t), [member]: value },
          "some 4xx, or read back as a string",
        );
        t.check("no-5xx", seen.status < 500, `PUT with ${what} was answered ${seen.status}`, "SHOULD");
        t.check(
          "string",
          typeof after.fields[field] === "string",
          `after PUT with ${what} the ${field} reads ${JSON.stringify(after.fields[field])}, no string`,
        );
      }
    }
  },
  "FLD-19": async (t) => {
    const twin = await t.twin("PUT", t.kit.main);
    const former = opaque(twin.former);
    const counted = /^\d{1,15}$/.test(former);
    for (const member of ["RowVersion", "rowVersion", "row_version", "version", "etag"]) {
      // A typed version column takes a number and no text.
      for (const forged of ["kit-forged", ...(counted ? [Number(former) + FAR] : [])]) {
        const what = `${member} ${JSON.stringify(forged)} in the body`;
        const { after } = await put(t, what, { ...goodBody(t), [member]: forged }, "a 4xx, or it is ignored");
        const reached =
          typeof forged === "number" ? Number(opaque(after.tag)) >= forged : after.tag.includes(forged);
        t.check("not-set", !reached, `after PUT with ${what} the tag is ${after.tag}`);
      }
      for (const forged of [former, ...(counted ? [Number(former)] : [])]) {
        const what = `${member} ${JSON.stringify(forged)}, a former one, in the body`;
        const { after } = await put(t, what, { ...goodBody(t), [member]: forged }, "a 4xx, or it is ignored");
        const back =
          twin.former !== twin.tag &&
          (after.tag === twin.former || (counted && Number(opaque(after.tag)) < Number(opaque(twin.tag))));
        t.check("not-reset", !back, `after PUT with ${what} the tag is back at ${after.tag}`);
      }
    }
  },
} satisfies Record<`FLD-1${number}`, Check>;

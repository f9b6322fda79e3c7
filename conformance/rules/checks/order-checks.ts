import type { Check } from "../../probe/check.ts";
import { note } from "../../probe/evidence.ts";
import { CouldNotRun, NotApplicable } from "../../probe/outcome-signal.ts";
import { header, type Lines } from "../../probe/refusal.ts";
import { accepted, difference, type Method, type Trial } from "../../probe/trial.ts";
import type { Customer } from "../../run/ground.ts";
import type { ord as rules } from "../order.ts";

/** A write to a customer that does not exist. Its twin: the same write to one that does. */
async function toMissing(
  t: Trial,
  method: Method,
  what: string,
  lines: (tag: string) => Lines,
  wanted: 404 | 428,
): Promise<void> {
  // DELETE has no twin here: that it is offered was found out by one that succeeded.
  const twin = method === "DELETE" ? undefined : await t.twin(method, t.kit.main);
  const real = twin ?? (await t.state(t.kit.main, "read a real tag"));
  const missing = t.kit.ground.missing();
  for (const sent of distinct([lines(real.tag), lines('"kit-never-given"')])) {
    const evidence = t.probe(`${method} to a missing customer with ${what}`, `${wanted}`);
    const seen = await t.write(method, missing, { ifMatch: sent, purpose: "probe" });
    note(evidence, seen, {
      twin:
        twin === undefined
          ? null
          : {
              differs: "the customer exists and If-Match is current",
              n: twin.twin.exchange.n,
              status: twin.twin.status,
              ok: true,
            },
    });
    t.check(
      "status",
      seen.status === wanted || (wanted === 428 && t.blamedBefore(method, "missing", seen.status)),
      `${method} to a missing customer with ${what} was answered ${seen.status}, not ${wanted}`,
    );
    await stillMissing(t, method, missing);
  }
}

async function stillMissing(t: Trial, method: Method, missing: Customer): Promise<void> {
  if (method === "DELETE") return;
  const after = await t.get(missing, { purpose: "read back" });
  // Where a GET of any id is 200, nothing is said by this one: that is PRB-01's to blame.
  if (
    after.status === 200 &&
    (await t.get(t.kit.ground.missing(), { purpose: "twin: another id" })).status === 200
  )
    return;
  t.check(
    "not-created",
    // 200 without an object and a tag is no customer: PRB-01 blames it.
    after.status !== 200 || after.object === undefined || after.tag === undefined,
    `a GET of the missing customer then answers ${after.status}: it was created`,
    "MUST",
  );
}

function distinct(all: readonly Lines[]): Lines[] {
  return [...new Map(all.map((lines) => [JSON.stringify(lines), lines])).values()];
}

const none = () => [];
const any = (tag: string) => header(tag);

/** Bodies that are no JSON object with Name and Email. */
function badBodies(t: Trial): { what: string; body: string }[] {
  const { bodyNames } = t.kit.deployment;
  const { name, email } = t.kit.values.next();
  return [
    { what: "broken JSON", body: `{"${bodyNames.name}": "${name}", "${bodyNames.email}": ` },
    { what: "an empty body", body: "" },
    { what: "a JSON list", body: JSON.stringify([name, email]) },
    { what: "a JSON string", body: JSON.stringify(name) },
    { what: "JSON null", body: "null" },
    { what: "an empty object", body: "{}" },
  ];
}

/**
 * Precondition and body both bad. That If-Match is there is the first of all checks (4.2), so without it a body is not judged;
 * what is no JSON may be stopped before there is anything to check. When a body is judged beside the later checks is open.
 */
async function badBodyWith(
  t: Trial,
  what: string,
  lines: (tag: string, former: string) => Lines,
  wanted: 412 | 428,
): Promise<void> {
  const twin = await t.twin("PUT", t.kit.main);
  const [first, , , , , last] = badBodies(t);
  for (const bad of [first, last]) {
    if (bad === undefined) continue;
    const before = await t.state(t.kit.main, "read before");
    const evidence = t.probe(`PUT ${what} and with ${bad.what}`, `${wanted}, nothing changed`);
    const seen = await t.write("PUT", t.kit.main, {
      ifMatch: lines(before.tag, twin.former),
      body: bad.body,
      purpose: "probe",
    });
    const after = await t.state(t.kit.main);
    note(evidence, seen, { before: before.seen, after: after.seen, unchanged: t.same(before, after) });
    // What IFM-03 or IFM-04 has blamed already is not blamed again.
    t.check(
      wanted === 428 && bad === first ? "no-json" : "status",
      seen.status === wanted || t.blamedBefore("PUT", wanted === 428 ? "missing" : "stale", seen.status),
      `PUT ${what} and with ${bad.what} was answered ${seen.status}, not ${wanted}`,
      wanted === 428 && bad === last ? "MUST" : "SHOULD",
    );
    t.check("unchanged", t.same(before, after), () => difference(before, after), "MUST");
  }
}

export const ord = {
  "ORD-01": (t) => toMissing(t, "PUT", "no If-Match", none, 428),
  "ORD-02": async (t) => {
    await toMissing(t, "PUT", "an empty If-Match", () => header(""), 428);
    await toMissing(t, "PUT", "an If-Match of blanks", () => header("  \t"), 428);
  },
  "ORD-03": (t) => toMissing(t, "PUT", "If-Match", any, 404),
  "ORD-04": (t) => toMissing(t, "PUT", "If-Match *", () => header("*"), 404),
  "ORD-05": async (t) => {
    const customer = await t.kit.ground.make();
    const last = await t.state(customer, "read before");
    const removal = await t.write("DELETE", customer, { ifMatch: last.tag, purpose: "delete" });
    const gone = await t.get(customer, { purpose: "read back" });
    if (gone.status === 410 || (gone.status === 200 && accepted(removal.status)))
      throw new NotApplicable(
        `after DELETE a read answers ${gone.status}: deletion leaves a trace here, and the customer is not plainly gone`,
      );
    if (gone.status !== 404)
      throw new CouldNotRun(
        `DELETE answered ${removal.status} and a read then ${gone.status}, so the customer is not plainly gone`,
      );
    const evidence = t.probe("PUT to a deleted customer with its last tag", "404");
    const seen = await t.write("PUT", customer, { ifMatch: last.tag, purpose: "probe" });
    const after = await t.get(customer, { purpose: "read back" });
    note(evidence, seen);
    t.check("status", seen.status === 404, `PUT to a deleted customer was answered ${seen.status}, not 404`);
    t.check("not-revived", after.status !== 200, "the deleted customer is back");
  },
  "ORD-06": (t) => toMissing(t, "PATCH", "If-Match", any, 404),
  "ORD-07": (t) => toMissing(t, "PATCH", "no If-Match", none, 428),
  "ORD-08": (t) => toMissing(t, "DELETE", "If-Match", any, 404),
  "ORD-09": (t) => toMissing(t, "DELETE", "no If-Match", none, 428),
  "ORD-10": (t) => badBodyWith(t, "without If-Match", () => [], 428),
  "ORD-11": (t) =>
    badBodyWith(
      t,
      "with a stale tag",
      (tag, former) => header(former === tag ? '"kit-never-given"' : former),
      412,
    ),
  "ORD-12": async (t) => {
    const twin = await t.get(t.kit.main, {
      query: "?fields=kitunknown",
      purpose: "twin: the customer exists",
    });
    const missing = t.kit.ground.missing();
    const control = await t.get(missing, { query: "?fields=name", purpose: "twin: the field is known" });
    if (twin.status < 400 || twin.status > 499 || accepted(control.status))
      throw new CouldNotRun(
        `an unknown field is answered ${twin.status}, a missing customer ${control.status}; see FLD-03 and PRB-01`,
      );
    const wanted = twin.status;
    for (const query of ["?fields=kitunknown", "?fields=name,kitunknown"]) {
      const evidence = t.probe(`GET ${query} of a missing customer`, "400, as for one that exists");
      const seen = await t.get(missing, { query, purpose: "probe" });
      note(evidence, seen, {
        twin: { differs: "the customer exists", n: twin.exchange.n, status: twin.status, ok: true },
      });
      // Which status it should be is FLD-03's matter; here it must not hang on existence.
      t.check(
        "status",
        seen.status === wanted,
        `GET ${query} of a missing customer was answered ${seen.status}, of one that exists ${wanted}`,
      );
    }
  },
  "ORD-13": async (t) => {
    const bodies = badBodies(t);
    await t.twin("PUT", t.kit.main);
    for (const bad of bodies) {
      const before = await t.state(t.kit.main, "read before");
      const evidence = t.probe(`PUT with the current tag and ${bad.what}`, "some 4xx, nothing changed");
      const seen = await t.write("PUT", t.kit.main, {
        ifMatch: before.tag,
        body: bad.body,
        purpose: "probe",
      });
      const after = await t.state(t.kit.main);
      note(evidence, seen, { before: before.seen, after: after.seen, unchanged: t.same(before, after) });
      t.check(
        "refused",
        seen.status >= 400 && seen.status < 500,
        `PUT with ${bad.what} was answered ${seen.status}, not by a 4xx`,
      );
      t.check("unchanged", t.same(before, after), () => `PUT with ${bad.what}: ${difference(before, after)}`);
    }
    const end = await t.state(t.kit.main, "read before");
    const twin = await t.write("PUT", t.kit.main, { ifMatch: end.tag, purpose: "twin" });
    if (!accepted(twin.status))
      throw new CouldNotRun(`a good body was answered ${twin.status} afterwards; see IFM-01`);
  },
} satisfies Record<(typeof rules)[number]["id"], Check>;

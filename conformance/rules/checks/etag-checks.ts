import type { Attempt } from "../../probe/attempt.ts";
import { bodyWithoutToken } from "../../probe/body-token.ts";
import type { Check } from "../../probe/check.ts";
import { note } from "../../probe/evidence.ts";
import { longSeries } from "../../probe/long-series.ts";
import { CouldNotRun } from "../../probe/outcome-signal.ts";
import { isEntityTag, opaque } from "../../probe/tag-forms.ts";
import { leaksOf } from "../../probe/tag-leak.ts";
import { notATag, wrongTag } from "../../probe/tag-words.ts";
import { accepted, type Method, type Snapshot } from "../../probe/trial.ts";
import { registryFields } from "../../target/names.ts";
import { FIELDS } from "../../target/profile-file.ts";
import type { etg as rules } from "../etag.ts";
import { COMBINATIONS } from "./fields-checks.ts";

/** Every set of fields, so that one that has another tag is not blamed on a caller (AUT-06). */
const PROJECTIONS = [...FIELDS, ...COMBINATIONS.map((fields) => fields.join())];

/** A write that must be accepted for the rule to be looked at. */
async function write(
  t: Attempt,
  method: Method,
  before: Snapshot,
  values?: { name?: string; email?: string },
) {
  const seen = await t.rawWrite(method, t.kit.main, { ifMatch: before.tag, values, purpose: "probe" });
  if (!accepted(seen.status))
    throw new CouldNotRun(
      `${method} with the current tag was answered ${seen.status}; see ${method === "PUT" ? "IFM-01" : "IFM-30"}`,
    );
  return { seen, after: await t.state(t.kit.main) };
}

/** The response of an accepted write carries the tag of now. */
async function newTagIn(t: Attempt, method: "PUT" | "PATCH"): Promise<void> {
  t.needsStableTag();
  const before = await t.state(t.kit.main, "read before");
  const evidence = t.probe(`${method} with the current tag`, "the answer carries the new ETag");
  const { seen, after } = await write(t, method, before);
  note(evidence, seen, { before: before.seen, after: after.seen });
  if (
    !t.check(
      "etag",
      seen.tag !== undefined,
      `the answer ${seen.status} of an accepted ${method} carries no ETag`,
    )
  )
    return;
  t.check("etag-current", seen.tag === after.tag, wrongTag(seen.tag, before.tag, after.tag));
}

function values(snapshot: Snapshot): { name: string; email: string } {
  return { name: String(snapshot.fields.name), email: String(snapshot.fields.email) };
}

export const etg = {
  "ETG-01": async (t) => {
    const evidence = t.probe("GET of an existing customer", "200, a JSON object, an ETag");
    const seen = await t.get(t.kit.main);
    note(evidence, seen);
    t.check("status", seen.status === 200, `GET of an existing customer was answered ${seen.status}`);
    t.check(
      "object",
      seen.object !== undefined,
      `the body is no JSON object: ${JSON.stringify(seen.text.slice(0, 60))}`,
    );
    t.check("etag", seen.tag !== undefined, "the answer carries no ETag");
  },
  "ETG-02": async (t) => {
    const seen = await tagged(t);
    t.check(
      "one-line",
      seen.tags.length === 1,
      `${seen.tags.length} ETag lines came: ${seen.tags.join(" and ")}`,
    );
    t.check("syntax", isEntityTag(seen.tag), notATag(seen.tag));
  },
  "ETG-03": async (t) => {
    const seen = await tagged(t);
    t.check("strong", !/^W\//i.test(seen.tag), `ETag: ${seen.tag} is weak`);
  },
  "ETG-04": async (t) => {
    const before = t.kit.wire.onlooker.knownTags(new URL(t.kit.main.url).pathname);
    const first = await tagged(t);
    for (let read = 0; read < 6; read += 1) {
      const evidence = t.probe("another GET", `ETag ${first.tag}`);
      // Every other read opens a connection of its own, so that it may reach another process of the service.
      const next = await t.get(t.kit.main, { via: read % 2 === 0 ? "socket" : "undici" });
      note(evidence, next);
      if (next.tag !== first.tag && next.tag !== undefined && before.has(next.tag))
        throw new CouldNotRun("reads show former states in turn with the current one; see ENV-04");
      t.check(
        "stable",
        next.tag === first.tag,
        `by reading alone, without any write, the ETag went from ${first.tag} to ${next.tag}`,
      );
    }
  },
  "ETG-05": async (t) => {
    t.needsStableTag();
    const full = await tagged(t);
    for (const fields of PROJECTIONS) {
      const evidence = t.probe(`GET ?fields=${fields}`, `ETag ${full.tag}`);
      const seen = await t.get(t.kit.main, { query: `?fields=${fields}` });
      note(evidence, seen);
      if (seen.status !== 200) continue;
      if (t.check("present", seen.tag !== undefined, `GET ?fields=${fields} carries no ETag`))
        t.check(
          "same",
          seen.tag === full.tag,
          `GET ?fields=${fields} carries ${seen.tag}, the full read ${full.tag}`,
        );
    }
    if (t.assertions.size === 0) throw new CouldNotRun("no projected read was answered 200; see FLD-01");
  },
  "ETG-06": async (t) => {
    t.needsStableTag();
    await t.twin("PUT", t.kit.main);
    for (const fields of ["name", "id,status"]) {
      const read = await t.get(t.kit.main, { query: `?fields=${fields}`, purpose: "projected read" });
      if (read.status !== 200 || read.tag === undefined) continue;
      const evidence = t.probe(`PUT with the tag of GET ?fields=${fields}`, "accepted");
      const seen = await t.rawWrite("PUT", t.kit.main, { ifMatch: read.tag, purpose: "probe" });
      note(evidence, seen);
      t.check(
        "accepted",
        accepted(seen.status),
        `the tag ${read.tag} of GET ?fields=${fields} was answered ${seen.status}`,
      );
    }
    if (t.assertions.size === 0)
      throw new CouldNotRun("no projected read came with a tag; see FLD-01 and ETG-05");
  },
  "ETG-07": (t) => newTagIn(t, "PUT"),
  "ETG-08": async (t) => {
    const before = await t.state(t.kit.main, "read before");
    const evidence = t.probe("PUT of other values", `an ETag other than ${before.tag}`);
    const { seen, after } = await write(t, "PUT", before);
    note(evidence, seen, { came: `then read: ETag ${after.tag}`, before: before.seen, after: after.seen });
    t.check(
      "changes",
      after.tag !== before.tag,
      `the ETag did not change: after an accepted PUT it is still ${before.tag}`,
    );
  },
  "ETG-09": async (t) => {
    const before = await t.state(t.kit.main, "read before");
    const other = await write(t, "PUT", before);
    if (other.after.tag === before.tag)
      throw new CouldNotRun("the tag does not change even with the values; see ETG-08");
    const evidence = t.probe("PUT of the values that are stored", `an ETag other than ${other.after.tag}`);
    const { seen, after } = await write(t, "PUT", other.after, values(other.after));
    note(evidence, seen, {
      came: `then read: ETag ${after.tag}`,
      before: other.after.seen,
      after: after.seen,
    });
    t.check(
      "changes",
      after.tag !== other.after.tag,
      `the ETag did not change: after an accepted PUT of the same values it is still ${after.tag}`,
    );
  },
  "ETG-10": async (t) => {
    const before = await t.state(t.kit.main, "read before");
    const first = (await write(t, "PUT", before)).after;
    const second = (await write(t, "PUT", first)).after;
    if (second.tag === first.tag)
      throw new CouldNotRun("the tag does not change with the values; see ETG-08");
    const evidence = t.probe(
      "PUT of values A, B, then A again",
      `a third tag beside ${first.tag} and ${second.tag}`,
    );
    const { seen, after } = await write(t, "PUT", second, values(first));
    note(evidence, seen, { came: `then read: ETag ${after.tag}`, before: second.seen, after: after.seen });
    t.check("new", after.tag !== first.tag, `with the first values the first tag is back: ${after.tag}`);
  },
  "ETG-11": async (t) => {
    const before = await t.state(t.kit.main, "read before");
    const { after } = await write(t, "PATCH", before);
    t.check(
      "changes",
      after.tag !== before.tag,
      `the ETag did not change: after an accepted PATCH it is still ${before.tag}`,
    );
    if (after.tag !== before.tag) await newTagIn(t, "PATCH");
  },
  "ETG-12": async (t) => {
    const before = await t.state(t.kit.main, "read before");
    const other = await write(t, "PATCH", before);
    if (other.after.tag === before.tag)
      throw new CouldNotRun("PATCH does not change the tag at all; see ETG-11");
    const evidence = t.probe("PATCH of the name to what it is", `an ETag other than ${other.after.tag}`);
    const { seen, after } = await write(t, "PATCH", other.after, { name: String(other.after.fields.name) });
    note(evidence, seen, { came: `then read: ETag ${after.tag}` });
    t.check(
      "changes",
      after.tag !== other.after.tag,
      `the ETag did not change: after an accepted PATCH of the same value it is still ${after.tag}`,
    );
  },
  "ETG-13": async (t) => {
    const state = await t.state(t.kit.main, "read before");
    const evidence = t.probe("GET, its ETag against the data", "no data and no hash of it in the token");
    note(evidence, state.seen, { came: `ETag ${state.tag}` });
    const leaks = leaksOf(opaque(state.tag), state.fields, state.seen.text);
    t.check("no-data", !leaks.some(({ kind }) => kind === "data"), () =>
      leaks.map(({ what }) => what).join("; "),
    );
    t.check("no-hash", !leaks.some(({ kind }) => kind === "hash"), () =>
      leaks.map(({ what }) => what).join("; "),
    );
  },
  "ETG-14": async (t) => {
    const seen = await tagged(t);
    if (seen.object === undefined) throw new CouldNotRun("the body is no JSON object; see ETG-01");
    bodyWithoutToken(t, "a read", seen);
    if (t.kit.options.mode === "read-only") return;
    // A write may answer with a body that another piece of code makes.
    for (const method of ["PUT", "PATCH"] as const) {
      if (method === "PATCH" && !(await t.patchOffered())) continue;
      const now = await t.state(t.kit.main);
      const answer = await t.rawWrite(method, t.kit.main, { ifMatch: now.tag, purpose: "write" });
      const shown = registryFields(answer.object ?? {}, t.kit.deployment.names);
      // An answer that shows no customer is of a shape that nobody has fixed.
      if (accepted(answer.status) && (shown.name ?? shown.email) !== undefined)
        bodyWithoutToken(t, `the answer to ${method}`, answer);
    }
  },
  "ETG-15": async (t) => {
    const tags = [(await t.state(t.kit.main, "read before")).tag];
    const writes = t.quick ? 6 : 16;
    for (let count = 0; count < writes; count += 1) {
      const now = await t.state(t.kit.main);
      const { seen, after } = await write(t, "PUT", now);
      tags.push(after.tag);
      const latest = tags.at(-1) ?? "";
      const evidence = t.probe(`PUT ${count + 1} of a series`, "a token that this customer never had");
      Object.assign(evidence, { came: `ETag ${latest}` });
      const age = tags.length - 1 - tags.indexOf(latest);
      // A tag that does not move is ETG-08's to blame, unless it moved there: one that a clock makes does, now and then.
      if (latest === tags.at(-2) && t.kit.doubts.has("tag stays"))
        throw new CouldNotRun("the tag does not change with each of these writes; see ETG-08");
      if (latest === tags.at(-2) && seen.tag !== undefined && seen.tag !== latest)
        throw new CouldNotRun("a read shows the state before an accepted PUT; see ENV-04");
      t.check(
        "moves",
        latest !== tags.at(-2),
        `after accepted PUT ${count + 1} of a series the tag is still ${latest}`,
      );
      t.check(
        "never-again",
        age <= 1 || latest === tags.at(-2),
        `the tag ${latest} of ${age} writes ago is back`,
      );
    }
    if (!t.quick && new Set(tags).size > 1) await longSeries(t, tags);
    t.note = `; ${tags.length - 1} writes were looked at`;
  },
} satisfies Record<(typeof rules)[number]["id"], Check>;

async function tagged(t: Attempt) {
  const evidence = t.probe("GET of an existing customer", "one strong, quoted entity-tag");
  const seen = await t.get(t.kit.main);
  note(evidence, seen);
  if (seen.status !== 200 || seen.tag === undefined)
    throw new CouldNotRun("a read carries no ETag; see ETG-01");
  return { ...seen, tag: seen.tag };
}

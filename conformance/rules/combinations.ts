/** IFM, ETG, FLD, AUT: two conditions at once. The rules on one condition stand before these. */
import { NotApplicable, OTHERS_MAY_CAUSE } from "../http/outcome-signal.ts";
import { accepted } from "../http/status.ts";
import type { Answered } from "../probe/answered.ts";
import { type Attempt, BASE, SPECIAL } from "../probe/attempt.ts";
import { deniedField, memberOf } from "../probe/callers/forbidden-field.ts";
import { CALLERS } from "../probe/callers/read-by.ts";
import { type Asker, type CombinedRead, combinedReads } from "../probe/combinations/combined-reads.ts";
import { combinedForeign, combinedRefusals, combinedUpdates } from "../probe/combinations/combined-writes.ts";
import { afterBase, NEEDS } from "../probe/refusals/refused.ts";
import { COMPRESSED } from "../probe/requests/ways-of-reading.ts";
import { type Rule, rule } from "../probe/rule.ts";
import { METHODS, notShown, type Snapshot, WRITABLE } from "../probe/snapshot.ts";
import { holds } from "../probe/token/holds.ts";
import { LAG_MS } from "../probe/trial.ts";
import { plain } from "../target/names.ts";
import type { Field } from "../target/profile-file.ts";

const SELECTIONS: readonly (readonly Field[])[] = [
  ["name"],
  ["email"],
  ["id"],
  ["status"],
  ["name", "email"],
  ["email", "name"],
  ["status", "id"],
  ["id", "name", "email", "status"],
];

/** Levels of a condition at most. The square of the next prime is the number of reads. */
const LEVELS = 11;
const LEVELS_FEWER = 7;

/** Which members came that were not asked for, which did not, and which hold another value than a plain read shows. */
function wrongIn({ seen }: Answered, { fields: stored }: Snapshot, fields: readonly string[]) {
  const members = Object.entries(seen.object ?? {}).filter(([, value]) => value !== null);
  const names = members.map(([name]) => plain(name));
  const compared = (["id", ...WRITABLE] as const).filter((field) => stored[field] !== undefined);
  return {
    extra: names.filter((name) => !fields.includes(name)),
    missing: fields.filter((field) => !names.includes(field) && (stored[field as Field] ?? null) !== null),
    other: compared.filter((field) => {
      const member = memberOf(seen, field);
      return member !== undefined && !Bun.deepEquals(member[1] ?? stored[field], stored[field]);
    }),
  };
}

/** Somebody else may have written meanwhile, and a copy may be late: the rule on that is ENV-04. What is late for longer is wrong. */
async function readUntil(
  t: Attempt,
  { query, options, subject }: CombinedRead,
  isRight: (read: Answered) => boolean,
): Promise<Answered> {
  const { limits, wire, doubts } = t.kit;
  const lags = ({ seen }: Answered) => wire.onlooker.lags(new URL(subject.customer.url).pathname, seen.tag);
  const ask = () => t.read(query, "as a plain read shows it", options);
  let read = await ask();
  if (isRight(read)) return read;
  const until = performance.now() + LAG_MS;
  do {
    if (lags(read)) {
      doubts.add("reads lag");
      await t.restForLag();
    }
    subject.now = await t.state(subject.customer);
    read = await ask();
  } while (!isRight(read) && lags(read) && limits.lagMs > 0 && performance.now() < until);
  return read;
}

async function selects(t: Attempt): Promise<void> {
  const asker: Asker = { caller: "main", by: "" };
  const fields = SELECTIONS.map((each) => each.join(","));
  const factors = { asker: [asker], fields, method: ["GET"] };
  for await (const asked of combinedReads(t, LEVELS, factors, "name,email")) {
    const { subject, way } = asked;
    const named = asked.options.what;
    const names = asked.fields?.split(",") ?? [];
    // A coding makes another representation, which may have a tag of its own (RFC 9110 8.8.3.3).
    const hasTag = (read: Answered) =>
      COMPRESSED.some(([how]) => how === way[0]) || read.seen.tag === subject.now.tag;
    const read = await readUntil(t, asked, (read) => {
      if (read.seen.status !== 200 || read.seen.object === undefined) return true;
      return wrongIn(read, subject.now, names).other.length === 0 && hasTag(read);
    });
    const { status, object, tag } = read.seen;
    if (status !== 200 || object === undefined) continue;
    const { extra, missing, other } = wrongIn(read, subject.now, names);
    read.must("no-other", extra.length === 0, `${named}: ${extra.join(", ")} came as well, not requested`);
    read.must("complete", missing.length === 0, `${named}: ${missing.join(", ")} did not come`);
    const found = `${named} shows another value of ${other.join(" and ")} than a plain read`;
    read.must("value", other.length === 0, found, OTHERS_MAY_CAUSE);
    const carries = `${named} carries ${tag ?? "no ETag"}, a plain read ${subject.now.tag}`;
    read.must("same-tag", hasTag(read), carries, OTHERS_MAY_CAUSE);
  }
  t.mustHaveLooked("no projected read was answered 200", "FLD-01");
}

/** They must not be shown anything. */
function strangers({ otherTenant, main }: Attempt["kit"]["profile"]): Asker[] {
  const all: (Asker | undefined)[] = [
    otherTenant && { caller: "other-tenant", by: `by ${CALLERS["other-tenant"]}` },
    main.length === 0 ? undefined : { caller: "anonymous", by: "without credentials" },
  ];
  return all.filter((each) => each !== undefined);
}

async function hides(t: Attempt): Promise<void> {
  const { profile } = t.kit;
  const all = strangers(profile);
  if (profile.limited === undefined && all.length === 0)
    throw new NotApplicable("there is one caller alone, and no credentials");
  for (const asker of all) await hidesFrom(t, asker, LEVELS_FEWER, "name");
  if (profile.limited === undefined) return;
  const denied = await deniedField(t);
  await hidesFrom(t, { caller: "limited", by: `by ${CALLERS.limited}` }, LEVELS, denied, denied);
}

/** @param denied the field that the limited caller may not read */
async function hidesFrom(
  t: Attempt,
  asker: Asker,
  levels: number,
  field: Field,
  denied?: Field,
): Promise<void> {
  const fields = [field, undefined, `id,${field}`, `${field},kitunknown`, "id,name,email,status"];
  // A run that only reads sends nothing but GET.
  const method = t.kit.options.mode === "read-only" ? ["GET"] : ["GET", "GET", "HEAD"];
  const allowed = denied === undefined ? "no 2xx, and no value of the customer" : `no ${denied}`;
  for await (const asked of combinedReads(t, levels, { asker: [asker], fields, method }))
    mustHide(await t.read(asked.query, allowed, asked.options), asked, denied);
}

function mustHide(read: Answered, asked: CombinedRead, denied: Field | undefined): void {
  const { seen } = read;
  const { probe } = read.evidence;
  const kept = denied === undefined ? WRITABLE : WRITABLE.filter((field) => field === denied);
  const come = kept.filter((field) => holds(seen, asked.subject.now.fields[field]));
  const holding = `the answer ${seen.status} to ${probe} holds the ${come.join(" and ")}`;
  read.must("no-value", come.length === 0, holding);
  const shown = accepted(seen.status) && seen.object !== undefined;
  // To a caller without credentials what is not personal may be open.
  const isAsked = denied !== undefined && asked.fields?.split(",").includes(denied) === true;
  const mustRefuse = isAsked || asked.asker.caller === "other-tenant";
  read.must("refused", !(mustRefuse && shown), `${probe} was answered ${seen.status}, not refused`);
  if (denied === undefined) return;
  const member = shown ? memberOf(seen, denied)?.[0] : undefined;
  read.must("no-member", member === undefined, `${probe} shows the member ${member}`);
}

async function updates(t: Attempt, method: "PUT" | "PATCH"): Promise<void> {
  for await (const written of combinedUpdates(t, method)) {
    if (!written.accepted) continue;
    const { seen, before, now, values } = written;
    const how = `an accepted ${written.evidence.probe}`;
    // A write that changes nothing and keeps the tag is a matter of ETG-09 and ETG-12.
    const stored = WRITABLE.every((field) => before.fields[field] === now.fields[field]);
    const stays = `after ${how} the ETag is still ${before.tag}`;
    written.must("changes", stored || now.tag !== before.tag, stays);
    const carries = `the answer to ${how} carries ${seen.tag ?? "no ETag"}; a read then shows ${now.tag}`;
    written.must("etag", seen.tag === now.tag, carries, OTHERS_MAY_CAUSE);
    if (t.kit.doubts.has("reads lag")) continue;
    const lost = notShown(now.fields, values);
    const other = WRITABLE.find(
      (field) => values[field] === undefined && !Bun.deepEquals(before.fields[field], now.fields[field]),
    );
    written.must(
      "stored",
      lost === undefined,
      `the new ${lost} of ${how} is not read back`,
      OTHERS_MAY_CAUSE,
    );
    const kept = `${how} has changed the ${other}, which it did not name`;
    written.must("others-kept", other === undefined, kept, OTHERS_MAY_CAUSE);
  }
}

const writes = METHODS.map((method) => {
  const id = SPECIAL[method].combined;
  return rule(id, `No two conditions together let a ${method} past If-Match`, {
    spec: ["3 stale", "3 missing", "3 same rule", "7 rule 2"],
    reading:
      "Who sends it and to which customer, its form of If-Match, framing, headers, content, media type and address, and what came right before: every two of them meet; a missing If-Match, and a former tag, each meet every two of the others. Any refusal will do.",
    hurts:
      "Each check holds by itself, and the one request that needs two of them overwrites what nobody read.",
    needs: NEEDS[method],
    after: [
      ...afterBase(id, method, "stale", "missing"),
      BASE[method].blank,
      SPECIAL[method].shapes,
      SPECIAL[method].former,
      "IFM-49",
    ],
    async check(t) {
      t.needsUnviolated();
      await combinedRefusals(t, method);
    },
  });
});

export const combinations: readonly Rule[] = [
  ...writes,
  rule("ETG-20", "No two conditions together make an accepted write keep its ETag, or lose what it wrote", {
    spec: ["2.4.6", "3 accepted", "4.3 same"],
    reading:
      "Who sends it and to which customer, its framing, headers, content, media type and address: every two of them meet. Such a write may be refused, but an accepted one is stored, and answered with the token that the next read shows, a new one.",
    hurts: "A stale client's token still matches, or what it was told is saved is not.",
    needs: ["write"],
    after: ["ETG-04", "ETG-07", "ETG-08", "ETG-11", "ETG-17", "ETG-18", "IFM-01", "IFM-30", "AUT-14"],
    async check(t) {
      t.needsUnviolated();
      t.needsStableTag();
      for (const method of await t.updates()) await updates(t, method);
      t.mustHaveLooked("no write was accepted", "IFM-01");
    },
  }),
  rule("FLD-22", "No two conditions together change what a projection shows", {
    spec: ["4.1 rule 1", "1.4", "2.4.7"],
    reading:
      "The fields, the way of asking, the address, a parameter beside it, the age of the customer, and what came right before: every two of them meet. Such a read may be refused, but 200 has exactly the requested fields, with the values and the token of a plain read.",
    hurts: "Clients get less than they asked for, or data that they did not ask for.",
    after: ["ETG-04", "ETG-05", "ETG-06", "FLD-01", "FLD-02", "FLD-09", "FLD-10"],
    async check(t) {
      t.needsUnviolated();
      t.needsStableTag();
      await selects(t);
    },
  }),
  rule("AUT-19", "No two conditions together show what a caller may not see", {
    spec: ["5.2", "5.3", "4.1 rule 6"],
    reading:
      "The fields, the way of asking, the address, a parameter beside it, the age of the customer, and what came right before: for each caller every two of them meet. The limited caller is never shown its forbidden field; another tenant, and one without credentials, nothing at all.",
    hurts: "Personal data reaches someone who may not see it.",
    after: [
      "FLD-03",
      "FLD-04",
      "AUT-01",
      "AUT-02",
      "AUT-04",
      "AUT-05",
      "AUT-08",
      "AUT-12",
      "AUT-15",
      "AUT-16",
    ],
    async check(t) {
      t.needsUnviolated();
      await hides(t);
    },
  }),
  rule("AUT-20", "No two conditions together let another tenant change a customer", {
    spec: ["5.2", "4.1 rule 6"],
    reading:
      "The framing, headers, content, media type and address, the age of the customer, and what came right before: every two of them meet, with the current tag. What is answered is open.",
    hurts: "One tenant overwrites or deletes another's customers.",
    needs: ["other-tenant", "write"],
    after: ["AUT-09", "IFM-01", "IFM-49"],
    async check(t) {
      t.needsUnviolated();
      const { deployment, ground } = t.kit;
      for (const method of await t.updates()) await combinedForeign(t, method);
      if (deployment.deleteOffered !== false && ground.cannotMake === undefined)
        await combinedForeign(t, "DELETE");
    },
  }),
];

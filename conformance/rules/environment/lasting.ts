/** ENV: writes stay where they belong, and they stay. */
import type { Customer } from "../../fixtures/ground.ts";
import { type Left, valuesOf } from "../../http/acknowledged.ts";
import { CouldNotRun, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { accepted, isClientError, isGone } from "../../http/status.ts";
import type { Seen } from "../../http/wire.ts";
import type { Attempt } from "../../probe/attempt.ts";
import type { RefusedEarly } from "../../probe/kit.ts";
import type { Prepared } from "../../probe/prepared.ts";
import type { Proof } from "../../probe/proof.ts";
import { STATUS } from "../../probe/refusals/refusal-probe.ts";
import { refused } from "../../probe/refusals/refused.ts";
import {
  BLANK,
  ifMatch,
  NEVER_GIVEN,
  NEVER_GIVEN_TAG,
  NONE,
  STALE,
  worded,
} from "../../probe/requests/if-match-forms.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import {
  change,
  difference,
  type Method,
  type Snapshot,
  sameFields,
  shows,
  storedValues,
  WRITABLE,
} from "../../probe/snapshot.ts";
import { type AskOptions, LAG_MS, type Weight } from "../../probe/trial.ts";
import { saysNothing } from "../../probe/weather.ts";

/** A customer that is not written, and how it was. */
type Bystander = { readonly customer: Customer; now: Snapshot; status: unknown };

async function look(t: Attempt, customer: Customer): Promise<Bystander> {
  const now = await t.state(customer, "read a customer that is not written");
  return { customer, now, status: await t.status(customer) };
}

/** A statement that lost its WHERE, or names another column in it, may need several writes to show. */
const PUTS = 8;
const SETTLES_MS = 150;

type Step = {
  readonly method: Method;
  readonly what: string;
  readonly options: AskOptions;
  readonly times?: number;
};

async function leavesOthers(t: Attempt): Promise<void> {
  const { ground, values } = t.kit;
  const first = await ground.make();
  const target = await ground.make();
  const last = await ground.make();
  // Made a moment ago: a job may still settle their status.
  await t.kit.wire.rest(SETTLES_MS);
  const main = await look(t, t.kit.main);
  const older = await look(t, first);
  const bystanders = [main, older, await look(t, last)];
  const beside = storedValues(older.now);
  const patches = await t.patchOffered();
  const steps: Step[] = [
    { method: "PUT", what: "new values", options: {}, times: PUTS },
    { method: "PUT", what: "name and email of another customer", options: { values: beside } },
    {
      method: "PUT",
      what: "another name, beside a customer of the same email",
      options: { values: { ...beside, name: values.next().name } },
    },
    {
      method: "PUT",
      what: "another email, beside a customer of the same name",
      options: { values: { ...beside, email: values.next().email } },
    },
    ...(patches ? [{ method: "PATCH", what: "another name", options: {} } as const] : []),
    {
      method: "PUT",
      what: "the id of another customer in the query",
      options: { query: `?id=${first.id}` },
    },
    { method: "PUT", what: "a tag never given", options: { ifMatch: ifMatch(NEVER_GIVEN_TAG) } },
    { method: "PUT", what: "no If-Match", options: { ifMatch: [] } },
    ...(t.kit.deployment.deleteOffered === false
      ? []
      : [{ method: "DELETE", what: "the current tag", options: {} } as const]),
  ];
  for (const { method, what, options, times = 1 } of steps) {
    let tag = (await t.state(target, "read before")).tag;
    let answer: { readonly seen: Seen; readonly tag: string } | undefined;
    const proof = t.proof(`${method} with ${what}`, "every other customer is as before");
    for (let write = 0; write < times; write += 1) {
      const seen = await t.sendWrite(method, target, { ifMatch: tag, ...options, purpose: "probe" });
      tag = seen.tag ?? (times > 1 ? (await t.state(target)).tag : tag);
      answer = { seen, tag };
    }
    if (answer === undefined) continue;
    proof.show(answer.seen);
    await mustKeepOthers(t, proof, bystanders, `${method} with ${what} to ${target.id}`);
  }
  const email = older.now.fields.email;
  const proof = t.proof("a create with the email of a customer", "that customer is as before");
  try {
    await ground.make("main", { name: values.next().name, email: String(email) });
  } catch (error) {
    // Emails may be unique.
    if (!(error instanceof CouldNotRun)) throw error;
  }
  // What a create does beside the new customer is not shown (4.4).
  await mustKeepOthers(t, proof, bystanders, `a create with the email ${email}`, "SHOULD");
}

async function mustKeepOthers(
  t: Attempt,
  proof: Proof,
  bystanders: Bystander[],
  what: string,
  level: Weight["level"] = "MUST",
): Promise<void> {
  for (const [index, before] of bystanders.entries()) {
    const after = await look(t, before.customer);
    const same = t.same(before.now, after.now);
    const status = Bun.deepEquals(before.status, after.status);
    const changed = () =>
      same ? change("status", before.status, after.status) : difference(before.now, after.now);
    const found = () => `${what} changed another customer, ${before.customer.id}: ${changed()}`;
    // The request that creates is the profile's, so the read shows what it did.
    if (proof.evidence.sent === null) proof.show(after.now.seen);
    proof.must("others-kept", same && status, found, { ...OTHERS_MAY_CAUSE, level });
    bystanders[index] = after;
  }
}

const LAG_READ_MS = 200;

/** What is wrong with a customer as it is now; undefined where it is as it was left. */
function fault(left: Left, seen: Seen): readonly [name: string, found: string] | undefined {
  if (left.gone)
    return seen.status === 200
      ? ["stays-deleted", "is there again, although its DELETE was accepted"]
      : undefined;
  if (isGone(seen.status))
    return ["still-there", `is answered ${seen.status}, although no DELETE was accepted`];
  const { state } = left;
  const values = valuesOf(seen.object ?? {});
  if (state === undefined || seen.status !== 200 || values === state.values) return undefined;
  const sameTag = seen.tag === state.tag && state.values !== undefined;
  const back = left.formerTags.has(seen.tag ?? "") || left.formerValues.has(values ?? "");
  if (values === undefined || !(sameTag || back)) return undefined;
  return [
    "values-stay",
    `shows ${values} under ${seen.tag}; it was left with ${state.values} under ${state.tag}`,
  ];
}

async function lasts(t: Attempt): Promise<void> {
  const { ground, wire, deployment, untouched, refusedEarly } = t.kit;
  // ENV-09 writes those that nobody has read since the run began.
  const leftAlone = new Set([untouched?.customer, ...refusedEarly.map(({ customer }) => customer)]);
  const customers = [...ground.made, ...ground.given()].filter((each) => !leftAlone.has(each));
  const proof = t.proof("a look at every customer of this run", "each is as its last accepted write left it");
  let count = 0;
  for (const customer of customers) {
    const left = wire.acknowledged.of(new URL(customer.url).pathname);
    if (!left.gone && (left.mayHaveChanged || left.deleted)) continue;
    const read = () => t.get(customer, { query: deployment.stateQuery, purpose: "a look at the end" });
    let seen = await read();
    let wrong = fault(left, seen);
    for (const until = performance.now() + LAG_MS; wrong !== undefined && performance.now() < until; ) {
      await wire.rest(LAG_READ_MS);
      seen = await read();
      wrong = fault(left, seen);
    }
    if (saysNothing(seen, "main")) continue;
    count += 1;
    proof.show(seen);
    const [name, found] = wrong ?? ["values-stay", ""];
    proof.must(name, wrong === undefined, `the customer ${customer.id} ${found}`, OTHERS_MAY_CAUSE);
    // One customer shows the fault as well as fifty.
    if (wrong !== undefined) return;
  }
  t.note = `; ${count} customers were looked at`;
  t.mustHaveLooked("no customer of this run was left in a known state", "ETG-01");
}

/** How long a queue may take; a short run ends sooner, and looks then. */
const LATE_MS = 2000;

/** @throws CouldNotRun where there is none */
function refusedEarly({ kit }: Attempt): readonly RefusedEarly[] {
  if (kit.refusedEarly.length > 0) return kit.refusedEarly;
  throw new CouldNotRun("no write was refused without effect at the start of the run", ["IFM-03", "IFM-04"]);
}

async function staysRefused(t: Attempt): Promise<void> {
  const { deployment, wire } = t.kit;
  const early = refusedEarly(t);
  const last = Math.max(...early.map(({ sentAt }) => sentAt));
  if (!t.leavesOut("two seconds for a refused write to be applied"))
    await wire.rest(Math.max(0, LATE_MS - (performance.now() - last)));
  for (const { customer, method, what, values, seen, now } of early) {
    const after = await t.get(customer, { query: deployment.stateQuery, purpose: "a look at the end" });
    if (saysNothing(after, "main")) continue;
    const sent = `${method} ${what}, at the start of the run,`;
    t.keep(seen.exchange);
    const proof = t.proof(`${method} ${what}, at the start of the run`, "never applied");
    proof.show(seen, { before: now.seen, after });
    // A DELETE that ENV-09 has sent since was accepted at once, not later.
    const { deleted } = wire.acknowledged.of(new URL(customer.url).pathname);
    const gone = method === "DELETE" && isGone(after.status) && !deleted;
    const shown = t.fieldsOf(after);
    const field = WRITABLE.find(
      (each) => values[each] !== undefined && shows(shown[each], String(values[each])),
    );
    const later = gone
      ? "and the customer is gone now"
      : `and the customer shows its ${field}, ${JSON.stringify(field && shown[field])}, now`;
    const found = `${sent} was answered ${seen.status} and had no effect, ${later}`;
    // The value was never used before, and nothing else deletes this customer.
    proof.must("not-later", !gone && field === undefined, found, gone ? OTHERS_MAY_CAUSE : {});
  }
  t.mustHaveLooked("no read at the end was answered", "ETG-01");
}

const AFTER_REST = { missing: [NONE, BLANK], stale: [STALE, NEVER_GIVEN] } as const;

/** Such a customer as it is now. A job may have moved its status; other things that are not shown may move the tag too. */
async function afterRest(t: Attempt, early: RefusedEarly, seconds: number) {
  const { customer, former, now: then } = early;
  const now = await t.state(customer, "read after the rest");
  const proof = t.proof(`a read of a customer that was left alone for ${seconds} s`, `ETag ${then.tag}`);
  proof.show(now.seen, { before: then.seen });
  const moved =
    now.tag !== then.tag && sameFields(then, now) && Bun.deepEquals(await t.status(customer), early.status);
  const kept = now.tag !== then.tag || sameFields(then, now);
  const lost = () => `nobody wrote the customer ${customer.id} for ${seconds} s: ${difference(then, now)}`;
  proof.must("values-stay", kept, lost, OTHERS_MAY_CAUSE);
  const found = `nobody wrote the customer ${customer.id} for ${seconds} s, and its ETag went from ${then.tag} to ${now.tag}`;
  const weight = { ...OTHERS_MAY_CAUSE, level: "SHOULD" } as const;
  proof.must("tag-stays", !moved || t.kit.doubts.has("tag changes by itself"), found, weight);
  return { customer, former, now };
}

/**
 * A stale write is the first request to such a customer since the run began: a read before it would bring its version
 * back into a cache.
 *
 * @returns whether it was accepted, so that nothing more can be learned from this customer
 */
async function firstIsAccepted(t: Attempt, { customer, method, former, now, seen, sentAt }: RefusedEarly) {
  if (former === now.tag || t.kit.doubts.has("tags repeat")) return false;
  const seconds = Math.floor((performance.now() - sentAt) / 1000);
  const what = `with a stale tag, to a customer that was left alone for ${seconds} s and not read before`;
  const write = await t.writeOnly(method, customer, { what, allowed: "412", ifMatch: former });
  t.keep(seen.exchange);
  write.control({ differs: "it came when the run began", seen, refused: true });
  write.must("unread", !write.accepted, `${method} ${what}, was answered ${write.seen.status}`);
  return write.accepted;
}

/** On the customers that have been left alone since the run began. */
async function staysProtected(t: Attempt): Promise<void> {
  // What was refused for another reason was not protected then: the method may not be offered.
  const protectedThen = refusedEarly(t).filter(({ seen }) =>
    Object.values<number>(STATUS).includes(seen.status),
  );
  for (const [method, early] of Map.groupBy(protectedThen, (one) => one.method)) {
    let at: Prepared | undefined;
    const stale = early.find(({ seen }) => seen.status === STATUS.stale);
    if (stale !== undefined && (await firstIsAccepted(t, stale))) continue;
    for (const one of early) {
      const { seen, sentAt } = one;
      const kind = seen.status === STATUS.missing ? "missing" : "stale";
      const seconds = Math.floor((performance.now() - sentAt) / 1000);
      const more = `to a customer that was left alone for ${seconds} s`;
      const forms = AFTER_REST[kind].map((derive) => worded(derive, more));
      t.keep(seen.exchange);
      const control = { differs: "it came when the run began", seen, refused: true };
      at ??= await afterRest(t, one, seconds);
      at = await refused(t, method, kind, forms, { at, bodies: "one", control });
    }
  }
}

/** Of what a read may hide, nothing comes at the end that did not come at the start. */
async function staysHidden(t: Attempt): Promise<void> {
  const to = t.kit.untouched?.customer;
  if (to === undefined) return;
  for (const { what, query, caller, seen: early } of t.kit.readEarly) {
    const read = await t.read(query, "no more than when the run began", { to, what, caller });
    const { seen } = read;
    if (seen.status !== 200 || saysNothing(seen, caller)) continue;
    t.keep(early.exchange);
    read.control({
      differs: "it came when the run began",
      seen: early,
      refused: isClientError(early.status),
    });
    // Other members may come with an update.
    const before = early.status === 200 ? Object.keys(t.fieldsOf(early)) : [];
    const more = Object.keys(t.fieldsOf(seen)).filter((field) => !before.includes(field));
    const then = early.status === 200 ? `showed ${before.join(", ")}` : `was answered ${early.status}`;
    const found = `${what} ${then} when the run began, and is answered 200 with ${more.join(", ")} now`;
    read.must(
      "stays-hidden",
      isClientError(early.status) ? false : more.length === 0,
      found,
      OTHERS_MAY_CAUSE,
    );
  }
}

/** The tag of a read long ago is as good as one of now, where nobody has written. */
async function staysWritable(t: Attempt): Promise<void> {
  const { untouched, doubts } = t.kit;
  if (untouched === undefined) return;
  const { customer, tag, sentAt } = untouched;
  const seconds = Math.floor((performance.now() - sentAt) / 1000);
  const what = `with the tag of a read ${seconds} s ago`;
  const put = await t.writeOnly("PUT", customer, { what, allowed: "2xx", ifMatch: tag });
  if (put.accepted || saysNothing(put.seen, "main")) return;
  const now = await t.state(customer, "read after it");
  if (now.tag !== tag || doubts.has("tag changes by itself")) return;
  // What is refused right after a read as well is IFM-01's to blame.
  const again = await t.sendWrite("PUT", customer, {
    ifMatch: tag,
    purpose: "control request: after a read",
  });
  put.control({ differs: "a read came right before", seen: again });
  if (accepted(again.status)) put.mustAnswer("still-accepted", "2xx");
}

export const lasting: readonly Rule[] = [
  rule("ENV-06", "A write leaves every other customer as it was", {
    spec: ["1.1", "3 accepted"],
    reading:
      "Name, email, status and token of three customers that are not written: one older and one younger than the one that is, and one with the same name and email.",
    hurts: "A statement without its WHERE overwrites or deletes customers that nobody asked for.",
    needs: ["write", "create"],
    after: ["IFM-01", "ETG-04"],
    check: leavesOthers,
  }),
  rule("ENV-07", "What was acknowledged is still there at the end", {
    spec: ["1.3", "3 accepted"],
    reading:
      "Every customer of the run is read once more. None shows values or a token from before its last accepted write, and one that was gone after an accepted DELETE does not come back.",
    hurts: "Customer data that was confirmed is lost a moment later, without anybody noticing.",
    needs: ["write"],
    after: ["ENV-04", "ENV-06"],
    check: lasts,
  }),
  rule("ENV-09", "A customer that was left alone is protected as before", {
    spec: ["1.3", "3 stale", "3 missing"],
    reading:
      "Of each method one customer is written when the run begins and then left alone. At the end a stale If-Match is the first request to it, and a missing, a blank and a stale one are refused as they were then, the tag of a read at the start is accepted, and no read shows more than it did. A short run leaves them alone for a shorter time.",
    hurts:
      "What remembers versions forgets them after a while, and takes a customer that it does not know for one that nobody changed.",
    needs: ["write", "create"],
    after: ["ENV-07"],
    async check(t) {
      await staysWritable(t);
      await staysHidden(t);
      await staysProtected(t);
    },
  }),
  rule("ENV-08", "A refused write is not applied later", {
    spec: ["7 428", "3 stale", "3 missing"],
    reading:
      "Of each method one without If-Match and one with a stale tag are sent when the run begins, refused and seen to have no effect. When it ends, no customer shows what they carried, and none is gone.",
    hurts: "A queue behind the service overwrites what the caller was told is safe.",
    needs: ["write", "create"],
    after: ["ENV-09"],
    check: staysRefused,
  }),
];

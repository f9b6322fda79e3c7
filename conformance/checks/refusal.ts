/**
 * The shape that most rules on preconditions have: a positive twin that must succeed, then probes that differ
 * from it in If-Match alone and must be refused without any effect.
 */
import type { Customer } from "../ground.ts";
import { CouldNotRun, Inconclusive, NotApplicable } from "../outcome-signal.ts";
import { visible } from "../tag-forms.ts";
import { accepted, difference, type Method, type Snapshot, same, stateOf, type Trial } from "../trial.ts";
import type { Seen } from "../wire.ts";

export type Lines = readonly (readonly [string, string])[];

/** `lines`: the header lines for the current and the former tag, or undefined where they have no such form. */
export type Bad = {
  readonly what: string;
  readonly lines: (tag: string, former: string) => Lines | undefined;
};

export type Kind = "stale" | "missing";
const STATUS = { stale: 412, missing: 428 } as const satisfies Record<Kind, number>;

export const header = (value: string): Lines => [["If-Match", value]];

/** One probe for each form that a function finds for the tag at hand. */
export function formsOf(what: string, forms: (tag: string) => readonly string[], count: number): Bad[] {
  return Array.from({ length: count }, (_, index) => ({
    what,
    lines: (tag) => {
      const form = forms(tag)[index];
      return form === undefined ? undefined : header(form);
    },
  }));
}

type RefusalOptions = {
  /** Base rules say which status the deployment gives this refusal; the special forms then do not blame it again. */
  readonly base?: boolean;
  /** Other statuses that the specification may be read to allow here. */
  readonly allowed?: readonly number[];
  readonly headers?: Lines;
  readonly query?: (tag: string) => string;
};

/** Probes of PUT or PATCH on the main customer. @throws NotApplicable when the tag has none of the forms. */
export async function refusedWrites(
  t: Trial,
  method: "PUT" | "PATCH",
  kind: Kind,
  bads: readonly Bad[],
  options: RefusalOptions = {},
): Promise<void> {
  const customer = t.kit.main;
  const twin = await t.twin(method, customer);
  let now: Snapshot = twin;
  let tried = 0;
  for (const bad of bads) {
    const lines = bad.lines(now.tag, twin.former);
    if (lines === undefined) continue;
    tried += 1;
    const values = method === "PUT" ? t.kit.values.next() : { name: t.kit.values.next().name };
    const evidence = begin(t, method, kind, bad, lines);
    const before = now;
    const seen = await t.write(method, customer, {
      ifMatch: lines,
      values,
      purpose: "probe",
      headers: options.headers ?? [],
      query: options.query?.(now.tag) ?? "",
    });
    now = await t.state(customer);
    judge(t, method, kind, bad, seen, options);
    const still = same(before, now);
    if (!still && !customer.made && foreign(now, before, values))
      throw new Inconclusive("somebody else wrote this customer meanwhile");
    t.check("unchanged", still, () => `${method} with ${bad.what}: ${difference(before, now)}`);
    Object.assign(evidence, {
      came: describe(seen),
      sent: seen.exchange.n,
      before: stateOf(before.seen),
      after: stateOf(now.seen),
      unchanged: still,
      twin: {
        differs: `If-Match is the current tag, ${twin.former}`,
        n: twin.twin.exchange.n,
        status: twin.twin.status,
        ok: true,
      },
    });
  }
  nothingTried(tried, now.tag, twin.former);
}

/** Probes of DELETE, on customers made for it; at the end the twin: DELETE with the current tag. */
export async function refusedDeletes(
  t: Trial,
  kind: Kind,
  bads: readonly Bad[],
  options: RefusalOptions = {},
): Promise<void> {
  let { customer, former, now } = await updatedCustomer(t);
  let tried = 0;
  for (const bad of bads) {
    const lines = bad.lines(now.tag, former);
    if (lines === undefined) continue;
    tried += 1;
    const evidence = begin(t, "DELETE", kind, bad, lines);
    const before = now;
    const seen = await t.write("DELETE", customer, { ifMatch: lines, purpose: "probe" });
    const after = await t.get(customer, { query: t.kit.deployment.stateQuery, purpose: "read back" });
    judge(t, "DELETE", kind, bad, seen, options);
    const there = after.status === 200 && after.tag !== undefined;
    if (there) now = await t.state(customer);
    const still = there && same(before, now);
    t.check("unchanged", still, () =>
      there
        ? `DELETE with ${bad.what}: ${difference(before, now)}`
        : `DELETE with ${bad.what}: a read then answers ${after.status}`,
    );
    Object.assign(evidence, {
      came: describe(seen),
      sent: seen.exchange.n,
      before: stateOf(before.seen),
      after: stateOf(after),
      unchanged: still,
    });
    if (!there) {
      ({ customer, former, now } = await updatedCustomer(t));
    }
  }
  nothingTried(tried, now.tag, former);
  const twin = await t.write("DELETE", customer, { ifMatch: now.tag, purpose: "twin" });
  const ok = accepted(twin.status);
  for (const evidence of t.evidence)
    evidence.twin = { differs: "If-Match is the current tag", n: twin.exchange.n, status: twin.status, ok };
  if (!ok)
    throw new CouldNotRun(
      `the positive twin, DELETE with the current tag, was answered ${twin.status}, so a refusal would prove nothing; see IFM-40`,
    );
}

/** A customer that has had a former tag: written once with PUT. */
export async function updatedCustomer(
  t: Trial,
): Promise<{ customer: Customer; former: string; now: Snapshot }> {
  const customer = await t.kit.ground.make();
  const first = await t.state(customer, "read before");
  const put = await t.write("PUT", customer, { ifMatch: first.tag, purpose: "make the tag stale" });
  if (!accepted(put.status))
    throw new CouldNotRun(`PUT with the current tag was answered ${put.status}; see IFM-01`);
  return { customer, former: first.tag, now: await t.state(customer) };
}

function nothingTried(tried: number, tag: string, former: string): void {
  if (tried > 0) return;
  if (tag === former)
    throw new CouldNotRun(
      "the tag did not change on an accepted write, so there is no stale one; see ETG-08",
    );
  throw new NotApplicable(`the token ${tag} has no such form`);
}

function begin(t: Trial, method: Method, kind: Kind, bad: Bad, lines: Lines) {
  const odd = lines.map(([name, value]) => `${name}: ${visible(value)}`).join(" ⏎ ");
  return t.probe(
    `${method} with ${bad.what}`,
    `${STATUS[kind]}, and nothing changed`,
    lines.length === 0 ? null : odd,
  );
}

function judge(t: Trial, method: Method, kind: Kind, bad: Bad, seen: Seen, options: RefusalOptions): void {
  const wanted = STATUS[kind];
  const key = `${method} ${kind}`;
  const { blamed } = t.kit;
  const detail = () => `${method} with ${bad.what} was answered ${seen.status}, not ${wanted}`;
  const known = options.base !== true && blamed.get(key) === seen.status;
  t.check(
    "status",
    seen.status === wanted || known || (options.allowed?.includes(seen.status) ?? false),
    detail,
  );
  // A wrong refusal is blamed once, by the base rule; a wrong acceptance is a fault of each form.
  if (options.base === true && seen.status !== wanted && !accepted(seen.status)) blamed.set(key, seen.status);
}

export function describe(seen: Seen): string {
  return `${seen.status}${seen.tag === undefined ? ", no ETag" : `, ETag ${seen.tag}`}`;
}

function foreign(now: Snapshot, before: Snapshot, sent: Partial<Record<string, unknown>>): boolean {
  const changed = (["name", "email"] as const).filter((field) => now.fields[field] !== before.fields[field]);
  return changed.length > 0 && changed.every((field) => now.fields[field] !== sent[field]);
}

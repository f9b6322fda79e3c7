/**
 * The shape that most rules on preconditions have: a positive twin that must succeed, then probes that differ
 * from it in If-Match alone and must be refused without any effect.
 */

import type { Seen } from "../http/wire.ts";
import type { Customer } from "../run/ground.ts";
import type { PatchForm } from "../target/patch-form.ts";
import { note } from "./evidence.ts";
import { CouldNotRun, Inconclusive, NotApplicable } from "./outcome-signal.ts";
import { type Form, visible } from "./tag-forms.ts";
import { accepted, difference, type Method, type Snapshot, shows, type Trial } from "./trial.ts";

export type Lines = readonly (readonly [string, string])[];

/** One way to be refused. */
export type Probe = {
  /** In words, to follow "PUT with". */
  readonly what: string;
  readonly lines: Lines;
  readonly query?: string;
  /** Further members of a JSON body. */
  readonly members?: Readonly<Record<string, unknown>>;
  /** Other statuses that the specification may be read to allow here. */
  readonly allowed?: readonly number[];
  /** The body holds the values that are stored already, so that only the tag can tell whether it was applied. */
  readonly storedValues?: boolean;
};

/** Derives a probe from the current and the former tag; undefined where they have no such form. */
export type Bad = (tag: string, former: string) => Probe | undefined;

/** A probe that is one If-Match line. */
export function bad(what: string, value: (tag: string, former: string) => string | undefined): Bad {
  return (tag, former) => {
    const text = value(tag, former);
    return text === undefined ? undefined : { what, lines: header(text) };
  };
}

export type Kind = "stale" | "missing";
const STATUS = { stale: 412, missing: 428 } as const satisfies Record<Kind, number>;

export const header = (value: string): Lines => [["If-Match", value]];

/** One probe for each form that a function finds for the tag at hand. */
export function formsOf(forms: (tag: string) => readonly Form[], count: number): Bad[] {
  return Array.from({ length: count }, (_, index) => (tag) => {
    const form = forms(tag)[index];
    return form === undefined ? undefined : { what: form.what, lines: header(form.value) };
  });
}

type RefusalOptions = {
  /** Base rules say which status the deployment gives this refusal; the special forms then do not blame it again. */
  readonly base?: boolean;
  /** Other statuses that the specification may be read to allow here. */
  readonly allowed?: readonly number[];
  /** In place of the main customer. */
  readonly customer?: Customer;
};

/** Probes of PUT or PATCH, of PATCH in every form that it takes. @throws NotApplicable when the tag has none of the forms. */
export async function refusedWrites(
  t: Trial,
  method: "PUT" | "PATCH",
  kind: Kind,
  bads: readonly Bad[],
  options: RefusalOptions = {},
): Promise<void> {
  const customer = options.customer ?? t.kit.main;
  const others = method === "PATCH" ? await otherForms(t, customer, options) : [];
  const twin = await t.twin(method, customer);
  let now: Snapshot = twin;
  let tried = 0;
  for (const [derive, patchForm] of [undefined, ...others].flatMap((form) =>
    bads.map((each) => [each, form] as const),
  )) {
    const probe = inForm(derive(now.tag, twin.former), patchForm);
    if (probe === undefined || isCurrent(probe.lines, now.tag)) continue;
    tried += 1;
    const values = valuesOf(t, method, probe, now);
    const evidence = begin(t, method, kind, probe);
    const before = now;
    const seen = await t.write(method, customer, {
      ifMatch: probe.lines,
      values,
      purpose: "probe",
      query: probe.query ?? "",
      members: probe.members,
      patchForm,
    });
    now = await t.state(customer);
    judge(t, method, kind, probe, seen, options);
    const still = t.same(before, now);
    whoseChange(t, before, now, values);
    t.check(
      "unchanged",
      still,
      () => `${method} with ${probe.what} was applied all the same: ${difference(before, now)}`,
    );
    note(evidence, seen, {
      before: before.seen,
      after: now.seen,
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

/** A short run leaves the special forms of If-Match to one form of PATCH. */
async function otherForms(
  t: Trial,
  customer: Customer,
  options: RefusalOptions,
): Promise<readonly PatchForm[]> {
  if (t.quick && options.base !== true) return [];
  return await t.kit.deployment.otherPatchForms(customer, async () => (await t.state(customer)).tag);
}

function inForm(probe: Probe | undefined, form: PatchForm | undefined): Probe | undefined {
  if (probe === undefined || form === undefined) return probe;
  return { ...probe, what: `${probe.what} as ${form.mediaType}` };
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
  for (const derive of bads) {
    const probe = derive(now.tag, former);
    if (probe === undefined || isCurrent(probe.lines, now.tag)) continue;
    tried += 1;
    const evidence = begin(t, "DELETE", kind, probe);
    const before = now;
    const seen = await t.write("DELETE", customer, {
      ifMatch: probe.lines,
      purpose: "probe",
      query: probe.query ?? "",
    });
    const after = await t.get(customer, { query: t.kit.deployment.stateQuery, purpose: "read back" });
    judge(t, "DELETE", kind, probe, seen, options);
    const there = after.status === 200 && after.tag !== undefined;
    if (there) now = await t.state(customer);
    if (there) whoseChange(t, before, now, {});
    else t.decisive = true;
    const still = there && t.same(before, now);
    t.check("unchanged", still, () =>
      there
        ? `DELETE with ${probe.what} was applied all the same: ${difference(before, now)}`
        : `DELETE with ${probe.what} was applied all the same: a read then answers ${after.status}`,
    );
    note(evidence, seen, { before: before.seen, after, unchanged: still });
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
  const now = await t.state(customer);
  if (put.tag !== undefined && now.tag === first.tag && put.tag !== first.tag)
    throw new CouldNotRun("a read shows the state before an accepted PUT; see ENV-04");
  return { customer, former: first.tag, now };
}

function nothingTried(tried: number, tag: string, former: string): void {
  if (tried > 0) return;
  if (tag === former)
    throw new CouldNotRun(
      "the tag did not change on an accepted write, so there is no stale one; see ETG-08",
    );
  throw new NotApplicable(`the token ${tag} has no such form`);
}

function begin(t: Trial, method: Method, kind: Kind, { what, lines }: Probe) {
  const odd = lines.map(([name, value]) => `${name}: ${visible(value)}`).join(" ⏎ ");
  return t.probe(
    `${method} with ${what}`,
    `${STATUS[kind]}, and nothing changed`,
    lines.length === 0 ? null : odd,
  );
}

/** A mangled tag may be the tag itself, where the deployment's tags are mangled from the start. */
function isCurrent(lines: Lines, tag: string): boolean {
  return lines.length === 1 && lines[0]?.[0] === "If-Match" && lines[0][1].trim() === tag;
}

function valuesOf(t: Trial, method: "PUT" | "PATCH", { storedValues }: Probe, now: Snapshot) {
  const { name, email } =
    storedValues === true
      ? { name: String(now.fields.name), email: String(now.fields.email) }
      : t.kit.values.next();
  return method === "PUT" ? { name, email } : { name };
}

function judge(
  t: Trial,
  method: Method,
  kind: Kind,
  probe: Probe,
  seen: Seen,
  options: RefusalOptions,
): void {
  const wanted = STATUS[kind];
  const allowed = [...(options.allowed ?? []), ...(probe.allowed ?? [])].includes(seen.status);
  t.check(
    "status",
    seen.status === wanted || allowed || (options.base !== true && t.blamedBefore(method, kind, seen.status)),
    `${method} with ${probe.what} was answered ${seen.status}, not ${wanted}`,
  );
  // A wrong refusal is blamed once, by the base rule; a wrong acceptance is a fault of each form.
  if (options.base === true && seen.status !== wanted && !accepted(seen.status))
    t.kit.blamed.set(`${method} ${kind}`, { status: seen.status, by: t.rule.id });
}

/**
 * A change that this probe did not bring about: an earlier write of ours that reads show late, or somebody else's.
 * @throws CouldNotRun or Inconclusive then.
 */
function whoseChange(
  t: Trial,
  before: Snapshot,
  now: Snapshot,
  sent: Partial<Record<string, unknown>>,
): void {
  const changed = (["name", "email"] as const).filter((field) => now.fields[field] !== before.fields[field]);
  if (changed.length === 0) return;
  if (changed.some((field) => shows(now.fields[field], String(sent[field])))) {
    t.decisive = true;
    return;
  }
  if (changed.every((field) => t.kit.values.made(now.fields[field])))
    throw new CouldNotRun(
      "reads show earlier accepted writes late, so what a refusal changed is not to be told; see ENV-04",
    );
  if (changed.every((field) => typeof now.fields[field] === "string" && now.fields[field] !== ""))
    throw new Inconclusive("somebody else wrote this customer meanwhile");
}

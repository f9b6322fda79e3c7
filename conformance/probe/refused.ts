/**
 * The shape of most rules on preconditions: a control request that must be accepted, then requests that differ from it
 * in one thing and must be refused without any effect.
 */
import type { Customer } from "../fixtures/ground.ts";
import { CouldNotRun, Inconclusive, NotApplicable, OTHERS_MAY_CAUSE } from "../http/outcome-signal.ts";
import { accepted, isGone } from "../http/status.ts";
import type { Connection } from "../http/transport.ts";
import type { Seen } from "../http/wire.ts";
import type { RuleId } from "../report/schema.ts";
import type { Maker } from "../target/journal.ts";
import type { PatchForm } from "../target/patch-form.ts";
import type { Values } from "../target/values.ts";
import type { Written } from "./answered.ts";
import { type Attempt, BASE } from "./attempt.ts";
import { type Allowed, type Derive, NEVER_GIVEN_TAG, type Refused } from "./if-match-forms.ts";
import type { Control } from "./proof.ts";
import { type Rule, rule } from "./rule.ts";
import { change, type Method, type Snapshot, sameFields, shows, storedValues, WRITABLE } from "./snapshot.ts";
import type { Lines } from "./trial.ts";
import { saysNothing } from "./weather.ts";

export type Kind = "stale" | "missing";
export const STATUS = { stale: 412, missing: 428 } as const satisfies Record<Kind, number>;

export const NEEDS = {
  PUT: ["write"],
  PATCH: ["write", "patch"],
  DELETE: ["write", "create", "delete"],
} as const satisfies Record<Method, Rule["needs"]>;

type RefusalOptions = {
  /** In place of the main customer. */
  readonly customer?: Customer;
  /** A customer that is not written before it is probed. */
  readonly untouched?: Customer;
  /** PATCH is tried in `all` forms of body that it takes, by default. */
  readonly bodies?: "all" | "one";
  /** In place of the accepted write that goes before. */
  readonly control?: Control;
  readonly at?: Prepared;
  /** Header lines that the accepted write before carries too. */
  readonly headers?: Lines | undefined;
};

type Refusal = Pick<Rule, "spec" | "hurts"> &
  Partial<Pick<Rule, "reading" | "level" | "needs">> & {
    readonly on: Method;
    readonly kind: Kind;
    readonly forms: readonly Derive[] | ((t: Attempt) => readonly Derive[] | Promise<readonly Derive[]>);
  };

/** A rule that is nothing but forms that must be refused. */
export function refusal(id: RuleId, title: string, { on, kind, forms, ...given }: Refusal): Rule {
  return rule(id, title, {
    needs: NEEDS[on],
    after: afterBase(id, on, kind),
    ...given,
    async check(t) {
      await refused(t, on, kind, typeof forms === "function" ? await forms(t) : forms);
    },
  });
}

export function afterBase(id: RuleId, method: Method, ...kinds: readonly Kind[]): RuleId[] {
  const base = BASE[method];
  // The rule on a stale tag comes first of all that look at a 412.
  const tag412 = kinds.includes("stale") && id !== base.stale ? [base.tag412] : [];
  return [base.current, ...kinds.map((kind) => base[kind]), ...tag412].filter((each) => each !== id);
}

/** What a probe of a refusal starts from. */
export type Prepared = {
  readonly customer: Customer;
  former: string;
  now: Snapshot;
  readonly control?: Control;
  /** Another of the same kind, in place of one that a probe has changed. */
  readonly again?: () => Promise<Prepared>;
};

/** DELETE is tried on customers made for it, and its control request comes last. */
export async function preparedFor(
  t: Attempt,
  method: Method,
  { customer, untouched, headers }: RefusalOptions = {},
): Promise<Prepared> {
  if (untouched !== undefined) {
    const now = await t.state(untouched, "read before");
    const again = async () => preparedFor(t, method, { untouched: await t.kit.ground.make() });
    return { customer: untouched, former: now.tag, now, again };
  }
  if (method === "DELETE") return await updatedCustomer(t, headers, customer?.maker);
  const to = customer ?? t.kit.main;
  const control = await t.control(method, { to, headers });
  return {
    customer: to,
    former: control.former,
    now: control,
    control: { differs: `If-Match was the current tag, ${control.former}`, seen: control.written.seen },
  };
}

/**
 * Many requests with a read after all of them in place of one after each. Where one is not simply refused, or that read
 * shows a change, they are sent again one by one.
 */
export async function refusedInARow(
  t: Attempt,
  method: Method,
  kind: Kind,
  forms: readonly Derive[],
  control: Control,
  at: Prepared,
): Promise<Prepared> {
  const suspects: Derive[] = [];
  for (const derive of forms) {
    const form = derive(at.now.tag, at.former, at.customer);
    if (form === undefined || isCurrent(form, at.now.tag)) continue;
    const { lines, what: _, allowed = [], optional, opening, first, ...shape } = form;
    if (opening === "an accepted write" || opening === "a conflict") {
      suspects.push(derive);
      continue;
    }
    const via = opening && (await connectionAfter(t, method, opening, at));
    const values = carriedValues(t, method, form, at);
    const ask = { ...shape, ...(via && { via }), ifMatch: lines, values, purpose: "probe" };
    await first?.(at.customer, at.now.tag);
    const { status, tag } = await t.sendWrite(method, at.customer, ask);
    via?.close();
    const notTaken = optional === undefined || t.notTaken.has(`${method} ${optional.way}`);
    const right = allowed === "any" || isRefusal(status, STATUS[kind], notTaken ? allowed : optional.allowed);
    // One that does not tell the tag of now is sent again too, with a look at that tag before and after.
    const untold = kind === "stale" && status === 412 && isOrdinary(form) && tag !== at.now.tag;
    if (untold || (!right && !t.blamedBefore(method, kind, status))) suspects.push(derive);
  }
  const from = t.failures.length;
  const query = t.kit.deployment.stateQuery;
  const seen = await t.get(at.customer, { query, purpose: "read back" });
  const after = t.snapshotIn(seen);
  const unchanged = after !== undefined && t.same(at.now, after);
  const { customer } = at;
  const then = unchanged ? at : await another(t, method, at, { customer });
  const end = await refused(t, method, kind, unchanged ? suspects : forms, {
    bodies: "one",
    control,
    at: then,
  });
  const blamed = () => t.blamedBefore(method, `${kind} moves the tag`, STATUS[kind]);
  const applied = !unchanged && t.failures.length === from && !blamed();
  t.proof(`${forms.length} of ${method} that must be refused, one after the other`, "nothing changed")
    .show(seen, { before: at.now.seen, after: seen, unchanged })
    .must("unchanged", !applied, "one of them was applied, and none when sent again", OTHERS_MAY_CAUSE);
  return end;
}

/** A customer that has had a former tag: written once with PUT. */
export async function updatedCustomer(t: Attempt, headers?: Lines, maker?: Maker): Promise<Prepared> {
  const customer = await t.kit.ground.make(maker);
  const control = await t.control("PUT", { to: customer, headers, purpose: "make the tag stale" });
  return { customer, former: control.former, now: control };
}

/** @throws NotApplicable when the tag has none of the forms. PATCH is tried in every form of body that it takes. */
export async function refused(
  t: Attempt,
  method: Method,
  kind: Kind,
  forms: readonly Derive[],
  options: RefusalOptions = {},
): Promise<Prepared> {
  const every = method === "PATCH" && options.bodies !== "one";
  // A short run tries further forms of PATCH in the base rules alone.
  const always = BASE.PATCH[kind] === t.rule.id;
  const bodies = [undefined, ...(every ? await t.otherPatchForms(options.customer, always) : [])];
  let at = options.at ?? (await preparedFor(t, method, options));
  const proofs: Written[] = [];
  // Where a read alone moves the tag, this one would spoil what comes next.
  const reads = !t.kit.doubts.has("tag changes by itself");
  const status = reads && forms.length > 0 ? await statusOf(t, at.customer) : undefined;
  const { customer } = at;
  for (const patchForm of bodies) {
    for (const [index, derive] of forms.entries()) {
      const { opening } = derive(at.now.tag, at.former, at.customer) ?? {};
      const via = opening && (await connectionAfter(t, method, opening, at));
      const form = inBody(derive(at.now.tag, at.former, at.customer), patchForm);
      if (form === undefined || isCurrent(form, at.now.tag)) continue;
      const asked = { values: CHANGES[method][index % 3], ...form, ...(via && { via }) };
      const written = await probeRefusal(t, method, kind, asked, at, patchForm);
      via?.close();
      const control = options.control ?? at.control;
      if (control !== undefined) written.control(control);
      proofs.push(written);
      judgeRefusal(t, written, kind, form);
      const wrote = await judgeWay(t, written, kind, asked, at, patchForm);
      if (wrote || written.after === undefined)
        at = await another(t, method, at, { customer: at.customer, ...options });
      else at.now = written.after;
    }
  }
  if (proofs.length === 0 && options.bodies !== "one") nothingTried(at);
  if (status !== undefined && at.customer === customer)
    await mustKeepStatus(t, method, kind, forms, at, status);
  if (method !== "DELETE" || options.control !== undefined) return at;
  const control = await t.control("DELETE", { to: at.customer, before: at.now });
  for (const proof of proofs)
    proof.control({ differs: "If-Match is the current tag", seen: control.written.seen });
  return at;
}

export async function probeRefusal(
  t: Attempt,
  method: Method,
  kind: Kind,
  form: Refused,
  at: Prepared,
  patchForm?: PatchForm,
): Promise<Written> {
  const { lines, what, allowed = [], opening: _, values: __, first, ...shape } = form;
  const answers = typeof allowed === "string" ? [401, 403] : allowed;
  await first?.(at.customer, at.now.tag);
  return await t.write(method, {
    ...shape,
    to: at.customer,
    before: at.now,
    ifMatch: lines,
    values: carriedValues(t, method, form, at),
    patchForm,
    what,
    allowed: allowedText(kind, allowed),
    answers,
  });
}

/**
 * Another refusal than that of the precondition may say that a way of sending is not taken at all. It does not where the
 * same request with the current tag is accepted.
 *
 * @returns whether that request was accepted
 */
async function judgeWay(
  t: Attempt,
  written: Written,
  kind: Kind,
  form: Refused,
  at: Prepared,
  patchForm: PatchForm | undefined,
): Promise<boolean> {
  const { method, seen, unchanged } = written;
  const { optional, allowed = [], headers = [] } = form;
  if (optional === undefined || allowed === "any" || !unchanged || saysNothing(seen, "main")) return false;
  if (
    !isRefusal(seen.status, STATUS[kind], allowed) ||
    isRefusal(seen.status, STATUS[kind], optional.allowed)
  )
    return false;
  // The error's own body may not suit Accept, and another condition may fail by itself.
  const otherCondition = seen.status === 412 && headers.some(([name]) => /^if-/i.test(name));
  const key = `${method} ${optional.way}`;
  if (seen.status === 406 || otherCondition || t.notTaken.has(key)) return false;
  if (t.blamedBefore(method, kind, seen.status)) return false;
  const what = `the current tag, ${optional.way}`;
  const current = { ...form, what, lines: [["If-Match", at.now.tag]] as const };
  const control = await probeRefusal(t, method, kind, current, at, patchForm);
  if (!control.accepted) {
    if (!saysNothing(control.seen, "main")) t.notTaken.add(key);
    return false;
  }
  written.control({ differs: "If-Match is the current tag", seen: control.seen });
  const found = `${method} with ${form.what} was answered ${seen.status}, not ${STATUS[kind]}, although the same with the current tag is accepted`;
  written.must("status", false, found);
  return true;
}

/** The values that a probe carries; undefined: fresh ones. */
export function carriedValues(
  t: Attempt,
  method: Method,
  { values }: Pick<Refused, "values">,
  { now }: Pick<Prepared, "now">,
): Partial<Values> | undefined {
  if (values === undefined) return undefined;
  const stored = storedValues(now);
  const { name, email } = values(stored, t.kit.values.next());
  if (method !== "PATCH") return { name, email };
  if (email === stored.email) return { name };
  return name === stored.name ? { email } : { name, email };
}

const nameAlone: Refused["values"] = ({ email }, { name }) => ({ name, email });
const emailAlone: Refused["values"] = ({ name }, { email }) => ({ name, email });
const both: Refused["values"] = (_stored, fresh) => fresh;
/** What a write changes, in turn: a check may hang on which of them it is. */
const CHANGES: Record<Method, readonly Refused["values"][]> = {
  PUT: [both, nameAlone, emailAlone],
  PATCH: [nameAlone, emailAlone, both],
  DELETE: [],
};

type Status = { readonly seen: Seen; readonly value: unknown };

async function statusOf(t: Attempt, customer: Customer): Promise<Status> {
  const seen = await t.get(customer, { query: "?fields=status", purpose: "the status" });
  return { seen, value: t.fieldsOf(seen).status };
}

const differs = (a: Status, b: Status) => !Bun.deepEquals(a.value, b.value);

/** A job of the deployment may settle the status after a write, or change it at any time. */
const SETTLES_MS = 1000;

/**
 * No probe names the status, so a refused one leaves it. Where it is another one after a series of them, each is tried
 * again on customers whose status has settled; it must change on two of them.
 */
async function mustKeepStatus(
  t: Attempt,
  method: Method,
  kind: Kind,
  forms: readonly Derive[],
  { customer }: Prepared,
  before: Status,
): Promise<void> {
  const { doubts, ground, wire } = t.kit;
  if (before.value === undefined || doubts.has("status moves") || ground.cannotMake !== undefined) return;
  if (!differs(before, await statusOf(t, customer))) return;
  const key = `${method} ${kind} moves the status`;
  const blamed = t.kit.blamed.get(key);
  if (blamed !== undefined && blamed.by !== t.rule.id) return void t.maskedBy.add(blamed.by);
  // One that goes back by itself was no effect of these writes.
  await wire.rest(SETTLES_MS);
  if (!differs(before, await statusOf(t, customer))) return;
  const first = await statusMover(t, method, kind, forms);
  const second = first && (await statusMover(t, method, kind, [first.derive]));
  if (second === undefined) return void doubts.add("status moves");
  const { written, from, to } = second;
  const { status } = written.seen;
  if (Object.values<string>(BASE[method]).includes(t.rule.id))
    t.kit.blamed.set(key, { status, by: t.rule.id });
  written.show(written.seen, { before: from.seen, after: to.seen, unchanged: false });
  const found = `${written.evidence.probe} was answered ${status}, and the ${change("status", from.value, to.value)}`;
  written.must("unchanged", false, found);
}

/** The first of these forms on which the status of a customer made for it is another one right after the refusal. */
async function statusMover(t: Attempt, method: Method, kind: Kind, forms: readonly Derive[]) {
  const at = await updatedCustomer(t);
  await t.kit.wire.rest(SETTLES_MS);
  for (const derive of forms) {
    const form = derive(at.now.tag, at.former, at.customer);
    if (form === undefined || isCurrent(form, at.now.tag)) continue;
    const from = await statusOf(t, at.customer);
    const written = await probeRefusal(t, method, kind, form, at);
    const to = await statusOf(t, at.customer);
    if (differs(from, to)) return { derive, written, from, to };
    if (written.after !== undefined) at.now = written.after;
  }
  return undefined;
}

function allowedText(kind: Kind, allowed: Allowed): string {
  if (allowed === "any") return "any answer, as long as nothing changes";
  if (allowed === "refused") return `${STATUS[kind]} or another refusal, and nothing changed`;
  return `${[STATUS[kind], ...allowed].join(" or ")}, and nothing changed`;
}

/** A connection on which something went before. A write makes the former tag of `at` a new one. */
export async function connectionAfter(
  t: Attempt,
  method: Method,
  opening: NonNullable<Refused["opening"]>,
  at: Prepared,
): Promise<Connection> {
  const via = t.kit.wire.connect();
  if (opening === "an accepted write") {
    const control = await t.control(method === "PATCH" ? "PATCH" : "PUT", {
      to: at.customer,
      before: at.now,
      purpose: "accepted write on the connection",
      via,
    });
    at.former = control.former;
    at.now = control;
  } else if (opening === "a conflict") {
    const ask = { ifMatch: NEVER_GIVEN_TAG, purpose: "a conflict on the connection", via };
    await t.sendWrite(method === "PATCH" ? "PATCH" : "PUT", at.customer, ask);
    // What is applied all the same is a base rule's to blame.
    const now = await t.state(at.customer, "read after the conflict");
    if (now.tag !== at.now.tag) at.former = at.now.tag;
    at.now = now;
  } else {
    for (const nth of opening === "a read" ? ["first"] : ["first", "second"])
      await t.get(at.customer, { via, purpose: `${nth} request of the connection` });
  }
  return via;
}

/** In place of one that a probe has changed, or deleted. */
const another = (t: Attempt, method: Method, at: Prepared, options: RefusalOptions): Promise<Prepared> =>
  at.again?.() ?? preparedFor(t, method, options);

/** A wrong refusal is blamed once, by the base rule; a wrong acceptance is a fault of each form. */
export function judgeRefusal(
  t: Attempt,
  written: Written,
  kind: Kind,
  form: Pick<Refused, "what" | "allowed" | "url" | "sentAs">,
): void {
  const { method, seen } = written;
  const wanted = STATUS[kind];
  const { what, allowed = [] } = form;
  const right = allowed === "any" || isRefusal(seen.status, wanted, allowed);
  if (allowed !== "any")
    written.must(
      "status",
      right || t.blamedBefore(method, kind, seen.status),
      `${method} with ${what} was answered ${seen.status}, ${allowed === "refused" ? "not refused" : `not ${[wanted, ...allowed].join(" or ")}`}`,
    );
  if (BASE[method][kind] === t.rule.id && !right && !accepted(seen.status))
    t.kit.blamed.set(`${method} ${kind}`, { status: seen.status, by: t.rule.id });
  whoseChange(t, written);
  const unchanged = mustNotChange(t, written, kind);
  if (unchanged && kind === "stale" && seen.status === 412 && isOrdinary(form)) mustTellTag(t, written, what);
}

/** What stands at another address, or is sent by another method, is another resource or none. */
const isOrdinary = ({ url, sentAs }: Pick<Refused, "url" | "sentAs">) =>
  url === undefined && sentAs === undefined;

/** A refusal that changes the tag and nothing else is blamed once, by the base rule. */
function mustNotChange(t: Attempt, written: Written, kind: Kind): boolean {
  const { method, before, after, seen } = written;
  const movesTag = after !== undefined && before.tag !== after.tag && sameFields(before, after);
  if (movesTag && t.blamedBefore(method, `${kind} moves the tag`, seen.status)) return false;
  const unchanged = written.mustNotChange();
  if (movesTag && !unchanged && BASE[method][kind] === t.rule.id)
    t.kit.blamed.set(`${method} ${kind} moves the tag`, { status: seen.status, by: t.rule.id });
  return unchanged;
}

function isRefusal(status: number, wanted: number, allowed: Allowed): boolean {
  if (status === wanted) return true;
  return typeof allowed === "string"
    ? status >= 300 && (status < 500 || status === 501 || status === 505)
    : allowed.includes(status);
}

/** Every 412 carries the tag of now; one that never does is blamed once, by the rule on it. */
function mustTellTag(t: Attempt, written: Written, what: string): void {
  const { method, seen, before } = written;
  const { doubts } = t.kit;
  if (
    t.rule.id === BASE[method].stale ||
    doubts.has(`tag of 412 on ${method}`) ||
    doubts.has("tag changes by itself")
  )
    return;
  const carries = seen.tag === undefined ? "no ETag" : `the ETag ${seen.tag}`;
  const found = `the 412 to ${method} with ${what} carries ${carries}; the current tag is ${before.tag}`;
  written.must("etag", seen.tag === before.tag, found, OTHERS_MAY_CAUSE);
}

function inBody(form: Refused | undefined, body: PatchForm | undefined): Refused | undefined {
  if (form === undefined || body === undefined) return form;
  return { ...form, what: `${form.what} as ${body.mediaType}` };
}

function nothingTried({ now, former }: Prepared): never {
  if (now.tag === former)
    throw new CouldNotRun("the tag did not change on an accepted write, so there is no stale one", [
      "ETG-08",
    ]);
  throw new NotApplicable(`the token ${now.tag} has no such form`);
}

/** A mangled tag may be the tag itself, where the deployment's tags are mangled from the start. To another tenant it is no use. */
function isCurrent({ lines, caller }: Refused, tag: string): boolean {
  if (caller === "other-tenant") return false;
  return lines.length === 1 && lines[0]?.[0].toLowerCase() === "if-match" && lines[0][1].trim() === tag;
}

/**
 * A change that this probe did not bring about: an earlier write of ours that reads show late, or somebody else's.
 * @throws CouldNotRun or Inconclusive then.
 */
function whoseChange(t: Attempt, { before, after, values, afterSeen }: Written): void {
  if (after === undefined) {
    if (isGone(afterSeen.status)) t.decisive = true;
    else
      throw new CouldNotRun(
        `a read after the refused write answers ${afterSeen.status}, which tells nothing`,
      );
    return;
  }
  const changed = WRITABLE.filter((field) => after.fields[field] !== before.fields[field]);
  if (changed.length === 0) return;
  if (changed.some((field) => shows(after.fields[field], String(values[field])))) {
    t.decisive = true;
    return;
  }
  if (changed.every((field) => t.kit.values.made(after.fields[field])))
    throw new CouldNotRun(
      "reads lag behind writes, so we cannot tell whether the refused write changed anything",
      ["ENV-04"],
    );
  if (changed.every((field) => typeof after.fields[field] === "string" && after.fields[field] !== ""))
    throw new Inconclusive("somebody else wrote this customer meanwhile");
}

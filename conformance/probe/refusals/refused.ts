/**
 * The shape of most rules on preconditions: a control request that must be accepted, then requests that differ from it
 * in one thing and must be refused without any effect.
 */

import { CouldNotRun, NotApplicable, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import type { RuleId } from "../../report/schema.ts";
import type { PatchForm } from "../../target/patch-form.ts";
import type { Written } from "../answered.ts";
import { type Attempt, BASE } from "../attempt.ts";
import { connectionAfter, type Prepared, type PreparedOptions, preparedFor } from "../prepared.ts";
import type { Control } from "../proof.ts";
import type { Derive, Refused } from "../requests/if-match-forms.ts";
import { type Rule, rule } from "../rule.ts";
import type { Method } from "../snapshot.ts";
import { saysNothing } from "../weather.ts";
import { mustKeepStatus, statusOf } from "./kept-status.ts";
import { carriedValues, isCurrent, type Kind, probeRefusal, STATUS } from "./refusal-probe.ts";
import { isOrdinary, isRefusal, judgeRefusal } from "./refusal-verdict.ts";

export const NEEDS = {
  PUT: ["write"],
  PATCH: ["write", "patch"],
  DELETE: ["write", "create", "delete"],
} as const satisfies Record<Method, Rule["needs"]>;

type RefusalOptions = PreparedOptions & {
  /** PATCH is tried in `all` forms of body that it takes, by default. */
  readonly bodies?: "all" | "one";
  /** In place of the accepted write that goes before. */
  readonly control?: Control;
  readonly at?: Prepared;
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

const MOVES_THE_TAG: ReadonlySet<NonNullable<Refused["opening"]>> = new Set([
  "a read of the former tag",
  "an accepted write",
  "a conflict",
]);

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
    if (opening !== undefined && MOVES_THE_TAG.has(opening)) {
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

const REPEATS = 3;

/**
 * Another refusal than that of the precondition may say that a way of sending is not taken at all. It does not where the
 * same request with the current tag is accepted.
 *
 * @returns whether a write may have been applied, so that the next one needs another state
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
  const { optional, allowed = [], headers = [], caller = "main" } = form;
  if (optional === undefined || allowed === "any" || !unchanged || saysNothing(seen, caller)) return false;
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
  // To a caller whose rights are open 401 and 403 say something, and they may be the environment's, which come and go.
  const isOther = caller !== "main";
  for (let again = 0; isOther && again < REPEATS; again += 1) {
    const repeated = await probeRefusal(t, method, kind, form, at, patchForm);
    if (!repeated.unchanged) return true;
    if (repeated.seen.status !== seen.status) return false;
  }
  const what = `the current tag, ${optional.way}`;
  const current = { ...form, what, lines: [["If-Match", at.now.tag]] as const };
  const control = await probeRefusal(t, method, kind, current, at, patchForm);
  if (!control.accepted) {
    if (!saysNothing(control.seen, caller)) t.notTaken.add(key);
    return false;
  }
  if (isOther) {
    const next = await another(t, method, at, { customer: at.customer });
    const repeated = await probeRefusal(t, method, kind, form, next, patchForm);
    if (repeated.seen.status !== seen.status) return true;
  }
  written.control({ differs: "If-Match is the current tag", seen: control.seen });
  const found = `${method} with ${form.what} was answered ${seen.status}, not ${STATUS[kind]}, although the same with the current tag is accepted`;
  written.must("status", false, found);
  return true;
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

/** In place of one that a probe has changed, or deleted. */
const another = (t: Attempt, method: Method, at: Prepared, options: PreparedOptions): Promise<Prepared> =>
  at.again?.() ?? preparedFor(t, method, options);

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

/**
 * Ways of sending a write that a check may have been forgotten on, each tried without If-Match, with a blank one and
 * with a stale tag. One dimension at a time: everything else is an ordinary request, which is the control request.
 */

import { CouldNotRun } from "../../http/outcome-signal.ts";
import { accepted } from "../../http/status.ts";
import type { RuleId } from "../../report/schema.ts";
import { type Attempt, BASE } from "../attempt.ts";
import { BY_MAKER, MAKERS, ownCustomer } from "../callers/own-customers.ts";
import { type Prepared, preparedFor } from "../prepared.ts";
import type { Control } from "../proof.ts";
import {
  BLANK,
  type Derive,
  EMPTY,
  firstOfEach,
  INEXACT,
  ifMatch,
  NEVER_GIVEN,
  NEVER_GIVEN_TAG,
  NONE,
  type Refused,
  STALE,
  worded,
} from "../requests/if-match-forms.ts";
import {
  type AddressedRow,
  addresses,
  HOP_BY_HOP,
  headerRows,
  LIMITED,
  ROW_OF_LIMITED,
  type Row,
  rowsOf,
  shaped,
  withStatus,
} from "../requests/request-shapes.ts";
import { METHODS, type Method } from "../snapshot.ts";
import type { Lines } from "../trial.ts";
import { saysNothing } from "../weather.ts";
import { type Kind, ordinary, probeRefusal, STATUS } from "./refusal-probe.ts";
import { judgeRefusal } from "./refusal-verdict.ts";
import { refused, refusedInARow } from "./refused.ts";

type Form = readonly [kind: Kind, base: "missing" | "blank" | "stale", derive: Derive];

const FORMS: readonly Form[] = [
  ["missing", "missing", NONE],
  ["missing", "blank", BLANK],
  ["stale", "stale", STALE],
];

const { star, weak, unquoted, list } = INEXACT;

/** A customer that was never updated has no former tag; these are wrong for it too. */
const NEVER_UPDATED = {
  missing: [NONE, ...EMPTY],
  stale: [NEVER_GIVEN, ...firstOfEach(star, weak, unquoted, list)],
} as const satisfies Record<Kind, readonly Derive[]>;

/** Forms that hold the current tag, or none at all. Each way of sending meets two of them or more with each method. */
const WRONG: readonly Derive[] = [
  ...firstOfEach(star, weak, list, unquoted),
  (_, former) => ({ what: "the previous tag weakened", lines: ifMatch(`W/${former}`) }),
  NEVER_GIVEN,
];
const WRONG_EACH = 2;

const CAPITALS = "the id in capitals";

/** Every shape with every kind of If-Match that must be refused. */
export async function shapes(t: Attempt, method: Method): Promise<void> {
  const usedKey: Lines = [["Idempotency-Key", crypto.randomUUID()]];
  // What stands at another spelling is open; that this customer is left alone is not.
  const addressed = addresses(t.kit.main).map(
    ({ url }, path): AddressedRow => [
      url === t.kit.main.url.replace(t.kit.main.id, t.kit.main.id.toUpperCase()) ? CAPITALS : `path ${path}`,
      { allowed: "any" },
      path,
    ],
  );
  const all = [...(await rowsOf(t, method, usedKey)), ...withStatus(t, method), ...addressed];
  const hidden: RuleId[] = [];
  let at = await preparedFor(t, method, { headers: usedKey });
  for (const [index, [kind, base, derive]] of FORMS.entries()) {
    const control = await ordinary(t, method, kind, derive, at);
    if (control === undefined) {
      hidden.push(BASE[method][base]);
      at = await preparedFor(t, method);
      continue;
    }
    at = await withHeaders(t, method, kind, derive, control, at);
    const now = t.leavesOut("each way of sending with one of missing, blank and stale, in place of all three")
      ? all.filter((row) => row[0] === LIMITED || formOf(t, row) === index)
      : all;
    const derived = now.map((row): Derive => shaped(derive, row));
    at = await refused(t, method, kind, derived, { bodies: "one", control, at });
    if (base !== "stale" || t.leavesOut("ways of sending with *, weak, listed and unquoted tags")) continue;
    const turn = METHODS.indexOf(method) * WRONG_EACH;
    const wrong = all.flatMap((row, place) =>
      WRONG.filter((_, nth) => isOftenForgotten(row) || (nth + place + turn) % WRONG.length < WRONG_EACH).map(
        (form) => shaped(form, row),
      ),
    );
    at = await refusedInARow(t, method, kind, wrong, control, at);
  }
  at = await onOneConnection(t, method, at);
  if (t.kit.ground.cannotMake === undefined) {
    await neverUpdated(t, method);
    await neverRead(t, method);
  }
  if (hidden.length === 0 && !t.leavesOut("customers that another caller has made"))
    for (const maker of MAKERS) await ofMaker(t, method, maker);
  await overridden(t, method, at);
  if (hidden.length > 0) throw new CouldNotRun("the ordinary request is not refused as it should be", hidden);
}

/** The form that a short run tries a way with. Another spelling of the header says nothing where none is sent. */
function formOf(t: Attempt, [what, way]: AddressedRow): number {
  const spelled = typeof way === "object" && way.spelled !== undefined;
  // By its own words, so that a way added beside it moves no other.
  return spelled ? FORMS.length - 1 : Bun.hash.crc32(`${t.rule.id} ${what}`) % FORMS.length;
}

/** Ways that another piece of code looks at in most servers: they meet each of the wrong forms. */
function isOftenForgotten([what, way]: AddressedRow): boolean {
  if (typeof way === "function") return false;
  return (
    [way.opening, way.framing, way.caller, way.values].some((each) => each !== undefined) || what === CAPITALS
  );
}

/** All headers in one request, or one by one where that is not simply refused; then HOP_BY_HOP. */
async function withHeaders(
  t: Attempt,
  method: Method,
  kind: Kind,
  derive: Derive,
  control: Control,
  from: Prepared,
): Promise<Prepared> {
  const at = await atOnce(t, method, kind, derive, control, from);
  return await refused(t, method, kind, [shaped(derive, HOP_BY_HOP)], { bodies: "one", control, at });
}

async function atOnce(
  t: Attempt,
  method: Method,
  kind: Kind,
  derive: Derive,
  control: Control,
  at: Prepared,
): Promise<Prepared> {
  const rows = headerRows(t, method);
  const form = derive(at.now.tag, at.former, at.customer);
  if (form === undefined) return at;
  const derived = rows.map((row) => shaped(derive, row));
  const headers = derived.flatMap((each) => each(at.now.tag, at.former, at.customer)?.headers ?? []);
  const what = `${form.what}, with ${headers.map(([name]) => name).join(", ")}`;
  const joint: Refused = { ...form, headers, what, allowed: "refused" };
  const written = await probeRefusal(t, method, kind, joint, at);
  written.control(control);
  if (written.seen.status === STATUS[kind] && written.unchanged) {
    judgeRefusal(t, written, kind, joint);
    return at;
  }
  const from = t.failures.length;
  const then = await refused(t, method, kind, derived, { bodies: "one", control });
  // One header says more than all of them.
  if (t.failures.length === from) judgeRefusal(t, written, kind, joint);
  return then;
}

/** A check may hang on the age of a connection, or on what went before on it. */
const KEPT = 12;

/** Refusals one after the other on a connection that is kept, one of them in the midst with Expect: 100-continue. */
async function onOneConnection(t: Attempt, method: Method, from: Prepared): Promise<Prepared> {
  let at = from;
  const short = t.leavesOut("stale tags on a connection that is kept");
  for (const [kind, , derive] of FORMS.filter(
    ([, base]) => base === "missing" || (base === "stale" && !short),
  )) {
    const control = await ordinary(t, method, kind, derive, at);
    // What is not refused the ordinary way is a base rule's to blame.
    if (control === undefined) {
      at = await preparedFor(t, method);
      continue;
    }
    const via = t.kit.wire.connect();
    const requests = Array.from({ length: KEPT }, (_, index): Derive => {
      const continues = index === KEPT - 2;
      const expect: Row = [
        "with Expect: 100-continue",
        { headers: [["Expect", "100-continue"]], allowed: [417] },
      ];
      const row: Row = [`request ${index + 1} of a connection, after others like it`, {}];
      const form = shaped(derive, continues ? expect : row);
      return (...now) => {
        const request = form(...now);
        return request && { ...request, via };
      };
    });
    at = await refusedInARow(t, method, kind, requests, control, at);
    via.close();
  }
  return at;
}

async function neverUpdated(t: Attempt, method: Method): Promise<void> {
  const limited = t.kit.profile.limited !== undefined;
  const byLimited: Row = [`${LIMITED} to a customer that was never updated`, ROW_OF_LIMITED];
  for (const kind of ["missing", "stale"] as const) {
    const forms = NEVER_UPDATED[kind].map((derive) => worded(derive, "to a customer that was never updated"));
    const theirs = limited ? NEVER_UPDATED[kind].slice(0, 1).map((derive) => shaped(derive, byLimited)) : [];
    const untouched = await t.kit.ground.make();
    await refused(t, method, kind, [...theirs, ...forms], { bodies: "one", untouched });
  }
}

/** A policy may exempt the owner of a customer, or a tenant. Whether this caller may use the method is open. */
async function ofMaker(t: Attempt, method: Method, maker: (typeof MAKERS)[number]): Promise<void> {
  let at = await ownCustomer(t, maker);
  const row: Row = [BY_MAKER[maker], { allowed: "refused" }];
  for (const [kind, base, derive] of FORMS)
    if (at?.control !== undefined && base !== "blank")
      at = await refusedInARow(t, method, kind, [shaped(derive, row)], at.control, at);
}

/** What only reads fill has not seen the customer, or not its last version. */
async function neverRead(t: Attempt, method: Method): Promise<void> {
  if (t.leavesOut("wrong writes to customers that nobody has read")) return;
  for (const kind of ["missing", "stale"] as const) {
    const to = await t.kit.ground.make();
    const refused = async (value: string, when: string) => {
      const [tag, lines] = kind === "missing" ? ["no If-Match", []] : [`the tag ${value}`, ifMatch(value)];
      const what = `with ${tag} ${when}`;
      const probe = await t.writeOnly(method, to, { ifMatch: lines, what, allowed: `${STATUS[kind]}` });
      const { status } = probe.seen;
      if (saysNothing(probe.seen, "main")) return false;
      const right = status === STATUS[kind] || t.blamedBefore(method, kind, status);
      const found = `${probe.evidence.probe} was answered ${status}, not ${STATUS[kind]}`;
      return probe.must("status", right, found) && !probe.accepted;
    };
    if (!(await refused(NEVER_GIVEN_TAG, "to a customer that nobody has read"))) continue;
    const { tag } = await t.state(to, "read before");
    const write = await t.sendWrite("PUT", to, { ifMatch: tag, purpose: "an accepted write" });
    if (accepted(write.status) && write.tag !== tag)
      await refused(tag, "right after an accepted write, with no read in between");
  }
}

/**
 * POST, GET, HEAD or PUT that a header or a parameter turns into the method. What POST does here is open, so only a change
 * counts that an ordinary one does not bring about.
 */
async function overridden(t: Attempt, method: Method, from: Prepared): Promise<void> {
  const headers = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"].map(
    (name) => [name, method] as const,
  );
  const named = headers.map(([name]) => name).join(", ");
  let at = from;
  for (const [kind, , derive] of FORMS)
    for (const [sentAs, what, shape] of [
      ["POST", named, { headers }],
      ["POST", "?_method", { query: `?_method=${method}` }],
      ["GET", named, { headers }],
      ["GET", "?_method", { query: `?_method=${method}` }],
      ["HEAD", named, { headers }],
      ["PUT", named, { headers }],
    ] as const) {
      if (sentAs === method) continue;
      const form = derive(at.now.tag, at.former, at.customer);
      if (form === undefined) continue;
      const how = `as ${sentAs} with ${what}: ${method}`;
      const post: Refused = { ...form, sentAs, allowed: "any", what: `${form.what}, ${how}` };
      const written = await probeRefusal(t, method, kind, { ...post, ...shape }, at);
      let toBlame = true;
      if (!written.unchanged) {
        at = await preparedFor(t, method);
        toBlame = (await probeRefusal(t, method, kind, post, at)).unchanged;
        at = await preparedFor(t, method);
      }
      if (toBlame) judgeRefusal(t, written, kind, post);
    }
}

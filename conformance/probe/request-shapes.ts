/**
 * Ways of sending a write that a check may have been forgotten on, each tried without If-Match, with a blank one and
 * with a stale tag. One dimension at a time: everything else is an ordinary request, which is the control request.
 */
import type { Customer } from "../fixtures/ground.ts";
import { CouldNotRun } from "../http/outcome-signal.ts";
import { accepted } from "../http/status.ts";
import type { RuleId } from "../report/schema.ts";
import { type Attempt, BASE } from "./attempt.ts";
import {
  type Allowed,
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
  STAND_IN_HEADERS,
  worded,
} from "./if-match-forms.ts";
import { otherPaths, pathEnd } from "./other-paths.ts";
import { BY_MAKER, MAKERS, ownCustomer } from "./own-customers.ts";
import { type Prepared, preparedFor } from "./prepared.ts";
import type { Control } from "./proof.ts";
import { type Kind, probeRefusal, STATUS } from "./refusal-probe.ts";
import { judgeRefusal } from "./refusal-verdict.ts";
import { refused, refusedInARow } from "./refused.ts";
import { METHODS, type Method } from "./snapshot.ts";
import type { Lines } from "./trial.ts";
import { CLAIMS, FROM_BROWSERS, fromProxies, gentleLines } from "./usual-headers.ts";
import { saysNothing } from "./weather.ts";

type Way = Omit<Refused, "what" | "lines"> & {
  /** How the name of If-Match is spelled. */
  readonly spelled?: string;
};
/** In words that follow "PUT with no If-Match, …", and how it differs from an ordinary request. */
export type Row = readonly [what: string, shape: Way | ((tag: string) => Way)];
/** `address`: the place of its address in the list of those of the customer. */
export type AddressedRow = readonly [...Row, address?: number];

/** By itself: a proxy that honours it passes no If-Match on, which would hide what the other headers do. */
const HOP_BY_HOP: Row = [
  "with Connection: If-Match",
  { headers: [["Connection", "If-Match"]], allowed: "refused" },
];

/** What a server might take for permission. No service needs to know them, so all are sent at once first. */
function headerRows(t: Attempt, method: Method): Row[] {
  const { origin } = new URL(t.kit.main.url);
  const later = new Date(Date.now() + 3_600_000).toUTCString();
  const lines: readonly (readonly [string, string])[] = [
    ["Idempotency-Key", crypto.randomUUID()],
    ["Cookie", "etag=TAG"],
    ["If", "([TAG])"],
    ["If-Unmodified-Since", later],
    ["If-None-Match", '"kit-other"'],
    ...STAND_IN_HEADERS.map((name) => [name, "TAG"] as const),
    ["X-Requested-With", "XMLHttpRequest"],
    ["Cache-Control", "no-cache"],
    ["Prefer", "handling=lenient"],
    ["Overwrite", "T"],
    ["X-Force", "true"],
    ["X-Skip-Precondition", "true"],
    ["X-Migration", "true"],
    ["X-Client-Version", "0"],
    ["X-HTTP-Method-Override", method],
    ["Origin", origin],
    ["Referer", origin],
    ["Sec-Fetch-Site", "same-origin"],
    ["Accept-Encoding", "gzip"],
    ["Range", "bytes=0-0"],
    ["If-Range", '"kit-other"'],
    ["Api-Version", "1"],
    ["X-API-Version", "1"],
    ...FROM_BROWSERS,
    ["Trailer", "X-Kit-Checksum"],
    ...fromProxies(new URL(t.kit.main.url)),
    ...CLAIMS,
  ];
  return gentleLines(t, lines).map(([name, value]) => [
    `with ${name}: ${value.replace("TAG", "the current tag")}`,
    (tag) => ({ headers: [[name, value.replace("TAG", () => tag)]], allowed: "refused" }),
  ]);
}

const PARAMETERS = ["if-match", "etag", "version"];
const MEMBERS = ["etag", "ETag", "_etag", "ifMatch", "rowVersion", "RowVersion", "version"];
const PERMITTING = "?force=true&overwrite=true&upsert=true&validate=false&skipPrecondition=true";

/**
 * Ways of sending a write, each other than the ordinary in one thing.
 * @param usedKey of an accepted write with other values
 */
export async function rowsOf(t: Attempt, method: Method, usedKey: Lines): Promise<Row[]> {
  const rows: Row[] = [
    ["as the second request of a connection", { opening: "a read" }],
    ["as the third request of a connection", { opening: "two reads" }],
    ["on the connection of an accepted write", { opening: "an accepted write" }],
    ["on the connection of a conflict", { opening: "a conflict" }],
    ["over HTTP/1.0", { framing: "http/1.0", allowed: "refused" }],
    ["the header spelled if-match", { spelled: "if-match" }],
    ["the header spelled IF-MATCH", { spelled: "IF-MATCH" }],
    ["with the whole URL in the request line", { framing: "absolute-form", allowed: "refused" }],
    ["with If-None-Match: *", { headers: [["If-None-Match", "*"]], allowed: [412] }],
    ["with Expect: 100-continue", { headers: [["Expect", "100-continue"]], via: "socket", allowed: [417] }],
    ["with another Origin", { headers: [["Origin", "https://other.example"]], allowed: [400, 403] }],
    ["with Accept: text/html", { headers: [["Accept", "text/html"]], allowed: [406] }],
    ["with the Idempotency-Key of an accepted write", { headers: usedKey, allowed: "refused" }],
    ["with an unknown parameter", { query: "?kit=1", allowed: [400, 404] }],
    ["with fields", { query: "?fields=name", allowed: [400, 404] }],
    [`with ${PERMITTING}`, { query: PERMITTING, allowed: [400, 404] }],
    [
      "the current tag in parameters",
      (tag) => ({
        query: `?${PARAMETERS.map((name) => `${name}=${encodeURIComponent(tag)}`).join("&")}`,
        allowed: [400, 404],
      }),
    ],
  ];
  if (t.kit.profile.limited !== undefined) rows.push([LIMITED, ROW_OF_LIMITED]);
  if (method === "DELETE")
    return [
      ...rows,
      ["with a body", { body: "{}", allowed: "refused" }],
      ["with a body in chunks", { body: "{}", framing: "chunked", allowed: "refused" }],
      ["with an empty body", { body: "", allowed: "refused" }],
    ];
  const json = method === "PUT" ? "application/json" : t.kit.deployment.patchBody({ name: "x" }).mediaType;
  rows.push(
    ["in chunks", { framing: "chunked", allowed: [411, 501] }],
    [`as ${json}; charset=utf-8`, { mediaType: `${json}; charset=utf-8`, allowed: [415] }],
    [`as ${json.toUpperCase()}`, { mediaType: json.toUpperCase(), allowed: [400, 415] }],
    ...["application/x-www-form-urlencoded", "text/plain", "application/vnd.kit.v1+json"].map(
      (mediaType): Row => [`as ${mediaType}`, { mediaType, allowed: [400, 415, 422] }],
    ),
    ["without a Content-Type", { mediaType: null, allowed: [400, 415] }],
    ["with Content-Encoding: identity", { headers: [["Content-Encoding", "identity"]], allowed: [400, 415] }],
    ["with a body of 20,000 bytes", { padBytes: 20_000, allowed: [400, 413] }],
    ["with a body of 70,000 bytes", { padBytes: 70_000, allowed: [400, 413] }],
    ["with a body of 140,000 bytes", { padBytes: 140_000, allowed: [400, 413] }],
    ["with the stored values", { values: (stored) => stored }],
    ["as a repetition on the connection", { opening: "an accepted write", values: (stored) => stored }],
    ["with a new email alone", { values: ({ name }, { email }) => ({ name, email }) }],
    ["with a new name alone", { values: ({ email }, { name }) => ({ name, email }) }],
    [
      "with a name beyond ASCII",
      { values: (_, { name, email }) => ({ name: `${name} \u00c5\u0416`, email }), allowed: [400, 422] },
    ],
    [
      "the current tag in the body",
      (tag) => ({
        members: Object.fromEntries(MEMBERS.map((member) => [member, tag])),
        allowed: [400, 422],
      }),
    ],
    ["with a further member", { members: { kit: "x" }, allowed: [400, 422] }],
  );
  if (method === "PATCH" && t.kit.deployment.patchesMembers) {
    const ofId = JSON.stringify({ [t.kit.deployment.bodyNames.id]: t.kit.main.id });
    rows.push(
      ["that names no field", { body: "{}", allowed: [400, 422] }],
      ["of the id alone", { body: ofId, allowed: [400, 422] }],
    );
    const ofStatus = await patchOfStatus(t);
    if (ofStatus !== undefined) rows.push([OF_STATUS, { body: ofStatus, allowed: "refused" }]);
  }
  return rows;
}

export const OF_STATUS = "of the status alone, as it is";

/**
 * The values of a status are not shown (2.1), so the one that is stored is sent.
 *
 * @returns undefined where no read shows it, and where a PATCH is no object of members
 */
export async function patchOfStatus(t: Attempt): Promise<string | undefined> {
  const { deployment } = t.kit;
  if (!deployment.patchesMembers) return undefined;
  const status = await t.status(t.kit.main);
  return status === undefined ? undefined : JSON.stringify({ [deployment.bodyNames.status]: status });
}

/** Of a customer that was not made by the kit it could not be given back. */
function withStatus({ kit }: Attempt, method: Method): Row[] {
  if (method === "DELETE" || !kit.main.made) return [];
  const members = { [kit.deployment.bodyNames.status]: "KitOther" };
  return [["with another status", { members, allowed: [400, 422] }]];
}

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
export const LIMITED = "by the limited caller";
export const ROW_OF_LIMITED: Way = { caller: "limited", allowed: "refused" };

/** Dots and a bare question mark leave as they stand over a socket alone, like every request here. */
function addresses(customer: Customer): Customer[] {
  const { url } = customer;
  const dotted = url.replace(/\/(?=[^/]*$)/, "/./");
  return [...otherPaths(customer), { ...customer, url: dotted }, { ...customer, url: `${url}?` }];
}

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

export function shaped(derive: Derive, [what, shape, address]: AddressedRow): Derive {
  return (tag, former, customer) => {
    const form = derive(tag, former, customer);
    const other = address === undefined ? undefined : addresses(customer)[address];
    if (form === undefined || (address !== undefined && other === undefined)) return undefined;
    const { spelled = "If-Match", ...way } = typeof shape === "function" ? shape(tag) : shape;
    return {
      ...form,
      ...way,
      lines: form.lines.map(([, value]) => [spelled, value]),
      allowed: widest(form.allowed, way.allowed),
      optional: { way: what, allowed: form.allowed ?? [] },
      ...(other && { url: other.url }),
      what: `${form.what}, ${other === undefined ? what : `at ${pathEnd(other)}`}`,
    };
  };
}

function widest(a: Allowed = [], b: Allowed = []): Allowed {
  if (typeof a !== "string" && typeof b !== "string") return [...a, ...b];
  return a === "any" || b === "any" ? "any" : "refused";
}

/** The control request: without anything special it is refused. @returns undefined where it is not: a base rule says so. */
export async function ordinary(
  t: Attempt,
  method: Method,
  kind: Kind,
  derive: Derive,
  at: Prepared,
): Promise<Control | undefined> {
  const form = derive(at.now.tag, at.former, at.customer);
  if (form === undefined) return undefined;
  const written = await probeRefusal(t, method, kind, form, at);
  const { seen, unchanged } = written;
  const right = seen.status === STATUS[kind] || t.blamedBefore(method, kind, seen.status);
  return right && unchanged ? { differs: "it is sent the ordinary way", seen, refused: true } : undefined;
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
 * POST, GET or HEAD that a header or a parameter turns into the method. What POST does here is open, so only a change
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
    ] as const) {
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

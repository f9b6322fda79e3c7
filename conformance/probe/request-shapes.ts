/**
 * Ways of sending a write that a check may have been forgotten on, each tried without If-Match, with a blank one and
 * with a stale tag. One dimension at a time: everything else is an ordinary request, which is the control request.
 */
import { CouldNotRun } from "../http/outcome-signal.ts";
import { type Attempt, BASE } from "./attempt.ts";
import { type Derive, ifMatch, type Refused } from "./if-match-forms.ts";
import { otherPaths, pathEnd } from "./other-paths.ts";
import type { Control } from "./proof.ts";
import { type Ground, groundFor, judgeRefusal, type Kind, probeRefusal, refused, STATUS } from "./refused.ts";
import type { RuleId } from "./rule-id.ts";
import type { Method } from "./snapshot.ts";

/** In words that follow "PUT with no If-Match, …", and how it differs from an ordinary request. */
type Row = readonly [what: string, shape: Omit<Refused, "what" | "lines" | "url">];

/** What a server might take for permission. No service needs to know them, so all are sent at once first. */
function headerRows(t: Attempt, method: Method): Row[] {
  const { origin } = new URL(t.kit.main.url);
  const lines: readonly (readonly [string, string])[] = [
    ["Idempotency-Key", crypto.randomUUID()],
    ["Cookie", "session=kit"],
    ["X-Requested-With", "XMLHttpRequest"],
    ["Cache-Control", "no-cache"],
    ["Prefer", "handling=lenient"],
    ["Overwrite", "T"],
    ["X-Force", "true"],
    ["X-Skip-Precondition", "true"],
    ["X-Internal", "true"],
    ["X-Migration", "true"],
    ["X-Client-Version", "0"],
    ["X-HTTP-Method-Override", method],
    ["X-Forwarded-For", "127.0.0.1"],
    ["X-Real-IP", "127.0.0.1"],
    ["Origin", origin],
    ["Referer", origin],
    ["Sec-Fetch-Site", "same-origin"],
    ["Accept-Encoding", "gzip"],
    ["Range", "bytes=0-0"],
    ["If-Range", '"kit-other"'],
  ];
  const gently = t.gentlyLeavesOut("headers that name another address of the client");
  const kept = lines.filter(([name]) => !(gently && /^X-(?:Forwarded|Real)/.test(name)));
  return kept.map((line) => [`with ${line.join(": ")}`, { headers: [line], allowed: "refused" }]);
}

const PERMITTING = "?force=true&overwrite=true&upsert=true&validate=false&skipPrecondition=true";

function rowsOf(t: Attempt, method: Method): Row[] {
  const { bodyNames } = t.kit.deployment;
  const rows: Row[] = [
    ["as the second request of a connection", { opening: "a read" }],
    ["on the connection of an accepted write", { opening: "an accepted write" }],
    ["over HTTP/1.0", { framing: "http/1.0", allowed: "refused" }],
    ["with Expect: 100-continue", { headers: [["Expect", "100-continue"]], via: "socket", allowed: [417] }],
    ["with another Origin", { headers: [["Origin", "https://other.example"]], allowed: [400, 403] }],
    ["with Accept: text/html", { headers: [["Accept", "text/html"]], allowed: [406] }],
    ["with an unknown parameter", { query: "?kit=1", allowed: [400, 404] }],
    ["with fields", { query: "?fields=name", allowed: [400, 404] }],
    [`with ${PERMITTING}`, { query: PERMITTING, allowed: [400, 404] }],
  ];
  if (t.kit.profile.limited !== undefined)
    rows.push(["by the limited caller", { caller: "limited", allowed: "refused" }]);
  if (method === "DELETE")
    return [
      ...rows,
      ["with a body", { body: "{}", allowed: "refused" }],
      ["with an empty body", { body: "", allowed: "refused" }],
    ];
  const json = method === "PUT" ? "application/json" : t.kit.deployment.patchBody({ name: "x" }).mediaType;
  rows.push(
    ["in chunks", { framing: "chunked", allowed: [411, 501] }],
    [`as ${json}; charset=utf-8`, { mediaType: `${json}; charset=utf-8`, allowed: [415] }],
    [`as ${json.toUpperCase()}`, { mediaType: json.toUpperCase(), allowed: [400, 415] }],
    ["without a Content-Type", { mediaType: null, allowed: [400, 415] }],
    ["with Content-Encoding: identity", { headers: [["Content-Encoding", "identity"]], allowed: [400, 415] }],
    ["with a body of 20,000 bytes", { padBytes: 20_000, allowed: [400, 413] }],
    ["with the stored values", { storedValues: true }],
    ["with a further member", { members: { kit: "x" }, allowed: [400, 422] }],
  );
  if (method === "PATCH" && !/json-patch/.test(json)) {
    const ofId = JSON.stringify({ [bodyNames.id]: t.kit.main.id });
    rows.push(
      ["that names no field", { body: "{}", allowed: [400, 422] }],
      ["of the id alone", { body: ofId, allowed: [400, 422] }],
    );
  }
  return rows;
}

type Form = readonly [kind: Kind, base: "missing" | "blank" | "stale", derive: Derive];

const FORMS: readonly Form[] = [
  ["missing", "missing", () => ({ what: "no If-Match", lines: [] })],
  ["missing", "blank", () => ({ what: "a blank If-Match", lines: ifMatch("  ") })],
  [
    "stale",
    "stale",
    (tag, former) => (tag === former ? undefined : { what: "a stale tag", lines: ifMatch(former) }),
  ],
];

/** A customer that was never updated has no former tag; these are wrong for it too. */
const NEVER_UPDATED: readonly (readonly [Kind, Derive])[] = [
  ["missing", () => ({ what: "no If-Match", lines: [] })],
  ["missing", () => ({ what: "an empty If-Match", lines: ifMatch("") })],
  ["stale", () => ({ what: "a tag never given", lines: ifMatch('"kit-never-given"') })],
  ["stale", () => ({ what: "If-Match *", lines: ifMatch("*") })],
  ["stale", (tag) => ({ what: "the current tag weakened", lines: ifMatch(`W/${tag}`) })],
];

/** Every shape with every kind of If-Match that must be refused. */
export async function shapes(t: Attempt, method: Method): Promise<void> {
  const rows = rowsOf(t, method);
  // What stands at another spelling is open; that this customer is left alone is not.
  const spelled = otherPaths(t.kit.main, false).map(
    (_, path): Row => [`at path ${path}`, { allowed: "any" }],
  );
  const all = [...rows, ...spelled];
  const hidden: RuleId[] = [];
  let at = await groundFor(t, method);
  for (const [index, [kind, base, derive]] of FORMS.entries()) {
    const control = await ordinary(t, method, kind, derive, at);
    if (control === undefined) {
      hidden.push(BASE[method][base]);
      at = await groundFor(t, method);
      continue;
    }
    at = await atOnce(t, method, kind, derive, control, at);
    const now = t.leavesOut("each way of sending with one of missing, blank and stale, in place of all three")
      ? all.filter(([, { caller }], place) => caller !== undefined || place % FORMS.length === index)
      : all;
    const derived = now.map((row): Derive => shaped(derive, row, spelled.indexOf(row)));
    at = await refused(t, method, kind, derived, { bodies: "one", control, at });
  }
  if (t.kit.ground.cannotMake === undefined) await neverUpdated(t, method);
  await overridden(t, method, at);
  if (hidden.length > 0) throw new CouldNotRun("the ordinary request is not refused as it should be", hidden);
}

function shaped(derive: Derive, [what, shape]: Row, path: number): Derive {
  return (tag, former, customer) => {
    const form = derive(tag, former, customer);
    if (form === undefined) return undefined;
    const other = path < 0 ? undefined : otherPaths(customer, false)[path];
    if (other === undefined)
      return path < 0 ? { ...form, ...shape, what: `${form.what}, ${what}` } : undefined;
    return { ...form, ...shape, url: other.url, what: `${form.what}, at ${pathEnd(other)}` };
  };
}

/** The control request: without anything special it is refused. @returns undefined where it is not: a base rule says so. */
async function ordinary(
  t: Attempt,
  method: Method,
  kind: Kind,
  derive: Derive,
  at: Ground,
): Promise<Control | undefined> {
  const form = derive(at.now.tag, at.former, at.customer);
  if (form === undefined) return undefined;
  const written = await probeRefusal(t, method, kind, form, at);
  const { seen, unchanged } = written;
  const right = seen.status === STATUS[kind] || t.blamedBefore(method, kind, seen.status);
  return right && unchanged ? { differs: "it is sent the ordinary way", seen, refused: true } : undefined;
}

/** All headers in one request; one by one where it is not simply refused. */
async function atOnce(
  t: Attempt,
  method: Method,
  kind: Kind,
  derive: Derive,
  control: Control,
  at: Ground,
): Promise<Ground> {
  const rows = headerRows(t, method);
  const headers = rows.flatMap(([, shape]) => shape.headers ?? []);
  const form = derive(at.now.tag, at.former, at.customer);
  if (form === undefined) return at;
  const what = `${form.what}, with ${headers.map(([name]) => name).join(", ")}`;
  const joint: Refused = { ...form, headers, what, allowed: "refused" };
  const written = await probeRefusal(t, method, kind, joint, at);
  written.control(control);
  if (written.seen.status === STATUS[kind] && written.unchanged) {
    judgeRefusal(t, written, kind, joint);
    return at;
  }
  const from = t.failures.length;
  const derived = rows.map((row) => shaped(derive, row, -1));
  const then = await refused(t, method, kind, derived, { bodies: "one", control });
  // One header says more than all of them.
  if (t.failures.length === from) judgeRefusal(t, written, kind, joint);
  return then;
}

async function neverUpdated(t: Attempt, method: Method): Promise<void> {
  for (const kind of ["missing", "stale"] as const) {
    const forms = NEVER_UPDATED.filter(([each]) => each === kind).map(
      ([, derive]): Derive =>
        (...at) => {
          const form = derive(...at);
          return form && { ...form, what: `${form.what}, to a customer that was never updated` };
        },
    );
    await refused(t, method, kind, forms, { bodies: "one", untouched: await t.kit.ground.make() });
  }
}

/**
 * POST that a header or a parameter turns into the method. What POST does here is open, so only a change counts that
 * an ordinary POST does not bring about.
 */
async function overridden(t: Attempt, method: Method, from: Ground): Promise<void> {
  const headers = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"].map(
    (name) => [name, method] as const,
  );
  const named = headers.map(([name]) => name).join(", ");
  let at = from;
  for (const [kind, , derive] of FORMS)
    for (const [what, shape] of [
      [`as POST with ${named}: ${method}`, { headers }],
      [`as POST with ?_method=${method}`, { query: `?_method=${method}` }],
    ] as const) {
      const form = derive(at.now.tag, at.former, at.customer);
      if (form === undefined) continue;
      const post: Refused = { ...form, sentAs: "POST", allowed: "any", what: `${form.what}, ${what}` };
      const written = await probeRefusal(t, method, kind, { ...post, ...shape }, at);
      let toBlame = true;
      if (!written.unchanged) {
        at = await groundFor(t, method);
        toBlame = (await probeRefusal(t, method, kind, post, at)).unchanged;
        at = await groundFor(t, method);
      }
      if (toBlame) judgeRefusal(t, written, kind, post);
    }
}

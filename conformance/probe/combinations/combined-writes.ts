/**
 * Writes that differ from the ordinary one in several things: who sends them, to which customer, how, with what, and what
 * came right before. Rules on a single difference stand before these.
 */
import { CouldNotRun } from "../../http/outcome-signal.ts";
import type { RuleId } from "../../report/schema.ts";
import type { Written } from "../answered.ts";
import { type Attempt, BASE } from "../attempt.ts";
import { BY_MAKER, MAKERS, ownCustomer } from "../callers/own-customers.ts";
import { connectionAfter, type Prepared, preparedFor } from "../prepared.ts";
import type { Control } from "../proof.ts";
import { eventsBefore, rightAfter } from "../races/just-before.ts";
import { carriedValues, type Kind, ordinary } from "../refusals/refusal-probe.ts";
import { refusedInARow } from "../refusals/refused.ts";
import {
  BLANK,
  CURRENT,
  type Derive,
  firstOfEach,
  INEXACT,
  NEVER_GIVEN,
  NONE,
  type Refused,
  STALE,
} from "../requests/if-match-forms.ts";
import { takenPlaces } from "../requests/other-paths.ts";
import { type AddressedRow, LIMITED, ROW_OF_LIMITED, type Row, shaped } from "../requests/request-shapes.ts";
import { FROM_BROWSERS, fromProxies, gentleLines } from "../requests/usual-headers.ts";
import { METHODS, type Method } from "../snapshot.ts";
import type { Lines } from "../trial.ts";
import { pairs, someOf } from "./pairs.ts";

const ORDINARY: Row = ["", {}];

type Form = readonly [kind: Kind, derive: Derive];

/** What a client sends that forgets the header, or has read too early. */
const COMMON_FORMS: readonly Form[] = [
  ["missing", NONE],
  ["stale", STALE],
];
const OTHER_FORMS: readonly Form[] = [
  ["missing", BLANK],
  ["stale", NEVER_GIVEN],
  ...firstOfEach(INEXACT.star, INEXACT.weak, INEXACT.list).map((derive) => ["stale", derive] as const),
];

const FRAMINGS: readonly Row[] = [
  ORDINARY,
  ["over HTTP/1.0", { framing: "http/1.0" }],
  ["with the whole URL in the request line", { framing: "absolute-form" }],
  ["as the second request of a connection", { opening: "a read" }],
  ["as the third request of a connection", { opening: "two reads" }],
  ["the header spelled if-match", { spelled: "if-match" }],
];
const CHUNKED: Row = ["in chunks", { framing: "chunked" }];

const withHeaders = (what: string, headers: Lines): Row => [`with ${what}`, { headers }];

const headerSets = (t: Attempt): readonly Row[] => [
  ORDINARY,
  withHeaders("headers of a browser", FROM_BROWSERS),
  withHeaders("headers of proxies", gentleLines(t, fromProxies(new URL(t.kit.main.url)))),
  withHeaders("Accept-Encoding: gzip", [["Accept-Encoding", "gzip"]]),
  withHeaders("Accept: text/html", [["Accept", "text/html"]]),
  withHeaders("Origin", [["Origin", new URL(t.kit.main.url).origin]]),
  ["with an Idempotency-Key", () => ({ headers: [["Idempotency-Key", crypto.randomUUID()]] })],
];

const CONTENTS: readonly Row[] = [
  ORDINARY,
  ["with the stored values", { values: (stored) => stored }],
  ["with a new email alone", { values: ({ name }, { email }) => ({ name, email }) }],
  ["with a new name alone", { values: ({ email }, { name }) => ({ name, email }) }],
  ["with a name beyond ASCII", { values: (_, { name, email }) => ({ name: `${name} \u00c5\u0416`, email }) }],
  ["with a body of 20,000 bytes", { padBytes: 20_000 }],
  ["with a further member", { members: { kit: "x" } }],
];
const CONTENTS_OF_DELETE: readonly Row[] = [
  ORDINARY,
  ["with a body", { body: "{}" }],
  ["with an empty body", { body: "" }],
];

function mediaTypes(t: Attempt, method: Method): readonly Row[] {
  if (method === "DELETE") return [ORDINARY];
  const json = method === "PUT" ? "application/json" : t.kit.deployment.patchBody({ name: "x" }).mediaType;
  return [ORDINARY, ...[`${json}; charset=utf-8`, json.toUpperCase()].map(asMediaType)];
}
const asMediaType = (mediaType: string): Row => [`as ${mediaType}`, { mediaType }];

/** An address that leads nowhere would hide what the other conditions do. */
const addresses = async (t: Attempt): Promise<readonly AddressedRow[]> => [
  ORDINARY,
  ...(await takenPlaces(t)).map((place): AddressedRow => [`path ${place}`, { allowed: "any" }, place]),
  ["with an unknown parameter", { query: "?kit=1" }],
  ["with fields", { query: "?fields=name" }],
];

const conditions = async (t: Attempt, method: Method) => ({
  framing: method === "DELETE" ? FRAMINGS : [...FRAMINGS, CHUNKED],
  headers: headerSets(t),
  content: method === "DELETE" ? CONTENTS_OF_DELETE : CONTENTS,
  mediaType: mediaTypes(t, method),
  address: await addresses(t),
});

/** A customer by what is said of it: nothing of the ordinary one. */
type Named = { readonly key: string; at: Prepared };

/** A customer, and who writes it. */
type Subject = { readonly row: Row; readonly key: string; readonly takesEvents: boolean };

const FRESH = "to a customer that was never updated";
const PATCHED = "to a customer that was patched last";

const BY_OTHER_TENANT: Row = ["by another tenant", { caller: "other-tenant", allowed: "any" }];

const EVENTS_MAX = 6;

const rowOf = (key: string): Row => {
  const own = MAKERS.find((maker) => maker === key);
  return [own === undefined ? key : BY_MAKER[own], {}];
};
const rowOfLimited = (key: string): Row => [`${LIMITED}${key === "" ? "" : `, ${key}`}`, ROW_OF_LIMITED];
const isOwn = (key: string): boolean => MAKERS.some((maker) => maker === key);

/** @throws CouldNotRun where the ordinary request is not refused as it should be */
export async function combinedRefusals(t: Attempt, method: Method): Promise<void> {
  const events = (await eventsBefore(t)).slice(0, EVENTS_MAX);
  const customers = await preparedCustomers(t, method, [PATCHED, ...MAKERS]);
  const subjects = customers.flatMap(({ key }): Subject[] => {
    const takesEvents = !isOwn(key);
    const limited = takesEvents && key !== PATCHED && t.kit.profile.limited !== undefined;
    const theirs = { row: rowOfLimited(key), key, takesEvents };
    return [{ row: rowOf(key), key, takesEvents }, ...(limited ? [theirs] : [])];
  });
  const others = { subject: subjects, ...(await conditions(t, method)), event: [undefined, ...events] };
  const turn = METHODS.indexOf(method);
  // A check may know one of the two alone, so each meets all pairs of the other conditions.
  const all = COMMON_FORMS.flatMap((form) => pairs(others, turn).map((row) => ({ form, ...row })));
  const rows = someOf(t, [...all, ...pairs({ form: OTHER_FORMS, ...others }, turn)]);
  const controls = await controlsOf(t, method, customers[0].at);
  for (const { key, at: from } of customers) {
    let at = await asOfNow(t, from);
    for (const kind of ["missing", "stale"] as const) {
      const forms = rows
        .filter(({ form, subject }) => form[0] === kind && subject.key === key)
        .map(({ form, subject, framing, headers, content, mediaType, address, event }) => {
          const parts = [subject.row, framing, headers, content, mediaType, address];
          const derive = differing(form[1], parts);
          return event === undefined || !subject.takesEvents ? derive : rightAfter(derive, event);
        });
      at = await refusedInARow(t, method, kind, forms, controls[kind], at);
    }
  }
}

/** Another tenant has no way to change a customer, not even with its tag; what it is answered is open. */
export async function combinedForeign(t: Attempt, method: Method): Promise<void> {
  const events = (await eventsBefore(t)).slice(0, EVENTS_MAX);
  const { written } = await t.control("PUT");
  const control: Control = { differs: "a caller of its own tenant sends it", seen: written.seen };
  const customers = await preparedCustomers(t, method, [PATCHED]);
  const all = pairs(
    { key: customers.map(({ key }) => key), ...(await conditions(t, method)), event: [undefined, ...events] },
    METHODS.indexOf(method),
  );
  const rows = someOf(t, all);
  for (const { key, at: from } of customers) {
    const at = await asOfNow(t, from);
    const forms = rows
      .filter((row) => row.key === key)
      .map(({ framing, headers, content, mediaType, address, event }) => {
        const parts = [rowOf(key), BY_OTHER_TENANT, framing, headers, content, mediaType, address];
        const derive = differing(CURRENT, parts);
        return event === undefined ? derive : rightAfter(derive, event);
      });
    await refusedInARow(t, method, "missing", forms, control, at);
  }
}

/** Writes with the current tag, each sent once it is asked for. Such a request may be refused. */
export async function* combinedUpdates(t: Attempt, method: "PUT" | "PATCH"): AsyncGenerator<Written> {
  const customers = await preparedCustomers(t, method, MAKERS);
  const subjects = customers.flatMap((customer) => {
    const { key } = customer;
    const limited = key === "" && t.kit.profile.limited !== undefined;
    return [rowOf(key), ...(limited ? [rowOfLimited(key)] : [])].map((row) => ({ row, customer }));
  });
  const all = pairs({ subject: subjects, ...(await conditions(t, method)) }, METHODS.indexOf(method));
  for (const { subject, framing, headers, content, mediaType, address } of someOf(t, all)) {
    const { row, customer } = subject;
    let { at } = customer;
    // One that was updated is fresh no longer.
    if (customer.key === FRESH) at = (await at.again?.()) ?? at;
    const derive = differing(CURRENT, [row, framing, headers, content, mediaType, address]);
    const form = derive(at.now.tag, at.former, at.customer);
    if (form === undefined) continue;
    const { lines, what, allowed: _, opening, first: __, ...shape } = form;
    const via = opening && (await connectionAfter(t, method, opening, at));
    const written = await t.write(method, {
      ...shape,
      ...(via && { via }),
      to: at.customer,
      before: at.now,
      ifMatch: lines,
      values: carriedValues(t, method, shape, at),
      what,
      allowed: "accepted, stored, and answered with a new ETag; or refused",
    });
    via?.close();
    customer.at = { ...at, now: written.now };
    yield written;
  }
}

/** The ordinary one first, then a fresh one, and those of `further`. DELETE is tried on customers made for it. */
async function preparedCustomers(
  t: Attempt,
  method: Method,
  further: readonly string[],
): Promise<readonly [Named, ...Named[]]> {
  // Finding out may write the main customer.
  const patches = await t.patchOffered();
  const customers: [Named, ...Named[]] = [{ key: "", at: await preparedFor(t, method) }];
  const untouched = await t.neverUpdated();
  if (untouched === undefined) return customers;
  customers.push({ key: FRESH, at: await preparedFor(t, method, { untouched }) });
  if (patches && further.includes(PATCHED)) {
    const patched = async (): Promise<Prepared> => {
      const customer = await t.kit.ground.make();
      const { former, ...now } = await t.control("PATCH", { to: customer, purpose: "make the tag stale" });
      return { customer, former, now, again: patched };
    };
    customers.push({ key: PATCHED, at: await patched() });
  }
  for (const maker of MAKERS.filter((maker) => further.includes(maker))) {
    const own = await ownCustomer(t, maker);
    if (own !== undefined) customers.push({ key: maker, at: own });
  }
  return customers;
}

/** A write to another customer may have changed it, where the deployment is at fault. */
const asOfNow = async (t: Attempt, at: Prepared): Promise<Prepared> => ({
  ...at,
  now: await t.state(at.customer, "read before"),
});

async function controlsOf(t: Attempt, method: Method, at: Prepared): Promise<Record<Kind, Control>> {
  const missing = await ordinary(t, method, "missing", NONE, at);
  const stale = await ordinary(t, method, "stale", STALE, at);
  if (missing !== undefined && stale !== undefined) return { missing, stale };
  const see: RuleId[] = [BASE[method].missing, BASE[method].stale];
  throw new CouldNotRun("the ordinary request is not refused as it should be", see);
}

/** Any refusal of what is to be refused will do: the rules on single differences say which. */
function differing(derive: Derive, parts: readonly AddressedRow[]): Derive {
  return (...at) => {
    let form: Refused | undefined = derive(...at);
    for (const part of parts) {
      const [what, way] = part;
      if (form === undefined || what === "") continue;
      const before: Refused = form;
      const next = shaped(() => before, part)(...at);
      const { headers = [] } = typeof way === "function" ? way(at[0]) : way;
      form = next && { ...next, headers: [...(before.headers ?? []), ...headers] };
    }
    if (form === undefined) return undefined;
    const { optional: _, allowed, ...refused } = form;
    return { ...refused, allowed: allowed === "any" ? "any" : "refused" };
  };
}

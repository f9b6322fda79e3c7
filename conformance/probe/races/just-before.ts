/**
 * What may happen to a customer right before a write that must be refused. A service that keeps something of it, a flag or
 * an entity that is loaded, may take the write for another one.
 */
import type { Customer } from "../../fixtures/ground.ts";
import type { Attempt } from "../attempt.ts";
import { preparedFor } from "../prepared.ts";
import { type Kind, ordinary, STATUS } from "../refusals/refusal-probe.ts";
import { refusedInARow } from "../refusals/refused.ts";
import { type Derive, NEVER_GIVEN_TAG, NONE, STALE } from "../requests/if-match-forms.ts";
import type { Method } from "../snapshot.ts";
import type { AskOptions, Shape } from "../trial.ts";

/** In words that follow "right after", and what is sent. */
type Event = readonly [what: string, happens: (customer: Customer, tag: string) => Promise<unknown>];

const purpose = "right before";

function eventsFor(t: Attempt): Event[] {
  const { limited, otherTenant, main } = t.kit.profile;
  const get =
    (shape: Shape = {}) =>
    (customer: Customer) =>
      t.get(customer, { ...shape, purpose });
  const sent = (method: string, shape: Shape) => (customer: Customer) =>
    t.send({ ...t.readAsk(customer, { ...shape, purpose }), method }, [401, 403]);
  const put = (options: (tag: string) => AskOptions) => (customer: Customer, tag: string) =>
    t.sendWrite("PUT", customer, { ...options(tag), purpose });
  const preflight = [
    ["Origin", new URL(t.kit.main.url).origin],
    ["Access-Control-Request-Method", "PUT"],
    ["Access-Control-Request-Headers", "content-type"],
  ] as const;
  const all: readonly (Event | undefined)[] = [
    ["a 304", (customer, tag) => get({ headers: [["If-None-Match", tag]] })(customer)],
    ["a read of an unknown field", get({ query: "?fields=name,kitunknown" })],
    ["a HEAD", sent("HEAD", {})],
    ["an OPTIONS", sent("OPTIONS", { headers: preflight })],
    main.length === 0 ? undefined : ["a read without credentials", get({ caller: "anonymous" })],
    limited && [
      "a read of all fields by the limited caller",
      get({ caller: "limited", query: "?fields=id,name,email,status" }),
    ],
    ["a write with the current tag and broken JSON", put((ifMatch) => ({ ifMatch, body: "{" }))],
    ["a write with no If-Match", put(() => ({}))],
    limited && ["a write with no If-Match by the limited caller", put(() => ({ caller: "limited" }))],
    otherTenant && [
      "a write with the current tag by a caller of another tenant",
      put((ifMatch) => ({ caller: "other-tenant", ifMatch })),
    ],
    otherTenant && ["a read by a caller of another tenant", get({ caller: "other-tenant" })],
  ];
  return all.filter((event) => event !== undefined);
}

/** What the main caller may have been refused right before another caller reads: a pooled session may keep its role. */
export function refusedToMain(
  t: Attempt,
  customer: Customer,
): readonly (readonly [what: string, happens: () => Promise<unknown>])[] {
  const reads = [
    ["a read of an unknown field by the main caller", customer, "?fields=kitunknown"],
    ["a read of a missing customer by the main caller", t.kit.ground.missing(), ""],
  ] as const;
  const writes: readonly (readonly [what: string, options: AskOptions])[] = [
    ["a write with no If-Match by the main caller", {}],
    ["a stale write by the main caller", { ifMatch: NEVER_GIVEN_TAG }],
    ["a write with broken JSON by the main caller", { ifMatch: NEVER_GIVEN_TAG, body: "{" }],
  ];
  return [
    ...reads.map(([what, to, query]) => [what, () => t.get(to, { query, purpose })] as const),
    ...(t.kit.options.mode === "read-only" ? [] : writes).map(
      ([what, options]) => [what, () => t.sendWrite("PUT", customer, { ...options, purpose })] as const,
    ),
  ];
}

/** What changes or hides the customer by itself is the matter of the rule on it, and left out here. */
export async function eventsBefore(t: Attempt): Promise<Event[]> {
  const { main, deployment } = t.kit;
  const all = eventsFor(t);
  const harmless = await deployment.harmlessEvents(async () => {
    const names: string[] = [];
    let before = await t.state(main, "read before");
    for (const [what, happens] of all) {
      await happens(main, before.tag);
      const seen = await t.get(main, { query: deployment.stateQuery, purpose: "read back" });
      const now = t.snapshotIn(seen);
      if (now !== undefined && t.same(before, now)) names.push(what);
      before = now ?? before;
    }
    return names;
  });
  return all.filter(([what]) => harmless.includes(what));
}

export const rightAfter =
  (derive: Derive, [what, first]: Event): Derive =>
  (...at) => {
    const form = derive(...at);
    return form && { ...form, first, what: `${form.what}, right after ${what}` };
  };

/** PUT after every event, stale and missing; PATCH and DELETE share the events, each with one of the two. */
const TURNS = { PATCH: 0, DELETE: 2 } as const;

export async function justBefore(t: Attempt, method: Method, events: readonly Event[]): Promise<void> {
  let at = await preparedFor(t, method);
  for (const [nth, kind] of (["stale", "missing"] as const satisfies Kind[]).entries()) {
    const derive = kind === "stale" ? STALE : NONE;
    const control = await ordinary(t, method, kind, derive, at);
    // What is not refused the ordinary way, or is refused with another status, is a base rule's to blame.
    if (control === undefined) at = await preparedFor(t, method);
    if (control?.seen.status !== STATUS[kind]) continue;
    const isTheirs = (_: Event, index: number) => method === "PUT" || index % 4 === TURNS[method] + nth;
    const forms = events.filter(isTheirs).map((event) => rightAfter(derive, event));
    at = await refusedInARow(t, method, kind, forms, control, at);
  }
}

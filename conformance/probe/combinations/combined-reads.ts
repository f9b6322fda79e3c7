/**
 * Reads that differ from the plain one in several things: who asks, the fields, the way, the address, a parameter beside
 * them, the age of the customer, and what came right before. Rules on a single difference stand before these.
 */
import type { Customer } from "../../fixtures/ground.ts";
import type { Caller } from "../../http/wire.ts";
import type { Attempt } from "../attempt.ts";
import { NEVER_GIVEN_TAG } from "../requests/if-match-forms.ts";
import { pathEnd, takenPaths } from "../requests/other-paths.ts";
import {
  BROTLI,
  COMPRESSED,
  conditional,
  OTHER_MEDIA_TYPES,
  OTHER_TRANSFERS,
  OTHER_WAYS,
  UNKNOWN_PARAMETER,
  usualHeaders,
  type WayOfReading,
  withIfMatch,
} from "../requests/ways-of-reading.ts";
import type { Snapshot } from "../snapshot.ts";
import type { AskOptions, Shape } from "../trial.ts";
import { pairs, someOf } from "./pairs.ts";

/** A customer that is read, and how a plain read showed it last. */
type Subject = { readonly what: string; readonly customer: Customer; now: Snapshot };

/** Who asks; `by` follows the name of the request. */
export type Asker = { readonly caller: Caller; readonly by: string };

/** What is about to be asked. */
export type CombinedRead = {
  readonly asker: Asker;
  /** A list for `fields`; undefined asks for the default set. */
  readonly fields: string | undefined;
  readonly query: string;
  readonly way: WayOfReading;
  readonly options: Shape & { readonly to: Customer; readonly what: string };
  /** Its `now` is that of a plain read, or of the write that came right before. */
  readonly subject: Subject;
};

/** What comes right before a read. */
type Event = { readonly what: string } & (
  | { readonly happens: (subject: Subject) => Promise<unknown> }
  | { readonly updates: (subject: Subject) => Promise<Snapshot> }
);

const purpose = "right before";

async function events(t: Attempt): Promise<Event[]> {
  const { limited, otherTenant } = t.kit.profile;
  const read = (what: string, shape: Shape): Event => ({
    what,
    happens: ({ customer }) => t.get(customer, { ...shape, purpose }),
  });
  const write = (what: string, options: AskOptions): Event => ({
    what,
    happens: ({ customer }) => t.sendWrite("PUT", customer, { ...options, purpose }),
  });
  const looks = [
    read("a read of all fields", { query: "?fields=id,name,email,status" }),
    ...(limited === undefined ? [] : [read("a read by the limited caller", { caller: "limited" })]),
    read("a read of an unknown field", { query: "?fields=name,kitunknown" }),
    ...(otherTenant === undefined ? [] : [read("a read by another tenant", { caller: "other-tenant" })]),
  ];
  if (t.kit.options.mode === "read-only") return looks;
  const updates = (await t.updates()).map(
    (method): Event => ({
      what: `an accepted ${method}`,
      updates: async ({ customer }) => await t.control(method, { to: customer, purpose }),
    }),
  );
  const refused = [
    write("a stale write", { ifMatch: NEVER_GIVEN_TAG }),
    write("a write with no If-Match", {}),
  ];
  // After an update most can go wrong, and it does not show in every field.
  return [...updates, ...looks, ...refused, ...updates];
}

/** The main customer comes first. */
async function subjects(t: Attempt): Promise<[Subject, ...Subject[]]> {
  const { main } = t.kit;
  const now = await t.state(main, "read the values");
  const all: [Subject, ...Subject[]] = [{ what: "", customer: main, now }];
  const fresh = await t.neverUpdated();
  if (fresh !== undefined)
    all.push({ what: "of a customer that was never updated", customer: fresh, now: await t.state(fresh) });
  return all;
}

/** Parameters that the specification does not know, before and after the fields. */
const BESIDE: readonly { readonly before?: string; readonly after?: string }[] = [
  {},
  { before: UNKNOWN_PARAMETER },
  { after: UNKNOWN_PARAMETER },
  { after: "pretty=true" },
  { after: "callback=kit" },
];

function queryOf(fields: string | undefined, { before, after }: (typeof BESIDE)[number]): string {
  const parts = [before, fields && `fields=${fields}`, after].filter((part) => part !== undefined);
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

/** Those that most services have other code for come first. A condition holds the tag of the customer that is read. */
function waysFor(t: Attempt, tag: string): readonly WayOfReading[] {
  return [
    ["", {}],
    ...COMPRESSED.filter((way) => way !== BROTLI),
    ...OTHER_MEDIA_TYPES.slice(0, 1),
    ...OTHER_WAYS.slice(0, 1),
    ...conditional(tag).slice(1, 2),
    ...usualHeaders(t),
    ...OTHER_TRANSFERS.filter((way) => !COMPRESSED.includes(way)),
    withIfMatch(tag),
  ];
}

/**
 * Each read comes right after what it names: it is to be sent before the next one is asked for.
 *
 * @param levels of each condition at most
 */
export async function* combinedReads(
  t: Attempt,
  levels: number,
  factors: {
    readonly asker: readonly Asker[];
    readonly fields: readonly (string | undefined)[];
    readonly method: readonly string[];
  },
  /** In place of the fields, right after an update: what it has changed. */
  updated?: string,
): AsyncGenerator<CombinedRead> {
  const before = [undefined, ...(await events(t))].slice(0, levels);
  const all = await subjects(t);
  const [main] = all;
  const paths = await takenPaths(t);
  const combinations = pairs({
    ...factors,
    way: [...waysFor(t, main.now.tag).keys()].slice(0, levels),
    address: [undefined, ...paths.keys()],
    beside: BESIDE,
    subject: all,
    event: before,
  });
  for (const row of someOf(t, combinations)) {
    const { asker, method, way: nth, address, beside, event } = row;
    // One that was never updated stays so.
    const isUpdate = event !== undefined && "updates" in event;
    const subject = isUpdate ? main : row.subject;
    const fields = isUpdate && updated !== undefined ? updated : row.fields;
    const { customer } = subject;
    const to = address === undefined ? customer : ((await takenPaths(t, customer))[address] ?? customer);
    const query = queryOf(fields, beside);
    const asked = (tag: string) => {
      const way = waysFor(t, tag)[nth] ?? ["", {}];
      return { way, shape: { ...way[1], caller: asker.caller, sentAs: method } };
    };
    if (isUpdate) {
      // So that what is kept of this very read is old.
      await t.get(to, { ...asked(subject.now.tag).shape, query, purpose: "fill what is kept of this read" });
      subject.now = await event.updates(subject);
    } else await event?.happens(subject);
    const { way, shape } = asked(subject.now.tag);
    const words = [
      `${method} ${to === customer ? "" : pathEnd(to)}${query}`.trim(),
      asker.by,
      subject.what,
      way[0],
      event === undefined ? "" : `right after ${event.what}`,
    ];
    const what = words.filter((word) => word !== "").join(" ");
    yield { asker, fields, query, way, options: { ...shape, to, what }, subject };
  }
}

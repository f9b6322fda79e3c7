import type { Customer } from "../../fixtures/ground.ts";
import { headerValue } from "../../http/http-reply.ts";
import { CouldNotRun, Inconclusive } from "../../http/outcome-signal.ts";
import type { Connection } from "../../http/socket-transport.ts";
import { accepted } from "../../http/status.ts";
import { isApplied } from "../../http/unguarded.ts";
import type { Seen } from "../../http/wire.ts";
import { type Attempt, BASE } from "../attempt.ts";
import { updatedCustomer } from "../prepared.ts";
import { ifMatch, NEVER_GIVEN_TAG } from "../requests/if-match-forms.ts";
import type { Method } from "../snapshot.ts";
import { type Counter, lagMsOf, STATUS_OF, type Window } from "./counters.ts";

/** Numbers that other traffic would hardly hit by chance. */
export const eventsOf = (t: Attempt) => (t.quick ? 3 : 7);
/** So often a multiple of ours comes again: other traffic has hit one twice by chance. */
const EXCESS_AGAIN = 3;

/** Refused writes. Absent and blank are the same refusal, so both are among those that are counted. */
export async function refuse(
  t: Attempt,
  method: Method,
  status: 428 | 412,
  events = eventsOf(t),
): Promise<void> {
  const { customer, former } =
    method === "DELETE"
      ? await updatedCustomer(t)
      : { customer: t.kit.main, former: (await t.control("PUT")).former };
  let answered = 0;
  let breach: Seen | undefined;
  for (let event = 0; event < events; event += 1) {
    const odd = event % 3 === 2;
    const lines = status === 412 ? ifMatch(odd ? NEVER_GIVEN_TAG : former) : odd ? ifMatch("  ") : [];
    const seen = await t.sendWrite(method, customer, { ifMatch: lines, purpose: "to be counted" });
    if (seen.status === status) answered += 1;
    else if (accepted(seen.status) && (await wasApplied(t, customer, seen))) breach ??= seen;
  }
  // A refusal that is answered otherwise is the IFM rules' matter; what is counted then cannot be told.
  if (answered === events) return;
  const what = status === 412 ? "a stale tag" : "no If-Match, or a blank one,";
  throw new CouldNotRun(
    `${answered} of ${events} times ${method} was answered ${status} where it should`,
    status === 412 ? [BASE[method].stale] : [BASE[method].missing, BASE[method].blank],
    breach && {
      breach: {
        exchange: breach.exchange,
        allowed: `${status}, and nothing changed`,
        found: `${method} with ${what} was answered ${breach.status} and applied`,
        certain: true,
      },
    },
  );
}

async function wasApplied(t: Attempt, customer: Customer, { tag, exchange }: Seen): Promise<boolean> {
  const { method, headers } = exchange.request;
  const isNew = tag !== headerValue(headers, "if-match")?.trim();
  const after = await t.get(customer, { purpose: "was it applied" });
  return isApplied(method, isNew ? tag : undefined, after.status, after.tag);
}

/** One more 428 and one more 412. */
export const nudge = (t: Attempt) => async (via?: Connection) => {
  for (const lines of [[], ifMatch(NEVER_GIVEN_TAG)])
    await t.sendWrite("PUT", t.kit.main, {
      ifMatch: lines,
      purpose: "one more to be counted",
      ...(via && { via }),
    });
};

/** A window whose counter should rise by as many as were answered; several processes behind one URL are looked for first. */
export async function risen(
  t: Attempt,
  counter: Counter,
  act: () => Promise<void>,
): Promise<Window & { right: boolean }> {
  const { counters } = t.kit;
  await counters.needOneProcess(t);
  const right = ({ rose, answered }: Window) =>
    t.kit.options.exclusive ? rose[counter] === answered[counter] : rose[counter] >= answered[counter];
  // Beside other traffic an excess is ours where it is a multiple of our events, and the same again and again.
  const excess = ({ rose, answered }: Window) => {
    const more = rose[counter] - answered[counter];
    return more % answered[counter] === 0 ? more : 0;
  };
  const window = await counters.watch(t, act);
  if (right(window)) {
    const first = excess(window);
    let last = window;
    for (let more = 0; first !== 0 && more < EXCESS_AGAIN; more += 1) {
      last = await counters.watch(t, act);
      if (excess(last) !== first) return { ...last, right: true };
    }
    return { ...last, right: first === 0 };
  }
  await counters.needOneProcess(t, nudge(t));
  // A process that restarted in between loses what it had counted, once.
  const again = await counters.watch(t, act);
  if (right(again))
    throw new Inconclusive(
      `${counter} missed some answers once and not again: did the process restart, or do counts come later than ${lagMsOf(t)} ms (lag-ms)?`,
    );
  return { ...again, right: false };
}

/**
 * Whether a counter rose by more than there were replies that it counts. Beside other traffic, only a rise by exactly
 * our number of other events, in two windows one after the other, is believed to be ours.
 * @throws Inconclusive when others move it.
 */
export async function mustStay(
  t: Attempt,
  name: string,
  counter: Counter,
  what: string,
  act: () => Promise<void>,
): Promise<void> {
  const { counters, options } = t.kit;
  await counters.needOneProcess(t);
  const proof = t.proof(what, `${counter} stays`);
  const look = async () => {
    const { answered, rose, after } = await counters.watch(t, act);
    const excess = rose[counter] - answered[counter];
    proof.show(after.seen, { came: `${counter} rose by ${excess}` });
    return excess;
  };
  const excess = await look();
  if (excess > 0) {
    await counters.needOneProcess(t, nudge(t));
    // In two windows, one after the other: a count that came late is not there again.
    const second = await look();
    const ours = excess === second && excess % eventsOf(t) === 0;
    if (!ours && !options.exclusive)
      throw new Inconclusive(
        `${counter} is moved by others meanwhile; run with --exclusive when nobody else writes`,
      );
    if (second <= 0) throw new Inconclusive(`${counter} rose by ${excess} once and not again`);
  }
  const found = `without as many answers of ${STATUS_OF[counter]}, ${counter} rose by ${excess}: ${what}`;
  proof.must(name, excess <= 0, found);
}

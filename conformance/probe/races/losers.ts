/** What the losers of the races of a rule are answered. */
import { OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { accepted } from "../../http/status.ts";
import type { Seen } from "../../http/wire.ts";
import type { Attempt } from "../attempt.ts";
import type { Method } from "../snapshot.ts";
import { type Contender, contendersOf, type Round } from "./round.ts";
import { together } from "./together.ts";

/** So many writes without an answer are the network's. */
const FEW = 2;

type Unclear = { round: Round; one: Contender };

/** The losers of all rounds of a rule: the outcomes are deterministic, 428 or 412 (7 rule 1). */
export class Losers {
  readonly #t: Attempt;
  /** Losers by method and by what won: a DELETE and an update leave them different things to find. */
  readonly #groups = new Map<string, { method: Method; all: number; unclear: Unclear[] }>();

  constructor(t: Attempt) {
    this.#t = t;
  }

  look(round: Round): void {
    const { winners, contenders } = round;
    if (winners.length > 1) return;
    const [winner] = winners;
    for (const one of contenders) {
      if (one.outcome === "won" || !one.opened || one.seen?.status === 429) continue;
      // What any stale write is answered is no matter of races.
      if (one.outcome === "unknown" && this.#t.blamedBefore(one.method, "stale", one.seen?.status ?? 0))
        continue;
      const group = this.#group(one.method, winner?.method);
      group.all += 1;
      if (one.outcome === "unknown") group.unclear.push({ round, one });
      // Without exactly one winner other assertions say what is wrong.
      else if (winner !== undefined) this.#judge(round, one, one.seen as Seen);
    }
  }

  #group(method: Method, winner: Method | undefined) {
    const key = `${method} ${winner === "DELETE" ? "deleted" : winner === undefined ? "nobody" : "updated"}`;
    const group = this.#groups.get(key) ?? { method, all: 0, unclear: [] };
    this.#groups.set(key, group);
    return group;
  }

  #judge(round: Round, one: Contender, seen: Seen): void {
    const mayBeGone = [...round.winners, ...round.unknown].some(({ method }) => method === "DELETE");
    // Where a DELETE may have won, the others may as well find no customer.
    const allowed = mayBeGone ? [412, 404, 410] : [412];
    const proof = round.of(one, mayBeGone ? allowed.join(" or ") : "412 with the ETag of now");
    const ok = allowed.includes(seen.status) || this.#t.blamedBefore(one.method, "stale", seen.status);
    proof.must("status", ok, `${one.who} lost and was answered ${seen.status}, not ${allowed.join(" or ")}`);
    // Of a customer that may be gone there is no tag of now.
    if (seen.status !== 412 || mayBeGone) return;
    if (this.#t.kit.doubts.has(`tag of 412 on ${one.method}`)) return;
    proof.must("etag", seen.tag !== undefined, `${one.who} lost, and its 412 carries no ETag`);
    const { before, after } = round;
    if (seen.tag === undefined || after === undefined || after.tag === before.tag) return;
    const own = `${one.who} lost, and its 412 carries the very tag that it sent, ${seen.tag}`;
    proof.must("not-own-tag", seen.tag !== before.tag, own);
  }

  /** A few are the network's; most of one kind are the race's, where as many writes that do not meet are all accepted. */
  async judgeSilence(): Promise<void> {
    const groups = [...this.#groups.values()];
    const many = groups.filter(({ all, unclear }) => unclear.length > FEW && unclear.length * 2 > all);
    let ofRace = false;
    for (const method of new Set(many.map(({ method }) => method))) ofRace ||= await apart(this.#t, method);
    const unclear = groups.flatMap((group) => group.unclear);
    const [first] = many[0]?.unclear ?? unclear;
    const proof =
      first?.round.of(first.one, "412 to all but one") ??
      this.#t.proof("the losers of all rounds", "each is answered 412");
    const all = groups.reduce((sum, group) => sum + group.all, 0);
    const found = () =>
      `${unclear.length} of ${all} writes that lost a race were answered neither 412 nor 428 (${kinds(unclear.map(({ one }) => one))})`;
    const apartToo = () =>
      `${found()}, while as many at once, each to a customer of its own, are all accepted`;
    proof.must("told", !ofRace, apartToo, OTHERS_MAY_CAUSE);
    // A gateway under load answers a few of any requests so.
    if (many.length === 0 && unclear.length > 0) this.#t.note += `; ${found()}`;
    proof.must("available", ofRace || many.length === 0, found, { othersMayCause: true, level: "SHOULD" });
  }
}

function kinds(unclear: readonly Contender[]): string {
  const words = unclear.map(({ seen }) => (seen === undefined ? "no answer" : String(seen.status)));
  return [...new Set(words)]
    .map((word) => `${word} ×${words.filter((each) => each === word).length}`)
    .join(", ");
}

/** The control of a race: as many writes at once that differ in their customer alone. @returns whether all are accepted. */
async function apart(t: Attempt, method: Method): Promise<boolean> {
  if (t.kit.ground.cannotMake !== undefined) return false;
  const customers = await together(Array.from({ length: contendersOf(t) }, () => t.kit.ground.make()));
  const tags = await together(customers.map((customer) => t.state(customer, "read before")));
  const held = await together(
    customers.map((customer, index) =>
      t.hold(method, customer, {
        ifMatch: tags[index]?.tag,
        purpose: "control request: writes that do not meet",
      }),
    ),
  );
  const answers = await together(held.map((one) => one.release()));
  return answers.every(({ seen }) => seen !== undefined && accepted(seen.status));
}

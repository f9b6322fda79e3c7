/**
 * Whether an answer tells a stranger that a customer exists: all that answers to an id that nobody has share, and those
 * for this customer share too, must be the same. What differs from one answer to the next anyway (a date, a trace id,
 * the process that answers) is left out of it.
 */
import type { Seen } from "../../http/wire.ts";
import { bareGuid } from "../../target/names.ts";
import type { Attempt } from "../attempt.ts";

type Difference = { readonly what: string; readonly here: string; readonly nobodys: string };

/** What an answer shows, by a name that words can hold. Length and date say nothing that the rest does not. */
const LEFT_OUT = new Set(["content-length", "date", "age", "expires"]);

function shown({ status, headers, object, text }: Seen, id: string): Map<string, string> {
  const ids = new RegExp(
    [id, encodeURIComponent(id), bareGuid(id)].map((each) => RegExp.escape(each)).join("|"),
    "gi",
  );
  const plain = (value: string) => value.replace(ids, "{id}");
  const all = new Map([["the status", String(status)]]);
  for (const [name, value] of headers)
    if (!LEFT_OUT.has(name.toLowerCase())) all.set(`the header ${name.toLowerCase()}`, plain(value));
  if (object === undefined) all.set("the body", plain(text));
  else
    for (const [name, value] of Object.entries(object))
      all.set(`the member ${name}`, plain(JSON.stringify(value)));
  return all;
}

const PAIRS_MAX = 3;

/**
 * @param ask sends one and the same request to the customer, or to an id that nobody has, and names the id
 * @returns the differences that came each time, and the last answer for an id that nobody has
 */
export async function tellsExistence(
  ask: (to: "customer" | "nobody") => Promise<{ seen: Seen; id: string }>,
  first: { seen: Seen; id: string },
): Promise<{ differences: Difference[]; nobodys: Seen }> {
  const of = ({ seen, id }: { seen: Seen; id: string }) => shown(seen, id);
  const here = [of(first)];
  let last = await ask("nobody");
  const there = [of(last)];
  for (let pair = 1; pair < PAIRS_MAX && between(here, there).length > 0; pair += 1) {
    // In this order neither a clock nor two processes that take turns make a difference.
    last = await ask("nobody");
    there.push(of(last));
    here.push(of(await ask("customer")));
  }
  return { differences: between(here, there), nobodys: last.seen };
}

function between(here: readonly Map<string, string>[], there: readonly Map<string, string>[]): Difference[] {
  const names = new Set([...here, ...there].flatMap((each) => [...each.keys()]));
  return [...names].flatMap((what) => {
    const [own, others] = [here, there].map((all) => new Set(all.map((each) => each.get(what))));
    if (own?.size !== 1 || others?.size !== 1) return [];
    const [[a], [b]] = [[...own], [...others]];
    return a === b ? [] : [{ what, here: a ?? "absent", nobodys: b ?? "absent" }];
  });
}

/** 200 without an object and a tag is no customer: PRB-01 blames it. */
export const showsCustomer = ({ status, tag, object }: Seen): boolean =>
  status === 200 && tag !== undefined && object !== undefined;

/** Where a GET of any id is 200, that of this one says nothing: PRB-01 blames it. */
export async function isAnyIdRead(t: Attempt): Promise<boolean> {
  return (await t.get(t.kit.ground.missing(), { purpose: "control request: another id" })).status === 200;
}

/** In words that follow "the answer differs from that to an id that nobody has: ". */
export function inWords(differences: readonly Difference[]): string {
  return differences.map(({ what, here, nobodys }) => `${what} is ${here}, there ${nobodys}`).join("; ");
}

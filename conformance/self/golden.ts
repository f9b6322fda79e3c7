/**
 * golden.json: the assertions that each fault trips, as runs have shown them and a reader has reviewed them. `?` after
 * an id: it fires in some runs only, as races have it. Nothing but such: the fault comes and goes by itself, and which of
 * its requests meets which rule is chance, so that something must fire and nobody says what. An empty list: the kit
 * misses the fault.
 */
import type { Verdict } from "./case.ts";
import type { Fault } from "./fault.ts";

export type Golden = {
  /** Every assertion that any line has looked at. */
  readonly assertions: readonly string[];
  readonly faults: Readonly<Record<string, readonly string[]>>;
};

const FILE = new URL("./golden.json", import.meta.url);

/** As it stands in the file: one line a fault, so that a change of one shows as one. */
type Written = { readonly assertions: string[]; readonly faults: Record<string, string> };

export async function readGolden(): Promise<Golden> {
  const file = Bun.file(FILE);
  const written: Written = (await file.exists()) ? await file.json() : { assertions: [], faults: {} };
  const faults = Object.entries(written.faults).map(([id, fired]) => [id, fired.split(" ").filter(Boolean)]);
  return { assertions: written.assertions, faults: Object.fromEntries(faults) };
}

export async function writeGolden({ assertions, faults }: Golden): Promise<void> {
  const rows = Object.entries(faults).map(([id, fired]) => [id, fired.join(" ")]);
  const written: Written = { assertions: [...assertions], faults: Object.fromEntries(rows) };
  await Bun.write(FILE, `${JSON.stringify(written, null, 2)}\n`);
}

const bare = (id: string) => id.replace("?", "");

/** @returns what fired and is not pinned, and what is pinned and did not fire. */
export function difference(pinned: readonly string[] | undefined, fired: readonly string[]): string[] {
  if (pinned === undefined) return ["golden.json does not have this fault (--write)"];
  if (pinned.length > 0 && pinned.every((id) => id.endsWith("?")))
    return fired.length > 0 ? [] : ["nothing fired of a fault that comes and goes"];
  const known = new Set(pinned.map(bare));
  const extra = fired.filter((id) => !known.has(id)).map((id) => `fired, and is not pinned: ${id}`);
  const lost = pinned
    .filter((id) => !id.endsWith("?") && !fired.includes(id))
    .map((id) => `did not fire, and is pinned: ${id}`);
  return [...extra, ...lost];
}

/** @param widen keeps what was pinned before: what differs from run to run is marked with `?` */
export function updated(
  golden: Golden,
  verdicts: readonly Verdict[],
  all: readonly Fault[],
  widen: boolean,
): Golden {
  const fired = new Map(verdicts.flatMap(({ kind, id, fired }) => (kind === "fault" ? [[id, fired]] : [])));
  const faults = all.flatMap(({ id, comesAndGoes = false }): [string, readonly string[]][] => {
    const before = golden.faults[id];
    const now = fired.get(id);
    if (now === undefined) return before === undefined ? [] : [[id, before]];
    if (comesAndGoes) return [[id, now.toSorted().map((each) => `${each}?`)]];
    return [[id, widen && before !== undefined ? widened(before, now) : now.toSorted()]];
  });
  return { ...lookedAt(golden, verdicts), faults: Object.fromEntries(faults) };
}

/** Adds assertions that no earlier run has looked at. */
export function lookedAt(golden: Golden, verdicts: readonly Verdict[]): Golden {
  const assertions = new Set([...golden.assertions, ...verdicts.flatMap(({ looked }) => looked)]);
  return { ...golden, assertions: [...assertions].sort() };
}

function widened(before: readonly string[], fired: readonly string[]): string[] {
  const always = before.filter((id) => fired.includes(id));
  const all = new Set([...before.map(bare), ...fired]);
  return [...all].sort().map((id) => (always.includes(id) ? id : `${id}?`));
}

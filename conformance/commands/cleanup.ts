/** `cleanup`: puts right what killed runs left, from their journals. */

import { Wire } from "../http/wire.ts";
import { FreshValues } from "../probe/values.ts";
import { Ground, removeCustomer } from "../run/ground.ts";
import { type Journal, type JournalEntry, journalFolder, journalsIn } from "../run/journal.ts";
import { defaultOptions } from "../run/options.ts";
import type { Names } from "../target/names.ts";
import { type Profile, ProfileFault } from "../target/profile.ts";
import { recordedFlags } from "./recorded-flags.ts";
import { profileOf, type TargetFlags } from "./target-options.ts";

/** @returns the exit code: 0 all is right again, 6 something is left. */
export async function cleanup(flags: TargetFlags): Promise<number> {
  const journals = journalsIn(journalFolder(process.env));
  let left = 0;
  let settled = 0;
  for (const journal of journals) {
    const entries = journal.read();
    const begin = entries.find((entry) => entry.kind === "run");
    if (begin === undefined) {
      // Killed before its first line was complete: nothing had been sent.
      journal.remove();
      continue;
    }
    if (flags.baseUrl !== undefined && flags.baseUrl.replace(/\/+$/, "") !== begin.baseUrl) continue;
    if (isAlive(begin.pid)) {
      console.log(`${begin.baseUrl}: process ${begin.pid} is still running; left alone`);
      continue;
    }
    const result = await settle(journal, entries, begin, flags);
    left += result.left;
    settled += result.settled;
  }
  console.log(
    left === 0
      ? `${settled} customers put right; nothing is left`
      : `${settled} customers put right, ${left} left`,
  );
  return left === 0 ? 0 : 6;
}

type Begin = Extract<JournalEntry, { kind: "run" }>;

async function settle(
  journal: Journal,
  entries: readonly JournalEntry[],
  begin: Begin,
  flags: TargetFlags,
): Promise<{ settled: number; left: number }> {
  const done = new Set(entries.flatMap((entry) => (entry.kind === "settled" ? [entry.id] : [])));
  const made = entries.flatMap((entry) => (entry.kind === "made" && !done.has(entry.id) ? [entry.id] : []));
  const borrowed = entries.flatMap((entry) =>
    entry.kind === "borrowed" && !done.has(entry.id) ? [entry] : [],
  );
  const profile = profileFor(begin, flags);
  const wire = new Wire(profile, { ...defaultOptions, budget: Number.MAX_SAFE_INTEGER });
  wire.cleaning = true;
  const ground = new Ground(wire, profile, new FreshValues(), undefined);
  let left = 0;
  let settled = 0;
  const note = (id: string, why: string | undefined) => {
    if (why === undefined) {
      settled += 1;
      journal.note({ kind: "settled", id });
    } else {
      left += 1;
      console.log(`${begin.baseUrl}: ${id} is left: ${why}`);
    }
  };
  try {
    for (const id of made) note(id, await removeCustomer(wire, ground.customerAt(id, true).url));
    for (const { id, names, values } of borrowed)
      note(id, await giveBack(wire, ground.customerAt(id, false).url, names as Names, values));
    const unanswered = unansweredCreates(entries);
    for (const email of unanswered) {
      const id = await ground.findByEmail(email);
      if (id !== undefined) note(id, await removeCustomer(wire, ground.customerAt(id, true).url));
      else
        console.log(
          `${begin.baseUrl}: a create of ${email} was under way; whether it happened can't be seen`,
        );
    }
  } finally {
    await wire.close();
  }
  if (left === 0) journal.remove();
  return { settled, left };
}

/** Creates whose answer the killed run never wrote down. */
function unansweredCreates(entries: readonly JournalEntry[]): string[] {
  const open: string[] = [];
  for (const entry of entries) {
    if (entry.kind === "making") open.push(entry.email);
    if (entry.kind === "made") open.shift();
    if (entry.kind === "not-made") open.shift();
  }
  return open;
}

async function giveBack(
  wire: Wire,
  url: string,
  names: Names,
  values: Readonly<Record<string, unknown>>,
): Promise<string | undefined> {
  const read = await wire.send({
    rule: "clean-up",
    purpose: "read before giving back",
    caller: "main",
    method: "GET",
    url,
    headers: [],
  });
  if (read.object?.[names.name] === values["name"] && read.object?.[names.email] === values["email"])
    return undefined;
  const put = await wire.send({
    rule: "clean-up",
    purpose: "give back name and email",
    caller: "main",
    method: "PUT",
    url,
    headers: [
      ["Content-Type", "application/json"],
      ["If-Match", read.tag ?? ""],
    ],
    body: JSON.stringify({ [names.name]: values["name"], [names.email]: values["email"] }),
  });
  return put.status >= 200 && put.status < 300
    ? undefined
    : `PUT of its former values answered ${put.status}`;
}

/** Flags of this call, completed from the killed run's own. */
function profileFor(begin: Begin, flags: TargetFlags): Profile {
  const recorded = recordedFlags(begin.arguments);
  try {
    return profileOf({ ...recorded, ...flags, baseUrl: begin.baseUrl, customerId: [] }, process.env);
  } catch (error) {
    if (!(error instanceof ProfileFault)) throw error;
    throw new ProfileFault([
      ...error.faults,
      `to clean up ${begin.baseUrl}, give the credentials again by --header or --header-env`,
    ]);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

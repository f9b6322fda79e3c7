/** `cleanup`: removes or restores what killed runs left, from their journals. */
import type { Command } from "commander";
import { Ground, giveBack, removeCustomer } from "../fixtures/ground.ts";
import { NoReply } from "../http/outcome-signal.ts";
import { ownAsk, Wire } from "../http/wire.ts";
import { amount } from "../report/amount.ts";
import { type Journal, type JournalEntry, journalFolder, journalsIn } from "../target/journal.ts";
import { inAllCasings } from "../target/names.ts";
import { defaultOptions } from "../target/options.ts";
import { type Profile, ProfileFault } from "../target/profile.ts";
import { FreshValues, putBody, type Values } from "../target/values.ts";
import { print } from "./print.ts";
import { recordedFlags } from "./recorded-flags.ts";
import { addTargetOptions, profileOf, type TargetFlags } from "./target-options.ts";

type CleanupFlags = TargetFlags & { forget?: boolean };

export function addCleanupCommand(program: Command, end: (exitCode: number) => void): void {
  addTargetOptions(program.command("cleanup"))
    .description("remove or restore what a killed run left, from its journal")
    .option("--forget", "drop the journals without sending anything: the deployment no longer exists")
    .option("--out <dir>", "accepted so that the flags of `run` can be given again; has no effect")
    .action(async (flags: CleanupFlags) => end(await cleanup(flags)));
}

/** @returns the exit code: 0 nothing is left, 6 something is. */
async function cleanup(flags: CleanupFlags): Promise<number> {
  let left = 0;
  let settled = 0;
  /** Base URLs that did not answer: nothing more is sent there. */
  const silent = new Map<string, string>();
  for (const journal of journalsIn(journalFolder(process.env))) {
    const entries = journal.read();
    const begin = entries.find((entry) => entry.kind === "run");
    if (begin === undefined) {
      // Killed before its first line was complete: nothing had been sent.
      journal.remove();
      continue;
    }
    if (flags.baseUrl !== undefined && flags.baseUrl.replace(/\/+$/, "") !== begin.baseUrl) continue;
    if (isAlive(begin.pid)) {
      print(`${begin.baseUrl}: process ${begin.pid} is still running; its journal is left alone.`);
      continue;
    }
    const open = openEntries(entries);
    if (flags.forget) {
      journal.remove();
      print(`${begin.baseUrl}: forgot ${open.ids.join(" ") || "a run without customers"}`);
      continue;
    }
    const result = silent.has(begin.baseUrl)
      ? { left: open.ids.length, settled: 0 }
      : await settle(journal, open, begin, flags, silent);
    left += result.left;
    settled += result.settled;
  }
  for (const [baseUrl, why] of silent)
    print(
      `${baseUrl} does not answer: ${why}. If it no longer exists: cleanup --forget --base-url ${baseUrl}`,
    );
  print(`${amount(settled, "customer")} removed or restored, ${left} left.`);
  return left === 0 ? 0 : 6;
}

type Begin = Extract<JournalEntry, { kind: "run" }>;

type Open = {
  readonly made: readonly Extract<JournalEntry, { kind: "made" }>[];
  readonly borrowed: readonly Extract<JournalEntry, { kind: "borrowed" }>[];
  /** Creates whose answer the killed run never wrote down. */
  readonly unanswered: readonly Extract<JournalEntry, { kind: "making" }>[];
  readonly ids: readonly string[];
};

/** What a run has made or borrowed, and not settled. */
function openEntries(entries: readonly JournalEntry[]): Open {
  const done = new Set(entries.flatMap((entry) => (entry.kind === "settled" ? [entry.id] : [])));
  const made = entries.flatMap((entry) => (entry.kind === "made" && !done.has(entry.id) ? [entry] : []));
  const borrowed = entries.flatMap((entry) =>
    entry.kind === "borrowed" && !done.has(entry.id) ? [entry] : [],
  );
  const ids = [...made, ...borrowed].map(({ id }) => id);
  return { made, borrowed, unanswered: unansweredCreates(entries), ids };
}

async function settle(
  journal: Journal,
  { made, borrowed, unanswered, ids }: Open,
  begin: Begin,
  flags: TargetFlags,
  silent: Map<string, string>,
): Promise<{ settled: number; left: number }> {
  const profile = profileFor(begin, flags);
  const wire = new Wire(profile, { ...defaultOptions, budget: Number.MAX_SAFE_INTEGER });
  wire.beginCleaning();
  const ground = new Ground(wire, profile, new FreshValues(), undefined);
  let left = 0;
  let settled = 0;
  const note = (id: string, why: string | undefined) => {
    if (why === undefined) {
      settled += 1;
      journal.note({ kind: "settled", id });
    } else {
      left += 1;
      print(`${begin.baseUrl}: ${id} is left: ${why}`);
    }
  };
  try {
    if (ids.length + unanswered.length > 0) await knock(wire, ground);
    for (const { id, maker } of made)
      note(id, await removeCustomer(wire, ground.customerAt(id, true, maker)));
    for (const { id, names, values } of borrowed) {
      const bodies = inAllCasings(names).map(
        (of) => (former: Values) => putBody(profile.putBody, of, former),
      );
      note(id, await giveBack(wire, ground.customerAt(id, false).url, names, values, bodies));
    }
    for (const { email, maker } of unanswered) {
      const id = await ground.findByEmail(email, maker);
      if (id !== undefined) note(id, await removeCustomer(wire, ground.customerAt(id, true, maker)));
      else print(`${begin.baseUrl}: a create of ${email} was under way; whether it happened can't be seen.`);
    }
  } catch (error) {
    if (!(error instanceof NoReply)) throw error;
    silent.set(begin.baseUrl, error.exchange.failure ?? "no reply");
    return { settled, left: ids.length - settled };
  } finally {
    await wire.close();
  }
  if (left === 0) journal.remove();
  return { settled, left };
}

/** @throws NoReply where the deployment does not answer at all. */
async function knock(wire: Wire, ground: Ground): Promise<void> {
  const { url } = ground.missing();
  await wire.send(ownAsk("is anybody there", "GET", url, { rule: "clean-up" }));
}

/** Creates whose answer the killed run never wrote down. Several may have been under way at once. */
function unansweredCreates(entries: readonly JournalEntry[]): Open["unanswered"] {
  const answered = new Set(
    entries.flatMap((entry) => (entry.kind === "made" || entry.kind === "not-made" ? [entry.email] : [])),
  );
  return entries.flatMap((entry) => (entry.kind === "making" && !answered.has(entry.email) ? [entry] : []));
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

/** Tells faults of the service from the writes of other people, by trying again. */

import { ownAsk } from "../http/wire.ts";
import type { Kit } from "../probe/kit.ts";
import type { Finding } from "../report/make.ts";

/**
 * A finding that other people's writes would explain as well is believed when it comes again. Where it does not, it is
 * dropped if others are seen to write these customers, or if it never comes again.
 */
export async function confirmed(kit: Kit, attempt: () => Promise<Finding>): Promise<Finding> {
  const { onlooker } = kit.wire;
  const doubtful = (finding: Finding) => othersMayBeTheCause(finding, onlooker.moved > 0);
  let finding = await attempt();
  // What was found on a customer that was not yet at rest is looked for again on one that is.
  const mayNotRest = kit.options.mode !== "read-only" && !kit.doubts.has("tag changes by itself");
  const unrest = othersMayBeTheCause(finding, true) && mayNotRest;
  if (unrest && (await kit.ground.learnToSettle())) finding = await attempt();
  const compares = finding.rule.id !== "ENV-04" && finding.outcome !== "could-not-run";
  if (kit.doubts.has("reads lag") && compares && doubtful(finding)) return lagging(finding);
  const attempts = () => (onlooker.moved > 0 ? ATTEMPTS_AMONG_OTHERS : 1);
  for (let again = 0; doubtful(finding) && again < attempts(); again += 1) {
    const next = await attempt();
    if (doubtful(next)) {
      finding = next;
      continue;
    }
    if (await othersWrite(kit)) return next;
    for (let more = 0; more < ATTEMPTS_MORE; more += 1) {
      const later = await attempt();
      if (doubtful(later)) return later;
    }
    return next;
  }
  return finding;
}

/** Where reads lag behind writes, what compares two reads says nothing; ENV-04 reports the lag. */
function lagging(finding: Finding): Finding {
  const reason = "reads lag behind writes, so what this rule compares is not to be relied on";
  return { ...finding, outcome: "could-not-run", reason, pointer: { see: ["ENV-04"] } };
}

const ATTEMPTS_MORE = 3;
const ATTEMPTS_AMONG_OTHERS = 5;
const WATCH_READS = 30;
const WATCH_MS = 100;

function othersMayBeTheCause({ outcome, pointer, trial }: Finding, seen: boolean): boolean {
  if (trial !== undefined && outcome === "could-not-run" && trial.maskedBy.size > 0) return false;
  if (outcome === "could-not-run") return seen && pointer.othersMayCause === true;
  if ((outcome !== "violation" && outcome !== "warning") || trial?.decisive) return false;
  const failures = trial?.failures ?? [];
  return failures.length > 0 && failures.every(({ othersMayCause }) => othersMayCause);
}

/** Watches the main customer for a while, unless others have been seen already. */
async function othersWrite({ wire, main }: Kit): Promise<boolean> {
  for (let read = 0; read < WATCH_READS && wire.onlooker.moved === 0; read += 1) {
    await wire.send(ownAsk("do others write", "GET", main.url));
    await wire.rest(WATCH_MS);
  }
  return wire.onlooker.moved > 0;
}

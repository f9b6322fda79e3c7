/** What the answer to a request that must be refused says, and who made a change that it shows. */

import { CouldNotRun, Inconclusive, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { accepted, isGone } from "../../http/status.ts";
import type { Written } from "../answered.ts";
import { type Attempt, BASE } from "../attempt.ts";
import type { Allowed, Refused } from "../requests/if-match-forms.ts";
import { sameFields, shows, WRITABLE } from "../snapshot.ts";
import { type Kind, STATUS } from "./refusal-probe.ts";

/** A wrong refusal is blamed once, by the base rule; a wrong acceptance is a fault of each form. */
export function judgeRefusal(
  t: Attempt,
  written: Written,
  kind: Kind,
  form: Pick<Refused, "what" | "allowed" | "url" | "sentAs">,
): void {
  const { method, seen } = written;
  const wanted = STATUS[kind];
  const { what, allowed = [] } = form;
  const right = allowed === "any" || isRefusal(seen.status, wanted, allowed);
  if (allowed !== "any")
    written.must(
      "status",
      right || t.blamedBefore(method, kind, seen.status),
      `${method} with ${what} was answered ${seen.status}, ${allowed === "refused" ? "not refused" : `not ${[wanted, ...allowed].join(" or ")}`}`,
    );
  if (BASE[method][kind] === t.rule.id && !right && !accepted(seen.status))
    t.kit.blamed.set(`${method} ${kind}`, { status: seen.status, by: t.rule.id });
  whoseChange(t, written);
  const unchanged = mustNotChange(t, written, kind);
  if (unchanged && kind === "stale" && seen.status === 412 && isOrdinary(form)) mustTellTag(t, written, what);
}

/** What stands at another address, or is sent by another method, is another resource or none. */
export const isOrdinary = ({ url, sentAs }: Pick<Refused, "url" | "sentAs">) =>
  url === undefined && sentAs === undefined;

/** A refusal that changes the tag and nothing else is blamed once, by the base rule. */
function mustNotChange(t: Attempt, written: Written, kind: Kind): boolean {
  const { method, before, after, seen } = written;
  const movesTag = after !== undefined && before.tag !== after.tag && sameFields(before, after);
  if (movesTag && t.blamedBefore(method, `${kind} moves the tag`, seen.status)) return false;
  const unchanged = written.mustNotChange();
  if (movesTag && !unchanged && BASE[method][kind] === t.rule.id)
    t.kit.blamed.set(`${method} ${kind} moves the tag`, { status: seen.status, by: t.rule.id });
  return unchanged;
}

export function isRefusal(status: number, wanted: number, allowed: Allowed): boolean {
  if (status === wanted) return true;
  return typeof allowed === "string"
    ? status >= 300 && (status < 500 || status === 501 || status === 505)
    : allowed.includes(status);
}

/** Every 412 carries the tag of now; one that never does is blamed once, by the rule on it. */
function mustTellTag(t: Attempt, written: Written, what: string): void {
  const { method, seen, before } = written;
  const { doubts } = t.kit;
  if (
    t.rule.id === BASE[method].stale ||
    doubts.has(`tag of 412 on ${method}`) ||
    doubts.has("tag changes by itself")
  )
    return;
  const carries = seen.tag === undefined ? "no ETag" : `the ETag ${seen.tag}`;
  const found = `the 412 to ${method} with ${what} carries ${carries}; the current tag is ${before.tag}`;
  written.must("etag", seen.tag === before.tag, found, OTHERS_MAY_CAUSE);
}

/**
 * A change that this probe did not bring about: an earlier write of ours that reads show late, or somebody else's.
 * @throws CouldNotRun or Inconclusive then.
 */
function whoseChange(t: Attempt, { before, after, values, afterSeen }: Written): void {
  if (after === undefined) {
    if (isGone(afterSeen.status)) t.decisive = true;
    else
      throw new CouldNotRun(
        `a read after the refused write answers ${afterSeen.status}, which tells nothing`,
      );
    return;
  }
  const changed = WRITABLE.filter((field) => after.fields[field] !== before.fields[field]);
  if (changed.length === 0) return;
  if (changed.some((field) => shows(after.fields[field], String(values[field])))) {
    t.decisive = true;
    return;
  }
  if (changed.every((field) => t.kit.values.made(after.fields[field])))
    throw new CouldNotRun(
      "reads lag behind writes, so we cannot tell whether the refused write changed anything",
      ["ENV-04"],
    );
  if (changed.every((field) => typeof after.fields[field] === "string" && after.fields[field] !== ""))
    throw new Inconclusive("somebody else wrote this customer meanwhile");
}

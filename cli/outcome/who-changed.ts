/** Who changed a customer meanwhile, in words. */
import type { NamedChange, NamedChanges } from "../client/named-changes.ts";
import { oneLine } from "./reply-failure.ts";

/** `changed by billing-sync at 10:14Z (2026-11-29): email`. */
function whoChanged({ time, client, changed }: NamedChange): string {
  const [, date, minute] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z$/.exec(time) ?? [];
  const at = date === undefined ? time : `${minute}Z (${date})`;
  const fields = changed.length === 0 ? "" : `: ${changed.join(", ")}`;
  return oneLine(`changed by ${client} at ${at}${fields}`);
}

/** @param max how many are shown. @returns a text for each, and one for the others. */
export function whoChangedTexts({ changes, moreChanges }: NamedChanges, max = 10): string[] {
  const shown = changes.slice(0, max).map(whoChanged);
  const isAll = !moreChanges && changes.length <= max;
  return isAll ? shown : [...shown, "and changed before that: customers history shows all"];
}

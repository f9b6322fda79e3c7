/** One request whose precondition must be refused. */

import type { PatchForm } from "../../target/patch-form.ts";
import type { Values } from "../../target/values.ts";
import type { Written } from "../answered.ts";
import type { Attempt } from "../attempt.ts";
import type { Prepared } from "../prepared.ts";
import type { Control } from "../proof.ts";
import type { Allowed, Derive, Refused } from "../requests/if-match-forms.ts";
import { type Method, storedValues } from "../snapshot.ts";

export type Kind = "stale" | "missing";
export const STATUS = { stale: 412, missing: 428 } as const satisfies Record<Kind, number>;

export async function probeRefusal(
  t: Attempt,
  method: Method,
  kind: Kind,
  form: Refused,
  at: Prepared,
  patchForm?: PatchForm,
): Promise<Written> {
  const { lines, what, allowed = [], opening: _, values: __, first, ...shape } = form;
  const answers = typeof allowed === "string" ? [401, 403] : allowed;
  await first?.(at.customer, at.now.tag);
  return await t.write(method, {
    ...shape,
    to: at.customer,
    before: at.now,
    ifMatch: lines,
    values: carriedValues(t, method, form, at),
    patchForm,
    what,
    allowed: allowedText(kind, allowed),
    answers,
  });
}

/** The control request: without anything special it is refused. @returns undefined where it is not: a base rule says so. */
export async function ordinary(
  t: Attempt,
  method: Method,
  kind: Kind,
  derive: Derive,
  at: Prepared,
): Promise<Control | undefined> {
  const form = derive(at.now.tag, at.former, at.customer);
  if (form === undefined) return undefined;
  const written = await probeRefusal(t, method, kind, form, at);
  const { seen, unchanged } = written;
  const right = seen.status === STATUS[kind] || t.blamedBefore(method, kind, seen.status);
  return right && unchanged ? { differs: "it is sent the ordinary way", seen, refused: true } : undefined;
}

/** The values that a probe carries; undefined: fresh ones. */
export function carriedValues(
  t: Attempt,
  method: Method,
  { values }: Pick<Refused, "values">,
  { now }: Pick<Prepared, "now">,
): Partial<Values> | undefined {
  if (values === undefined) return undefined;
  const stored = storedValues(now);
  const { name, email } = values(stored, t.kit.values.next());
  if (method !== "PATCH") return { name, email };
  if (email === stored.email) return { name };
  return name === stored.name ? { email } : { name, email };
}

function allowedText(kind: Kind, allowed: Allowed): string {
  if (allowed === "any") return "any answer, as long as nothing changes";
  if (allowed === "refused") return `${STATUS[kind]} or another refusal, and nothing changed`;
  return `${[STATUS[kind], ...allowed].join(" or ")}, and nothing changed`;
}

/** A mangled tag may be the tag itself, where the deployment's tags are mangled from the start. To another tenant it is no use. */
export function isCurrent({ lines, caller }: Refused, tag: string): boolean {
  if (caller === "other-tenant") return false;
  return lines.length === 1 && lines[0]?.[0].toLowerCase() === "if-match" && lines[0][1].trim() === tag;
}

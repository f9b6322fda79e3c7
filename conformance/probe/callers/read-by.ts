/** Reads by a caller of whom a rule wants to know what is shown to it. */

import type { Customer } from "../../fixtures/ground.ts";
import { CouldNotRun } from "../../http/outcome-signal.ts";
import type { Answered } from "../answered.ts";
import type { Attempt } from "../attempt.ts";
import { pathEnd } from "../requests/other-paths.ts";
import type { WayOfReading } from "../requests/ways-of-reading.ts";

/** As the evidence names them. */
export const CALLERS = {
  main: "the main caller",
  limited: "the limited caller",
  "other-tenant": "another tenant",
} as const;

const WHOSE = { limited: "the limited caller's", "other-tenant": "the other tenant's" } as const;

/** @throws CouldNotRun where the credentials are refused: what is shown to nobody proves nothing. */
export async function readBy(
  t: Attempt,
  caller: keyof typeof WHOSE,
  query: string,
  allowed: string,
  to: Customer = t.kit.main,
  [how, shape]: WayOfReading = ["", {}],
): Promise<Answered> {
  const address = `${to === t.kit.main ? "" : pathEnd(to)}${query}`;
  const words = [shape.sentAs ?? "GET", address, `by ${CALLERS[caller]}`, how];
  const what = words.filter((word) => word !== "").join(" ");
  const read = await t.read(query, allowed, { ...shape, to, caller, what });
  if (read.seen.status === 401 && shape.sentAs === undefined)
    throw new CouldNotRun(`${WHOSE[caller]} credentials are refused with 401`);
  return read;
}

import type { Seen } from "../http/wire.ts";
import type { Evidence } from "../report/schema.ts";
import { stateOf } from "./trial.ts";

type Around = {
  /** In place of status and ETag. */
  readonly came?: string;
  /** Reads before and after. */
  readonly before?: Seen;
  readonly after?: Seen;
  readonly unchanged?: boolean;
  readonly twin?: Evidence["twin"];
};

/** Keeps as evidence of a probe what it sent and what came, and what reads around it showed. */
export function note(evidence: Evidence, seen: Seen, { before, after, ...rest }: Around = {}): void {
  Object.assign(evidence, {
    came: describe(seen),
    sent: seen.exchange.n,
    ...(before === undefined ? {} : { before: stateOf(before) }),
    ...(after === undefined ? {} : { after: stateOf(after) }),
    ...rest,
  });
}

/** For answers whose body tells most. */
export function excerpt({ status, text }: Seen): string {
  return `${status} ${text.slice(0, 160)}`;
}

export function describe(seen: Seen): string {
  return `${seen.status}${seen.tag === undefined ? ", no ETag" : `, ETag ${seen.tag}`}`;
}

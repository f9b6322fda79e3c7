/** One round of a race: who takes part, what came of it, and what a read then shows. */
import type { Customer } from "../../fixtures/ground.ts";
import type { Seen } from "../../http/wire.ts";
import type { Values } from "../../target/values.ts";
import type { Attempt } from "../attempt.ts";
import type { Proof } from "../proof.ts";
import type { Method, Snapshot } from "../snapshot.ts";
import type { Content } from "../trial.ts";

export type Lane = {
  readonly who: string;
  readonly method: Method;
  readonly values?: Partial<Values>;
  /** How it is sent, where that is not the ordinary way. */
  readonly way?: Content | undefined;
};

export type Contender = Lane & {
  readonly outcome: "won" | "lost" | "unknown";
  /** Whether the deployment took its connection. */
  readonly opened: boolean;
  /** Whether it was answered before it was complete: it then raced with nobody. */
  readonly early: boolean;
  readonly seen: Seen | undefined;
  readonly sentMs: number;
  readonly answeredMs: number;
};

/** One round and what is asserted about it. */
export type Round = {
  readonly number: number;
  readonly customer: Customer;
  readonly before: Snapshot;
  readonly contenders: readonly Contender[];
  readonly winners: readonly Contender[];
  readonly unknown: readonly Contender[];
  /** What a read then shows. */
  readonly afterSeen: Seen;
  readonly after: Snapshot | undefined;
  /** Of the round as a whole; it shows the second winner, or else the only one. */
  readonly proof: Proof;
  /** Of one contender's answer. */
  of(contender: Contender, allowed: string): Proof;
};

/** How many take part: as many as asked for, or as many connections as the deployment takes at once. */
export function contendersOf({ kit }: Attempt): number {
  return Math.max(2, Math.min(kit.options.connections, kit.limits.connections));
}

/** What all rules of a run share. */
import type { Deployment } from "../fixtures/deployment.ts";
import type { Customer, Ground } from "../fixtures/ground.ts";
import type { Caller, Seen, Wire } from "../http/wire.ts";
import type { Report, RuleId } from "../report/schema.ts";
import type { RunOptions } from "../target/options.ts";
import type { Profile } from "../target/profile.ts";
import type { FreshValues, Values } from "../target/values.ts";
import type { Counters } from "./counters/counters.ts";
import type { Method, Snapshot } from "./snapshot.ts";
import type { Weather } from "./weather.ts";

export type Kit = {
  readonly profile: Profile;
  readonly options: RunOptions;
  readonly wire: Wire;
  readonly ground: Ground;
  readonly deployment: Deployment;
  readonly values: FreshValues;
  /** The customer that most rules write. */
  readonly main: Customer;
  /**
   * A wrong status that a base rule has blamed, by `PUT stale`, `PUT missing` …; rules on special forms of the same
   * refusal do not blame it again.
   */
  readonly blamed: Map<string, { readonly status: number; readonly by: RuleId }>;
  /** Rules that have found a violation; what stands behind one of them would find the same again. */
  readonly violated: Set<RuleId>;
  readonly races: Report["races"];
  /** Properties of the deployment that proved unreliable; other rules do not blame them again. */
  readonly doubts: Set<
    | "tag changes by itself"
    | "tag stays"
    | "tags repeat"
    | "reads lag"
    | "status moves"
    | `tag of 412 on ${Method}`
  >;
  /** What the deployment turned out to take at once; a race of more would wait for connections alone. */
  readonly limits: {
    connections: number;
    /** How long in all the run still waits for reads that lag behind writes; 0: it no longer waits. */
    lagMs: number;
  };
  readonly weather: Weather;
  readonly counters: Counters;
  /** Writes refused at the start of the run: ENV-09 sends such writes again, and ENV-08 looks for a late effect. */
  readonly refusedEarly: RefusedEarly[];
  /** Reads at the start of the run, which ENV-09 asks again. */
  readonly readEarly: readonly ReadEarly[];
  /** A customer that was read at the start, and is written with that tag at the end. */
  untouched?: { readonly customer: Customer; readonly tag: string; readonly sentAt: number };
};

/** A read of the customer `untouched`, and how it was answered when the run began. */
export type ReadEarly = {
  readonly what: string;
  readonly query: string;
  readonly caller: Caller;
  readonly seen: Seen;
};

/** A write that was refused when the run began. */
export type RefusedEarly = {
  readonly customer: Customer;
  readonly method: Method;
  /** To follow the method. */
  readonly what: string;
  readonly values: Partial<Values>;
  readonly seen: Seen;
  /** The tag before the last accepted write. */
  readonly former: string;
  /** The customer as it was after the refusal. */
  readonly now: Snapshot;
  readonly status: unknown;
  readonly sentAt: number;
};

import type { Journal } from "./journal.ts";

/** A violation that is known: it does not fail the run until `until` has passed. */
export type Expectation = {
  readonly rule: string;
  readonly reason: string;
  readonly owner: string;
  /** YYYY-MM-DD, the last day on which it is expected. */
  readonly until: string;
};

export type RunOptions = {
  readonly mode: "full" | "quick" | "read-only";
  /** Rule ids or families; empty: all. */
  readonly only: readonly string[];
  readonly skip: readonly string[];
  /** Rounds of each race, and connections in each round. */
  readonly rounds: number;
  readonly connections: number;
  /** Nobody else writes or is counted meanwhile, so metrics are compared exactly. */
  readonly exclusive: boolean;
  /** Leaves out probes that look like an attack or a flood. */
  readonly gentle: boolean;
  readonly allowIncomplete: boolean;
  /** Requests a second; undefined: as fast as it answers. */
  readonly rate: number | undefined;
  /** Requests in all; what clean-up needs is kept back. */
  readonly budget: number;
  /** Leaves the first customer that a violation shows in place, so that its curl line has something to hit. */
  readonly keepFailing: boolean;
  /** How the kit was started, for the commands that it prints: `bun run conformance`. */
  readonly program: string;
  /** The words after `run`, secrets as `$NAME`: for the report, and for `replay`. */
  readonly arguments: readonly string[];
  /** How often the header command may be run again, at most. */
  readonly renewalMs: number;
  /** How long in all the run waits for a deployment that no longer answers as before; a rolling restart takes seconds. */
  readonly patienceMs: number;
  /** How far counters may lag behind the answers that they count, where the profile does not say. */
  readonly counterLagMs: number;
  /** How much longer they are then watched, once, before a count is called lost. */
  readonly counterWatchMs: number;
  readonly expected: readonly Expectation[];
  readonly signal: AbortSignal | undefined;
  readonly journal: Journal | undefined;
  /** Sentences for the report on how far the kit can be trusted. */
  readonly trust: readonly string[];
};

export const QUICK_ROUNDS = 4;

export const defaultOptions: RunOptions = {
  mode: "full",
  only: [],
  skip: [],
  rounds: 20,
  connections: 8,
  exclusive: false,
  gentle: false,
  allowIncomplete: false,
  rate: undefined,
  budget: 20_000,
  keepFailing: false,
  program: "bun run conformance",
  arguments: [],
  renewalMs: 60_000,
  patienceMs: 15_000,
  counterLagMs: 2000,
  counterWatchMs: 10_000,
  expected: [],
  signal: undefined,
  journal: undefined,
  trust: [],
};

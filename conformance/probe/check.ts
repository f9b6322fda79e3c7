import type { Attempt } from "./attempt.ts";

/** Tries one rule. It asserts through the trial and throws an outcome signal where it cannot go on. */
export type Check = (trial: Attempt) => Promise<void>;

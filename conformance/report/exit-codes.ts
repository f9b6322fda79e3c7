/** What the exit code of `run` says. Where several hold: 130, then 5, 1, 4, 6, 3. */
export const EXIT_CODES = {
  0: "conforms; warnings do not change that",
  1: "at least one violation, or an expected one that no longer fails",
  2: "wrong usage, or a folder that can't be written",
  3: "incomplete: a rule could not run or was inconclusive",
  4: "the deployment can't be reached, refuses the credentials, or is something else",
  5: "a fault of the kit, or findings that could not be stored",
  6: "customers could not be removed or restored",
  130: "interrupted; cleaned up",
} as const;

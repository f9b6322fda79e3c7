/**
 * How the program ends: one table, shown by `customers help exit-codes` and in the README, tested row by
 * row.
 */
export const EXIT_CODES = {
  done: { code: 0, meaning: "done; for a write also: nothing had to change" },
  failure: { code: 1, meaning: "any other failure; nothing is left undecided" },
  usage: { code: 2, meaning: "usage: a wrong option, argument, setting or input file; nothing was sent" },
  "not-allowed": { code: 3, meaning: "not authenticated or not allowed (401, 403)" },
  "not-found": { code: 4, meaning: "the customer does not exist (404, 410)" },
  conflict: {
    code: 5,
    meaning:
      "conflict: changed by someone else (412 to the last attempt, --on-conflict, --if-match, --expect)",
  },
  invalid: { code: 6, meaning: "the server says that the request is invalid (400, 422, 428)" },
  unreachable: {
    code: 7,
    meaning:
      "cannot reach the server, or it does not serve now (429, 503), or a read failed; nothing was written (after a 503 to a write, a reading showed that)",
  },
  "unknown-outcome": {
    code: 8,
    meaning:
      "a write was sent and its outcome is unknown; running it again is safe: for create with the --idempotency-key that the message names, for import as its message says",
  },
  "rows-failed": {
    code: 9,
    meaning: "bulk: some rows or customers failed; rows are in the failed-rows file",
  },
  interrupted: { code: 130, meaning: "interrupted (Ctrl-C, SIGTERM, SIGHUP)" },
} as const satisfies Record<string, { code: number; meaning: string }>;

export type Exit = keyof typeof EXIT_CODES;

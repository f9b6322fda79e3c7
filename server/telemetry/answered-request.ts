/** One request and how it was answered: what the log writes and the metrics count. */
export type AnsweredRequest = {
  /** When it was answered, ms since 1970. */
  readonly timeMs: number;
  readonly method: string;
  /** The path of the route as a template, never an id; "(none)" where there is no such route. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  readonly requestId: string;
  readonly caller: { readonly client: string; readonly tenant: string | null } | null;
  /** The code of a refusal. */
  readonly code: string | undefined;
  readonly isAllowedWithoutIfMatch: boolean;
  /** A write that was applied before, under the same Idempotency-Key. */
  readonly isReplayed: boolean;
};

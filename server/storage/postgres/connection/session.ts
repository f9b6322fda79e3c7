/**
 * Settings of every session, sent with its first message.
 *
 * Small tables would be joined by hash or merge, and rows then be locked in another
 * order than the batch names them: two batches would deadlock. The keepalives end a
 * connection whose other end has vanished while nobody waits on it.
 */
export const SESSION = {
  application_name: "customers-server",
  search_path: "customers",
  statement_timeout: "4000",
  lock_timeout: "3000",
  idle_in_transaction_session_timeout: "5000",
  synchronous_commit: "on",
  tcp_keepalives_idle: "5",
  jit: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_seqscan: "off",
} as const;

export type SessionSettings = Readonly<Record<string, string>>;

/**
 * A batch has one plan, whatever its size: its rows are found by key one after another, and other ways to join are off.
 * Left to choose, PostgreSQL plans small batches anew each time, for 70 to 180 µs beside 16 to 80 µs of work.
 */
export const BATCH_SESSION = { ...SESSION, plan_cache_mode: "force_generic_plan" };

/** One text per filter, with parameters that differ widely: a generic plan would read a tenant to its end. */
export const PAGE_SESSION = { ...SESSION, plan_cache_mode: "force_custom_plan" };

/**
 * Migrations wait for locks longer than requests do, but not without end: what waits behind them waits too.
 */
export const OWNER_SESSION = { ...SESSION, statement_timeout: "60000", lock_timeout: "5000" };

export type SessionFacts = {
  readonly statement_timeout: string;
  readonly search_path: string;
};

/** Asks for what a pooler in between would have dropped. */
export const SESSION_FACTS =
  "current_setting('statement_timeout') AS statement_timeout, current_setting('search_path') AS search_path";

/** Whether the session has the settings that it was opened with. */
export function hasSettings(
  { statement_timeout, search_path }: SessionFacts,
  wanted: SessionSettings,
): boolean {
  const timeoutMs = /^(\d+)(ms|s|min)$/.exec(statement_timeout);
  const units: Record<string, number> = { ms: 1, s: 1_000, min: 60_000 };
  const shown = Number(timeoutMs?.[1]) * (units[timeoutMs?.[2] ?? ""] ?? Number.NaN);
  return shown === Number(wanted["statement_timeout"]) && search_path === wanted["search_path"];
}

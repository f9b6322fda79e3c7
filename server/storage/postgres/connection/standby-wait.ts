import type { LaneConnection } from "./lane.ts";
import { StatementFailed } from "./statement-failure.ts";

const ASK_EVERY_MS = 200;

/**
 * $1 how old, in ms. A commit that waits so long for the standby is one that a service has given up, or soon will.
 */
const WAITING_COMMITS_TEXT = `SELECT count(*)::int AS n FROM pg_stat_activity
  WHERE usename = current_user AND datname = current_database() AND wait_event = 'SyncRep'
    AND query_start < clock_timestamp() - make_interval(secs => $1::int / 1000.0)`;

/**
 * Waits until no commit is left that was given up while it waited for the synchronous standby. Each keeps its
 * session until the standby answers, and must not be cancelled. Without this wait three services that
 * wrote on used up 100 connections within 70 s, and then nobody could connect.
 *
 * @throws StatementFailed when the time is up
 */
export async function awaitStandby(connection: LaneConnection, statementMs: number): Promise<void> {
  const giveUpAt = performance.now() + statementMs;
  const age = String(Math.round(statementMs / 2));
  for (;;) {
    const [found] = await connection.run<{ n: number }>(WAITING_COMMITS_TEXT, [age]);
    if (found?.n === 0) return;
    if (performance.now() >= giveUpAt) {
      throw new StatementFailed(
        "never-sent",
        `the synchronous standby does not answer, and ${found?.n} commits wait for it`,
      );
    }
    await Bun.sleep(ASK_EVERY_MS);
  }
}

import type { LaneConnection } from "./lane.ts";
import { hasSettings, SESSION_FACTS, type SessionFacts, type SessionSettings } from "./session.ts";
import { StatementFailed } from "./statement-failure.ts";

type Facts = SessionFacts & {
  readonly lane: string;
  readonly is_standby: boolean;
  /** Of the write-ahead log, eight hexadecimal digits; null on a standby. */
  readonly timeline: string | null;
};

/**
 * What a pooler answers that hands one session's prepared statement to another
 * (42P05), has lost it (26000), or takes no settings for a session (08P01).
 */
const POOLER_STATES = ["42P05", "26000", "08P01"];

const POOLER =
  "A pooler between this service and PostgreSQL changes sessions between statements, and would run another statement than the one sent. Connect to PostgreSQL itself, or through a proxy of TCP such as HAProxy.";

/**
 * Looks at each new connection before it is used: what answers there must be the primary. A promotion
 * begins a new timeline, so a server on a lower one than was ever seen is an old primary that came back.
 */
export class PrimaryWatch {
  #newestTimeline = "";

  /** @throws StatementFailed */
  async look(connection: LaneConnection, session: SessionSettings): Promise<void> {
    // The text is this connection's own. Prepared statements are named alike on all
    // connections, so a pooler that mixes them up answers with another connection's text.
    const lane = crypto.randomUUID();
    const [facts] = await this.#ask(connection, lane);
    if (facts === undefined || facts.lane !== lane || !hasSettings(facts, session))
      throw new StatementFailed("never-sent", POOLER);
    if (facts.is_standby) {
      throw new StatementFailed(
        "never-sent",
        "The server is a standby, which takes no writes and lags behind. Name the primary in DATABASE_URL, or a proxy that leads to it.",
      );
    }
    const timeline = facts.timeline ?? "";
    if (timeline < this.#newestTimeline) {
      throw new StatementFailed(
        "never-sent",
        `The server is on timeline ${timeline}, but timeline ${this.#newestTimeline} was seen: it is an old primary, which lacks writes that were acknowledged since. Fence it off.`,
      );
    }
    this.#newestTimeline = timeline;
  }

  async #ask(connection: LaneConnection, lane: string): Promise<readonly Facts[]> {
    const text = `SELECT '${lane}' AS lane, pg_is_in_recovery() AS is_standby, ${SESSION_FACTS},
      CASE WHEN pg_is_in_recovery() THEN NULL ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline`;
    try {
      return await connection.run<Facts>(text, []);
    } catch (error) {
      if (error instanceof StatementFailed) throw error;
      const state = error instanceof Error && "errno" in error ? error.errno : null;
      if (typeof state === "string" && POOLER_STATES.includes(state))
        throw new StatementFailed("never-sent", POOLER, state, error);
      throw error;
    }
  }
}

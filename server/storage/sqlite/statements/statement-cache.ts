import type { Database, SQLQueryBindings, Statement } from "bun:sqlite";
import type { ChainLink } from "../../../domain/audit/audit-chain.ts";

export type Params = SQLQueryBindings[];

/**
 * A connection's statements, prepared once each. The texts come from projections and subsets of fields, never
 * from a request, so there are few.
 */
export class StatementCache {
  /** The last row of each chain to which this connection has appended, until another one has written: see GroupCommit. */
  readonly chainEnds = new Map<string, ChainLink>();
  readonly #db: Database;
  readonly #statements = new Map<string, Statement<unknown, Params>>();

  constructor(db: Database) {
    this.#db = db;
  }

  get<Row>(sql: string, ...params: Params): Row | null {
    return this.#prepared(sql).get(...params) as Row | null;
  }

  all<Row>(sql: string, ...params: Params): Row[] {
    return this.#prepared(sql).all(...params) as Row[];
  }

  /** @returns how many rows changed */
  run(sql: string, ...params: Params): number {
    return this.#prepared(sql).run(...params).changes;
  }

  /** A statement that is not finalised would leave -wal and -shm behind. */
  close(): void {
    for (const statement of this.#statements.values()) statement.finalize();
    this.#statements.clear();
  }

  #prepared(sql: string): Statement<unknown, Params> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare<unknown, Params>(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

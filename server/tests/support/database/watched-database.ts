import { Database } from "bun:sqlite";

/** A database that notes the text of every statement that runs on it; bun:sqlite has no trace of its own. */
export class WatchedDatabase extends Database {
  readonly ran: string[] = [];

  // biome-ignore lint/suspicious/noExplicitAny: the signature is bun:sqlite's, whatever the row
  override prepare(sql: string, ...rest: any[]): any {
    const { ran } = this;
    const statement = super.prepare(sql, ...rest);
    return new Proxy(statement, {
      get(target, property) {
        const member = Reflect.get(target, property) as unknown;
        if (typeof member !== "function") return member;
        return (...args: unknown[]): unknown => {
          if (property === "get" || property === "all" || property === "run" || property === "values")
            ran.push(sql);
          return member.apply(target, args);
        };
      },
    });
  }

  /** The statements on customers since the last call. */
  takeCustomerStatements(): string[] {
    return this.ran.splice(0).filter((sql) => /\bcustomers\b/.test(sql));
  }
}

import type { Dialect } from "./dialect.ts";

export type Values = { name: string; email: string; status: string };
export type Customer = Values & { id: string; tag: string };
export type WriteOutcome =
  | { kind: "written"; tag: string }
  | { kind: "stale"; tag: string }
  | { kind: "missing" };

type Row = Values & { id: string; version: number; sequence: number };

/** Customers in memory. Every write is one synchronous step, so compare and set is atomic. */
export class CustomerTable {
  readonly #rows = new Map<string, Row>();
  readonly #order: (Row | undefined)[] = [];
  readonly #tag: Dialect["tag"];
  #version = 0;

  constructor(tag: Dialect["tag"]) {
    this.#tag = tag;
  }

  get size(): number {
    return this.#rows.size;
  }

  add(values: Values): Customer {
    this.#version += 1;
    const row = { ...values, id: Bun.randomUUIDv7(), version: this.#version, sequence: this.#order.length };
    this.#rows.set(row.id, row);
    this.#order.push(row);
    return this.#customer(row);
  }

  read(id: string): Customer | undefined {
    const row = this.#rows.get(id.toLowerCase());
    return row && this.#customer(row);
  }

  /** Applies the values where `expected` is the current tag; every accepted write makes a new tag. */
  write(id: string, expected: string, values: Partial<Values> | "delete"): WriteOutcome {
    const row = this.#rows.get(id.toLowerCase());
    if (row === undefined) return { kind: "missing" };
    if (expected !== this.#tag(row.version)) return { kind: "stale", tag: this.#tag(row.version) };
    this.#version += 1;
    if (values === "delete") {
      this.#rows.delete(row.id);
      this.#order[row.sequence] = undefined;
    } else Object.assign(row, values, { version: this.#version });
    return { kind: "written", tag: this.#tag(this.#version) };
  }

  /**
   * Up to `limit` customers that match, in order of creation; `next` is the place to go on from, if more may
   * follow.
   */
  page(from: number, limit: number, match: Partial<Values>): { customers: Customer[]; next: number | null } {
    const customers: Customer[] = [];
    for (let at = from; at < this.#order.length; at += 1) {
      const row = this.#order[at];
      if (row === undefined || !matches(row, match)) continue;
      if (customers.length === limit) return { customers, next: at };
      customers.push(this.#customer(row));
    }
    return { customers, next: null };
  }

  #customer(row: Row): Customer {
    const { id, name, email, status } = row;
    return { id, name, email, status, tag: this.#tag(row.version) };
  }
}

function matches(row: Row, match: Partial<Values>): boolean {
  return Object.entries(match).every(
    ([name, value]) => row[name as keyof Values].toLowerCase() === value.toLowerCase(),
  );
}

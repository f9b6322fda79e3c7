import { CommandRefused } from "../../domain/command-refused.ts";
import {
  COPY_TABLE_NAMES,
  type CopyRow,
  type CopySource,
  type CopyTableName,
  type CopyTarget,
  type TargetState,
} from "./copy-tables.ts";

/** Rows that are in memory at once: about 1 MiB at most. */
const PAGE_ROWS = 1_000;

export type CopyProgress = {
  readonly table: CopyTableName;
  readonly phase: "copied" | "compared";
  /** Of this run, in this table and phase. */
  readonly rows: number;
};

export type CopyReport = {
  readonly state: TargetState;
  readonly rows: Readonly<Record<CopyTableName, number>>;
};

type CopyOptions = {
  readonly onProgress?: (progress: CopyProgress) => void;
  /** How many rows one step takes. */
  readonly pageRows?: number;
};

/**
 * Copies all rows, then reads both sides and compares them. It resumes after the last row that the target has.
 *
 * @throws CommandRefused when the two differ in the end
 */
export async function copyRows(
  source: CopySource,
  target: CopyTarget,
  { onProgress = () => {}, pageRows = PAGE_ROWS }: CopyOptions = {},
): Promise<CopyReport> {
  if (target.state !== "finished") {
    for (const table of COPY_TABLE_NAMES) {
      let rows = 0;
      let after = await target.last(table);
      for (let isMore = true; isMore; ) {
        const page = await source.page(table, after, pageRows);
        if (page.length > 0) await target.add(table, page);
        rows += page.length;
        onProgress({ table, phase: "copied", rows });
        after = page.at(-1) ?? null;
        isMore = page.length === pageRows;
      }
    }
  }
  const rows: [CopyTableName, number][] = [];
  for (const table of COPY_TABLE_NAMES) {
    const onRows = (rows: number): void => onProgress({ table, phase: "compared", rows });
    const [from, to] = await sumsOf([source, target], table, pageRows, onRows);
    if (from.rows !== to.rows || from.sha256 !== to.sha256) throw differing(table, from, to, target);
    rows.push([table, from.rows]);
  }
  if (target.state !== "finished") await target.finish();
  return { state: target.state, rows: Object.fromEntries(rows) as Record<CopyTableName, number> };
}

type Sum = { readonly rows: number; readonly sha256: string };

/** Both sides page by page, so that neither waits long for the other: a source is held by a transaction. */
async function sumsOf(
  [source, target]: readonly [CopySource, CopySource],
  table: CopyTableName,
  pageRows: number,
  onRows: (rows: number) => void,
): Promise<[Sum, Sum]> {
  const from = new SumReader(source, table, pageRows);
  const to = new SumReader(target, table, pageRows);
  while (!(from.isOver && to.isOver)) {
    await from.step();
    await to.step();
    onRows(from.rows);
  }
  return [from.sum(), to.sum()];
}

/** Reads a table once, and keeps nothing of it but its sum. */
class SumReader {
  readonly #side: CopySource;
  readonly #table: CopyTableName;
  readonly #limit: number;
  readonly #hash = new Bun.CryptoHasher("sha256");
  #after: CopyRow | null = null;
  rows = 0;
  isOver = false;

  constructor(side: CopySource, table: CopyTableName, limit: number) {
    this.#side = side;
    this.#table = table;
    this.#limit = limit;
  }

  /** Reads the next page, where there is one. */
  async step(): Promise<void> {
    if (this.isOver) return;
    const page = await this.#side.page(this.#table, this.#after, this.#limit);
    for (const row of page) this.#hash.update(`${JSON.stringify(row)}\n`);
    this.rows += page.length;
    this.#after = page.at(-1) ?? null;
    this.isOver = page.length < this.#limit;
  }

  /** Of what was read. Call it once. */
  sum(): Sum {
    return { rows: this.rows, sha256: this.#hash.digest("hex") };
  }
}

function differing(table: CopyTableName, from: Sum, to: Sum, target: CopyTarget): CommandRefused {
  if (target.state === "finished") {
    return new CommandRefused(
      "The target is not empty: it is an earlier copy of this source, and one of the two has changed since. Name an empty one.",
    );
  }
  const sums = `${from.rows} rows (SHA-256 ${from.sha256.slice(0, 12)}…) and ${to.rows} (${to.sha256.slice(0, 12)}…)`;
  return new CommandRefused(
    `The two sides differ in ${table}: ${sums}. The source has changed since the copy began. To begin anew, ${target.removal}, then copy again.`,
  );
}

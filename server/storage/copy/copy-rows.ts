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
  const [from, to] = [startOf(source), startOf(target)];
  while (!(from.isOver && to.isOver)) {
    await readOn(from, table, pageRows);
    await readOn(to, table, pageRows);
    onRows(from.rows);
  }
  const sumOf = ({ rows, hash }: Reading): Sum => ({ rows, sha256: hash.digest("hex") });
  return [sumOf(from), sumOf(to)];
}

/** How far one side was read. Only the hash of its rows is kept. */
type Reading = {
  readonly side: CopySource;
  readonly hash: Bun.CryptoHasher;
  after: CopyRow | null;
  rows: number;
  isOver: boolean;
};

function startOf(side: CopySource): Reading {
  return { side, hash: new Bun.CryptoHasher("sha256"), after: null, rows: 0, isOver: false };
}

/** Reads the next page, where there is one. */
async function readOn(reading: Reading, table: CopyTableName, pageRows: number): Promise<void> {
  if (reading.isOver) return;
  const page = await reading.side.page(table, reading.after, pageRows);
  for (const row of page) reading.hash.update(`${JSON.stringify(row)}\n`);
  reading.rows += page.length;
  reading.after = page.at(-1) ?? null;
  reading.isOver = page.length < pageRows;
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

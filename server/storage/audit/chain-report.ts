import { type ChainLink, chainFault } from "../../domain/audit/audit-chain.ts";
import type { AuditStore, ChainStart } from "./audit-store.ts";

const PAGE_ROWS = 500;

export type ChainReport = {
  readonly tenant: string;
  /** Rows up to here were removed by retention. */
  readonly start: ChainStart;
  /** How many rows are kept and were looked at. */
  readonly rows: number;
  /** Of how many rows the values are kept, and of how many they were erased. */
  readonly values: { readonly kept: number; readonly erased: number };
  /** The last row that was found in order. */
  readonly head: ChainLink;
  /** What is wrong, as a sentence; null where nothing is. */
  readonly fault: string | null;
};

/**
 * Reads a tenant's chain from its start. Someone who can write the database may make a whole new chain, or cut
 * off its newest rows: only a head that was kept elsewhere shows that.
 *
 * @param known a head that an earlier look found; null without one. One before the start of the chain is no fault,
 *   and shows nothing
 */
export async function reportOnChain(
  audit: AuditStore,
  tenant: string,
  known: ChainLink | null,
): Promise<ChainReport> {
  for (let start = await audit.chainStart(tenant); ; ) {
    const report = await reportFrom(start, audit, tenant, known);
    if (report.fault === null) return report;
    // Retention may have deleted rows that were about to be read.
    const moved = await audit.chainStart(tenant);
    if (moved.number === start.number) return report;
    start = moved;
  }
}

async function reportFrom(
  start: ChainStart,
  audit: AuditStore,
  tenant: string,
  known: ChainLink | null,
): Promise<ChainReport> {
  let head: ChainLink = { number: start.number, hash: start.hash };
  let rows = 0;
  const values = { kept: 0, erased: 0 };
  const erased = new Set<string>();
  const report = (fault: string | null): ChainReport => ({ tenant, start, rows, values, head, fault });
  if (start.timeMs !== null) {
    if (start.number < 1) return report(`the chain begins after row ${start.number}, which is none`);
    if (!(await audit.hadCustomers(tenant)))
      return report(`the chain begins after row ${start.number}, but the tenant never had a customer`);
  }
  if (isAnother(head, known)) return report(rewritten(head));
  // From the first row that is stored: what retention deleted is gone in the transaction that moved the start.
  for (let after: number | null = null, isMore = true; isMore; after = head.number) {
    const page = await audit.rows({ tenant, after, limit: PAGE_ROWS });
    for (const row of page) {
      const fault = chainFault(head, row);
      if (fault !== null) return report(fault);
      if (row.values !== null) values.kept += 1;
      else if (row.valuesDigest !== null) {
        // Only an erasure takes the values of a row that is there.
        if (!erased.has(row.customerId) && !(await audit.isErased(tenant, row.customerId)))
          return report(
            `the values of row ${row.number} are missing, and the trail has no erasure of its customer`,
          );
        erased.add(row.customerId);
        values.erased += 1;
      }
      rows += 1;
      head = { number: row.number, hash: row.hash };
      if (isAnother(head, known)) return report(rewritten(head));
    }
    isMore = page.length === PAGE_ROWS;
  }
  if (known !== null && head.number < known.number) {
    return report(
      `rows ${head.number + 1} to ${known.number} were there at the earlier look, and are missing`,
    );
  }
  const stray = await audit.countStrayValues(tenant);
  if (stray > 0) return report(`values are kept without their row: ${stray}`);
  const links = await audit.countBrokenLinks(tenant);
  if (links > 0)
    return report(
      `links between the rows of customers are wrong, so their histories may lack rows: ${links}. A copy makes them anew`,
    );
  return report(null);
}

function isAnother(link: ChainLink, known: ChainLink | null): boolean {
  return known !== null && known.number === link.number && known.hash !== link.hash;
}

function rewritten({ number }: ChainLink): string {
  return `row ${number} is not the one of the earlier look: it or a row before it was replaced`;
}

import { readFileSync } from "node:fs";
import { isatty } from "node:tty";
import type { Command } from "commander";
import type { ChainedEntry, ChainLink } from "../domain/audit/audit-chain.ts";
import { changedValues } from "../domain/audit/kept-values.ts";
import { CommandRefused } from "../domain/command-refused.ts";
import { parseCustomerId } from "../domain/customer/customer-id.ts";
import { NAME_PATTERN } from "../domain/policy/issuer.ts";
import { isoTime } from "../domain/text/iso-time.ts";
import type { AuditSearch, AuditStore } from "../storage/audit/audit-store.ts";
import { type ChainReport, reportOnChain } from "../storage/audit/chain-report.ts";
import { sealBacklog } from "../storage/audit/sealing-timer.ts";
import { DATABASE_SETTINGS, existingDatabaseOf, withStorage } from "./common/named-database.ts";
import { noTenant } from "./common/no-tenant.ts";
import { print } from "./common/print.ts";
import { type CommandOptions, withSettings } from "./common/setting-options.ts";
import { shownTime, table } from "./common/table.ts";
import { timeOption } from "./time-option.ts";

type Options = CommandOptions & {
  readonly tenant?: string;
  readonly customer?: string;
  readonly client?: string;
  readonly since?: string;
  readonly until?: string;
  readonly known?: string;
  readonly json?: boolean;
};

/** How many rows one statement looks at. With 5,000 a list of all rows took 1.5 times the processor time. */
const SEARCHED_ROWS = 1_000;

export function addAuditCommands(program: Command): void {
  const audit = program.command("audit").description("See who changed which customers, and check the trail.");
  withSettings(audit.command("list", { isDefault: true }), DATABASE_SETTINGS)
    .description("Who wrote what: a row for each accepted write, in the order of each tenant's chain.")
    .option("--tenant <name>", "of this tenant alone")
    .option("--customer <id>", "of this customer alone")
    .option("--client <name>", "by this client alone")
    .option("--since <time>", "from a time on: 2027-01-31, 2027-01-31T10:00Z, or 90m, 12h, 3d, 2w ago")
    .option("--until <time>", "before a time")
    .option("--json", "one JSON object a line; the rule where the output is no terminal")
    .action(async (options: Options) => {
      const filter = filterOf(options, Date.now());
      const isTable = options.json !== true && isatty(1);
      await withTrail(options, new Map(), async (trail, tenants) => {
        let isEmpty = true;
        for (const tenant of tenants) {
          for await (const rows of findingsOf(trail, { ...filter, tenant })) {
            if (rows.length === 0) continue;
            isEmpty = false;
            print(isTable ? tableOf(rows) : rows.map((row) => JSON.stringify(jsonOf(row))).join("\n"));
          }
        }
        if (isEmpty) console.error("No row of the audit trail matches.");
      });
    });
  withSettings(audit.command("verify"), DATABASE_SETTINGS)
    .description("Check that no row of the trail was changed or removed; exit code 1 where one was.")
    .option("--tenant <name>", "of this tenant alone")
    .option("--known <file>", "what --json printed earlier: those rows must be there still")
    .option("--json", "one JSON object a line, for each tenant; keep it on another machine for --known")
    .action(async (options: Options) => {
      const known = options.known === undefined ? new Map<string, ChainLink>() : readKnown(options.known);
      await withTrail(options, known, async (trail, tenants) => {
        const asked = options.tenant === undefined ? [...new Set([...tenants, ...known.keys()])] : tenants;
        const reports: ChainReport[] = [];
        for (const tenant of asked)
          reports.push(await reportOnChain(trail, tenant, known.get(tenant) ?? null));
        for (const report of reports) {
          const head = known.get(report.tenant) ?? null;
          const isJson = options.json === true;
          print(isJson ? JSON.stringify(reportJson(report, head)) : sentenceOf(report, head));
        }
        if (reports.length === 0) console.error("The audit trail has no rows: there is nothing to check.");
        const faulty = reports.filter(({ fault }) => fault !== null).map(({ tenant }) => tenant);
        if (faulty.length > 0) {
          throw new CommandRefused(
            `The audit trail is not whole, of: ${faulty.join(", ")}. Keep this database as it is, and compare it with a backup.`,
          );
        }
      });
    });
}

/**
 * Every row that was written before the command began has its place then.
 *
 * @param known the heads of an earlier look, by tenant
 * @throws CommandRefused for a tenant that never was
 */
async function withTrail(
  options: Options,
  known: ReadonlyMap<string, ChainLink>,
  work: (trail: AuditStore, tenants: readonly string[]) => Promise<void>,
): Promise<void> {
  const { tenant } = options;
  await withStorage(await existingDatabaseOf(options), async ({ audit }) => {
    await sealBacklog(audit, true);
    const tenants = await audit.tenants();
    if (tenant === undefined) return work(audit, tenants);
    // A typing error must not pass for a trail that is whole. Of an earlier look a tenant may be left alone.
    if (!tenants.includes(tenant) && !known.has(tenant) && !(await audit.hadCustomers(tenant)))
      throw new CommandRefused(noTenant([tenant]));
    return work(audit, [tenant]);
  });
}

type Filter = Pick<AuditSearch, "customerId" | "client" | "fromMs" | "untilMs">;

async function* findingsOf(
  trail: AuditStore,
  filter: Filter & Pick<AuditSearch, "tenant">,
): AsyncGenerator<readonly ChainedEntry[]> {
  for (let after: number | null = 0; after !== null; ) {
    const { rows, last } = await trail.search({ ...filter, after, limit: SEARCHED_ROWS });
    yield rows;
    after = last;
  }
}

function filterOf(options: Options, nowMs: number): Filter {
  const { customer, client = null } = options;
  const customerId = customer === undefined ? null : parseCustomerId(customer);
  if (customer !== undefined && customerId === null) {
    throw new CommandRefused(`--customer "${customer}" must be the id of a customer, a UUID.`);
  }
  if (client !== null && !new RegExp(NAME_PATTERN).test(client)) {
    throw new CommandRefused(
      `--client "${client}" must be the name of a client, as rows of the trail show it.`,
    );
  }
  const fromMs = timeOption("--since", options.since, nowMs) ?? Number.MIN_SAFE_INTEGER;
  const untilMs = timeOption("--until", options.until, nowMs) ?? Number.MAX_SAFE_INTEGER;
  return { customerId, client, fromMs, untilMs };
}

const HEADING = ["TIME", "TENANT", "CLIENT", "TOKEN", "OPERATION", "CUSTOMER", "CHANGED", "REQUEST"];

function tableOf(rows: readonly ChainedEntry[]): string {
  const cells = rows.map((row) => [
    ...[shownTime(row.timeMs), row.tenant, row.client, row.tokenPrefix === "" ? "-" : row.tokenPrefix],
    row.isWithoutIfMatch ? `${row.operation} (no If-Match)` : row.operation,
    ...[row.customerId, changedText(row), row.requestId === "" ? "-" : row.requestId],
  ]);
  return table(HEADING, cells);
}

function changedText(row: ChainedEntry): string {
  const { changed, values } = row;
  const kept = values === null ? {} : changedValues(values, row);
  const text = changed.map((name) => {
    const value = kept[name];
    if (value === undefined) return name;
    const { before, after } = value;
    return before === null ? `${name} "${after}"` : `${name} "${before}" -> "${after}"`;
  });
  return text.join(", ") || "-";
}

function jsonOf(row: ChainedEntry): Record<string, unknown> {
  return {
    time: isoTime(row.timeMs),
    tenant: row.tenant,
    number: row.number,
    client: row.client,
    tokenPrefix: row.tokenPrefix,
    requestId: row.requestId,
    operation: row.operation,
    customer: row.customerId,
    versionBefore: row.versionBefore,
    versionAfter: row.versionAfter,
    changed: row.changed,
    withoutIfMatch: row.isWithoutIfMatch,
    withIdempotencyKey: row.hasKey,
    values: row.values === null ? null : changedValues(row.values, row),
    valuesDigest: row.valuesDigest,
    hash: row.hash,
  };
}

function sentenceOf(
  { tenant, start, rows, values, head, fault }: ChainReport,
  known: ChainLink | null,
): string {
  if (fault !== null) return `${tenant}: ${fault}`;
  const { kept, erased } = values;
  const ofValues =
    kept + erased === 0 ? "" : `; values of ${rowCount(kept)} kept, of ${rowCount(erased)} erased`;
  const inOrder = `${tenant}: ${rowCount(rows)} in order, up to row ${head.number} with the hash ${head.hash}${ofValues}`;
  if (start.timeMs === null) return inOrder;
  const removed = `${inOrder}; retention removed the rows up to row ${start.number}, of ${isoTime(start.timeMs)}`;
  if (!isRemoved(start, known)) return removed;
  return `${removed}, and row ${known.number} of the earlier look with them: it can't be compared`;
}

function rowCount(rows: number): string {
  return rows === 1 ? "1 row" : `${rows} rows`;
}

function reportJson(
  { tenant, start, rows, values, head, fault }: ChainReport,
  known: ChainLink | null,
): Record<string, unknown> {
  return {
    tenant,
    rows,
    number: head.number,
    hash: head.hash,
    valuesKept: values.kept,
    valuesErased: values.erased,
    removed: start.number,
    removedUntil: isoTime(start.timeMs),
    knownRemoved: isRemoved(start, known),
    fault,
  };
}

/** @returns whether a head of an earlier look is of a row before the one that the chain starts after */
function isRemoved(start: ChainLink, known: ChainLink | null): known is ChainLink {
  return known !== null && known.number < start.number;
}

/** @returns the heads of an earlier look, by tenant */
function readKnown(file: string): Map<string, ChainLink> {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new CommandRefused(`--known ${file} can't be read: ${(error as Error).message}.`);
  }
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  // As a command that failed leaves it: a comparison with nothing would find nothing.
  if (lines.length === 0) {
    throw new CommandRefused(
      `--known ${file} is empty. Name a file with what \`audit verify --json\` printed.`,
    );
  }
  return new Map(lines.map((line, index) => knownHead(line, `line ${index + 1} of ${file}`)));
}

function knownHead(line: string, where: string): [string, ChainLink] {
  let read: unknown;
  try {
    read = JSON.parse(line);
  } catch {
    read = null;
  }
  const { tenant, number, hash } = (read ?? {}) as Partial<Record<string, unknown>>;
  if (typeof tenant === "string" && typeof number === "number" && typeof hash === "string") {
    return [tenant, { number, hash }];
  }
  throw new CommandRefused(
    `${where} is not what \`audit verify --json\` prints. Name a file with its output.`,
  );
}

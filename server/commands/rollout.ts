import type { Command } from "commander";
import { CommandRefused } from "../domain/command-refused.ts";
import { type Enforcement, isEnforced } from "../domain/policy/policy.ts";
import { CLEAN_DAYS, type ClientReadiness, readinessOf } from "../domain/rollout/client-readiness.ts";
import { type EnforcementPlan, planOf } from "../domain/rollout/enforcement-plan.ts";
import { DAYS_KEPT, firstDayKept, sumBySeries, type WriteCount } from "../domain/rollout/write-count.ts";
import { DAY_MS, dayOf, isoTime } from "../domain/text/iso-time.ts";
import { allCounts } from "../storage/write-counts/write-count-store.ts";
import { DATABASE_SETTINGS, existingDatabaseOf, withStorage } from "./common/named-database.ts";
import { print } from "./common/print.ts";
import { type CommandOptions, settingsOf, withSettings } from "./common/setting-options.ts";
import { shownTime, table } from "./common/table.ts";

type Options = CommandOptions & {
  readonly since?: string;
  readonly cleanDays: string;
  readonly json?: boolean;
};

const CLEAN_DAYS_OPTION = [
  "--clean-days <days>",
  "how long a client that is ready has written with If-Match",
  String(CLEAN_DAYS),
] as const;

export function addRolloutCommands(program: Command): void {
  const rollout = program.command("rollout").description("See which clients still write without If-Match.");
  withSettings(rollout.command("report", { isDefault: true }), [...DATABASE_SETTINGS, "policyFile"])
    .description(
      "Which clients write without If-Match, how often and when last, and what enforcement would break.",
    )
    .option("--since <time>", `a day such as 2027-01-31, or 12d or 4w; without it ${DAYS_KEPT} days`)
    .option(...CLEAN_DAYS_OPTION)
    .option("--json", "one JSON object a line, for each client, tenant, version and method")
    .action(async (options: Options) => {
      const nowMs = Date.now();
      const fromDay = sinceDayOf(options.since, nowMs);
      const { counts, enforcement, cleanDays, isBuiltIn } = await observed(options, nowMs);
      const report = reportOf(counts, fromDay, enforcement, cleanDays, nowMs);
      if (options.json === true) for (const row of report.rows) print(JSON.stringify(jsonOf(row)));
      else {
        if (isBuiltIn) print(`No policy file is given, so this is by the built-in policy. ${GIVE_POLICY}`);
        print(reportText(report, enforcement, fromDay, nowMs));
      }
    });
  withSettings(rollout.command("plan"), [...DATABASE_SETTINGS, "policyFile"])
    .description("Print the [enforcement] of a policy file that also enforces the clients that are ready.")
    .option(...CLEAN_DAYS_OPTION)
    .option("--json", "the same as a JSON object")
    .action(async (options: Options) => {
      const nowMs = Date.now();
      const { counts, enforcement, cleanDays, isBuiltIn } = await observed(options, nowMs);
      if (isBuiltIn)
        throw new CommandRefused(
          `No policy file is given, and the built-in policy leaves nothing to plan. ${GIVE_POLICY}`,
        );
      const plan = planOf(counts, enforcement, nowMs, cleanDays);
      print(options.json === true ? JSON.stringify(planJson(plan)) : planToml(plan, cleanDays));
    });
}

const GIVE_POLICY = "Give POLICY_FILE or --policy-file as the service has it.";

type Observed = {
  readonly counts: readonly WriteCount[];
  readonly enforcement: Enforcement;
  readonly cleanDays: number;
  /** The policy is the built-in one, which is strict. */
  readonly isBuiltIn: boolean;
};

/** All counts that are kept: a client is judged by all of them, whatever part of them is shown. */
async function observed(options: Options, nowMs: number): Promise<Observed> {
  const { cleanDays } = options;
  if (!/^\d{1,3}$/.test(cleanDays) || Number(cleanDays) >= DAYS_KEPT)
    throw new CommandRefused(`--clean-days "${cleanDays}" must be a number of days below ${DAYS_KEPT}.`);
  const { policyFile } = settingsOf(options, ["policyFile"]);
  const counts = await withStorage(await existingDatabaseOf(options), ({ writeCounts }) =>
    allCounts(writeCounts, firstDayKept(nowMs)),
  );
  const { policy, path } = policyFile;
  return { counts, enforcement: policy.enforcement, cleanDays: Number(cleanDays), isBuiltIn: path === null };
}

/** Counts are kept by day, so the first day is shown whole. */
function sinceDayOf(since: string | undefined, nowMs: number): string {
  if (since === undefined) return firstDayKept(nowMs);
  const [, count = "", unit] = /^(\d{1,3})([dw])$/.exec(since) ?? [];
  if (count !== "") return dayOf(nowMs - Number(count) * (unit === "w" ? 7 : 1) * DAY_MS);
  const timeMs = /^\d{4}-\d\d-\d\d$/.test(since) ? Date.parse(`${since}T00:00:00Z`) : Number.NaN;
  // Date.parse moves 2027-02-30 to the second of March.
  if (!Number.isNaN(timeMs) && dayOf(timeMs) === since) return since;
  throw new CommandRefused(
    `--since "${since}" must be a day such as 2027-01-31, or a time such as 12d or 4w.`,
  );
}

type ReportRow = {
  readonly client: ClientReadiness;
  readonly count: WriteCount;
  /** How many of the writes that were counted would be refused, were all clients enforced today. */
  readonly breaks: number;
};

type Report = { readonly rows: readonly ReportRow[]; readonly clients: readonly ClientReadiness[] };

function reportOf(
  counts: readonly WriteCount[],
  fromDay: string,
  enforcement: Enforcement,
  cleanDays: number,
  nowMs: number,
): Report {
  const clients = readinessOf(counts, enforcement, nowMs, cleanDays);
  const shown = sumBySeries(counts.filter(({ day }) => day >= fromDay));
  const rows = clients.flatMap((client) =>
    shown
      .filter((count) => count.client === client.client)
      .map((count): ReportRow => {
        const mayBreak = ["would-break", "regressed", "silent"].includes(client.state);
        const isRefused = isEnforced(enforcement, count.client, count.method, nowMs);
        return { client, count, breaks: mayBreak && !isRefused ? count.allowed : 0 };
      }),
  );
  return { rows, clients };
}

function jsonOf({ client, count, breaks }: ReportRow): Record<string, unknown> {
  return {
    client: client.client,
    state: client.state,
    cleanSince: isoTime(client.cleanSinceMs),
    regressedAt: isoTime(client.regressedAtMs),
    tenant: count.tenant,
    version: count.version,
    method: count.method,
    withIfMatch: count.withIfMatch,
    withoutIfMatch: count.allowed,
    refused: count.refused,
    wouldBreak: breaks,
    firstAt: isoTime(count.firstAtMs),
    lastWithAt: isoTime(count.lastWithAtMs),
    lastWithoutAt: isoTime(count.lastWithoutAtMs),
  };
}

const HEADING = [
  "CLIENT",
  "STATE",
  "TENANT",
  "VERSION",
  "METHOD",
  "WITHOUT",
  "REFUSED",
  "WITH",
  "LAST WITHOUT",
];

function reportText(
  { rows, clients }: Report,
  enforcement: Enforcement,
  fromDay: string,
  nowMs: number,
): string {
  const lines = [stageOf(enforcement, nowMs), ""];
  if (rows.length === 0) {
    lines.push(
      `No write was counted since ${fromDay}. Writes are counted while the policy says mode = "observe", and those that are refused with 428 always.`,
    );
    return lines.join("\n");
  }
  const cells = rows.map(({ client, count }) => [
    ...[client.client, client.state, count.tenant, count.version === "" ? "-" : count.version, count.method],
    ...[count.allowed, count.refused, count.withIfMatch].map(String),
    shownTime(count.lastWithoutAtMs),
  ]);
  lines.push(table(HEADING, cells), "");
  for (const { client, state, regressedAtMs } of clients) {
    if (regressedAtMs !== null && (state === "regressed" || state === "refused"))
      lines.push(
        `${client} regressed: it had been clean, and wrote without If-Match again at ${shownTime(regressedAtMs)}.`,
      );
  }
  const refused = rows.filter(({ client, count }) => client.state === "refused" && count.refused > 0);
  if (refused.length > 0) {
    const writes = refused.reduce((sum, { count }) => sum + count.refused, 0);
    lines.push(`${writes} writes since ${fromDay} were refused with 428, of: ${clientsIn(refused)}.`);
  }
  if (enforcement.mode === "strict" || nowMs >= enforcement.untilMs) return lines.join("\n");
  const broken = rows.filter(({ breaks }) => breaks > 0);
  const writes = broken.reduce((sum, { breaks }) => sum + breaks, 0);
  lines.push(
    writes === 0
      ? `Enforced for all today, none of the clients that wrote without If-Match since ${fromDay} would break.`
      : `Enforced for all today, ${writes} of the writes since ${fromDay} would have been refused, of: ${clientsIn(broken)}.`,
  );
  return lines.join("\n");
}

function clientsIn(rows: readonly ReportRow[]): string {
  return [...new Set(rows.map(({ client }) => client.client))].join(", ");
}

function stageOf(enforcement: Enforcement, nowMs: number): string {
  if (enforcement.mode === "strict") return "The policy is strict: every write needs If-Match.";
  const end = dayOf(enforcement.untilMs);
  if (nowMs >= enforcement.untilMs) return `The rollout ended on ${end}: every write needs If-Match.`;
  const names = [...enforcement.enforcedClients, ...enforcement.enforcedMethods];
  return `The policy observes until ${end}. Enforced: ${names.join(", ") || "none"}.`;
}

/** Comments say why, so that the lines can be pasted as they are. */
function planToml(plan: EnforcementPlan, cleanDays: number): string {
  if (plan.kind === "strict") return '# Every write needs If-Match already.\n[enforcement]\nmode = "strict"';
  if (plan.kind === "all-ready")
    return `# Every client that was seen is ready or enforced (${cleanDays} days).\n[enforcement]\nmode = "strict"`;
  const { newClients, newMethods, clients, untilMs, enforcedClients, enforcedMethods } = plan;
  const list = (names: readonly string[]): string => `[${names.map((name) => `"${name}"`).join(", ")}]`;
  const notReady = clients.filter(({ state }) => state !== "ready" && state !== "enforced");
  return [
    `# New clients: ${newClients.join(", ") || "none"}. New methods: ${newMethods.join(", ") || "none"}. Clients are ready after ${cleanDays} days with If-Match alone.`,
    ...notReady.map(
      ({ client, state, cleanSinceMs }) =>
        `# ${client} is not ready: ${REASONS[state]} ${shownTime(cleanSinceMs)}.`,
    ),
    "[enforcement]",
    'mode = "observe"',
    `until = ${dayOf(untilMs)}`,
    `enforced_clients = ${list(enforcedClients)}`,
    `enforced_methods = ${list(enforcedMethods)}`,
  ].join("\n");
}

/** Each is followed by the time since when the client is clean. */
const REASONS = {
  "would-break": "it wrote without If-Match at",
  regressed: "it regressed, and wrote without If-Match at",
  silent: "it has written nothing since it wrote without If-Match at",
  clean: "it is known only since",
  refused: "it is refused, and wrote without If-Match at",
  ready: "it is ready since",
  enforced: "it is enforced, and clean since",
} as const satisfies Record<ClientReadiness["state"], string>;

function planJson(plan: EnforcementPlan): Record<string, unknown> {
  if (plan.kind !== "staged") return { mode: "strict" };
  const { untilMs, enforcedClients, enforcedMethods, newClients, newMethods } = plan;
  return { mode: "observe", until: dayOf(untilMs), enforcedClients, enforcedMethods, newClients, newMethods };
}

import { FIELD_NAMES } from "../../domain/customer/field-registry.ts";
import { type Policy, rightsOf } from "../../domain/policy/policy.ts";
import { OPERATIONS } from "../../domain/policy/rights.ts";
import { isoTime } from "../../domain/text/iso-time.ts";
import type { TokenRecord } from "../../storage/tokens/token-store.ts";
import { shownTime, table } from "../common/table.ts";

const HEADINGS = [
  "PREFIX",
  "CLIENT",
  "ROLE",
  "TENANT",
  "FIELDS",
  "OPERATIONS",
  "CREATED",
  "EXPIRES",
  "LAST USED",
  "FROM",
  "REPLACED BY",
  "REVOKED",
];

/** A line of text for each token, under headings. */
export function tokenTable(tokens: readonly TokenRecord[]): string {
  return table(HEADINGS, tokens.map(cells));
}

/** A token with what there is to look at. */
type Finding = { readonly token: TokenRecord; readonly findings: readonly string[] };

export function findingTable(found: readonly Finding[]): string {
  const rows = found.map(({ token, findings }) => [...cells(token), findings.join("; ")]);
  return table([...HEADINGS, "FINDINGS"], rows);
}

/** A line of JSON for each token. Times are ISO 8601. */
export function tokenLines(tokens: readonly TokenRecord[] | readonly Finding[]): string {
  return tokens.map((entry) => JSON.stringify(lineOf(entry))).join("\n");
}

function lineOf(entry: TokenRecord | Finding): object {
  if ("findings" in entry) return { ...lineOf(entry.token), findings: entry.findings };
  const { prefix, client, role, tenant, scope, lastUsedFrom, replacedBy } = entry;
  return {
    ...{ prefix, client, role, tenant },
    fields: scope?.fields?.split(",") ?? null,
    operations: scope?.operations?.split(",") ?? null,
    createdAt: isoTime(entry.createdAtMs),
    expiresAt: isoTime(entry.expiresAtMs),
    lastUsedAt: isoTime(entry.lastUsedAtMs),
    ...{ lastUsedFrom, replacedBy },
    revokedAt: isoTime(entry.revokedAtMs),
  };
}

/**
 * Tokens that somebody should look at: those that can do everything, never expire, have
 * expired, were not used for some time, or may do nothing. Revoked tokens are done with.
 */
export function breakGlass(
  tokens: readonly TokenRecord[],
  policy: Policy,
  unusedMs: number,
  nowMs: number,
): Finding[] {
  return tokens
    .filter(({ revokedAtMs }) => revokedAtMs === null)
    .map((token) => ({ token, findings: findingsOf(token, policy, unusedMs, nowMs) }))
    .filter(({ findings }) => findings.length > 0);
}

function findingsOf(token: TokenRecord, policy: Policy, unusedMs: number, nowMs: number): string[] {
  const { createdAtMs, expiresAtMs, lastUsedAtMs } = token;
  const { read, operations } = rightsOf(policy, token);
  const isAllPowerful =
    FIELD_NAMES.every((name) => read.has(name)) && CUSTOMER_OPERATIONS.every((name) => operations.has(name));
  const isUnused = nowMs - (lastUsedAtMs ?? createdAtMs) >= unusedMs;
  return [
    ...(isAllPowerful ? ["can do everything"] : []),
    ...(operations.size === 0 ? ["may do nothing"] : []),
    ...(expiresAtMs === null ? ["never expires"] : []),
    ...(expiresAtMs !== null && expiresAtMs <= nowMs ? ["expired"] : []),
    ...(isUnused ? [lastUsedAtMs === null ? "never used" : "unused"] : []),
  ];
}

/** All that read or write customers themselves. */
const CUSTOMER_OPERATIONS = OPERATIONS.filter((name) => name !== "metrics" && name !== "history");

function cells(token: TokenRecord): string[] {
  const { prefix, client, role, tenant, scope, lastUsedFrom, replacedBy } = token;
  return [
    ...[prefix, client, role, tenant ?? "-", scope?.fields ?? "-", scope?.operations ?? "-"],
    ...[shownTime(token.createdAtMs), shownTime(token.expiresAtMs), shownTime(token.lastUsedAtMs)],
    ...[lastUsedFrom ?? "-", replacedBy ?? "-", shownTime(token.revokedAtMs)],
  ];
}

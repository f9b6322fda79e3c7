import type { Command } from "commander";
import { readPolicyFile } from "../config/policy-file.ts";
import { CommandRefused } from "../domain/command-refused.ts";
import type { Issuer } from "../domain/policy/issuer.ts";
import type { Quotas } from "../domain/policy/limits.ts";
import type { Enforcement, Policy } from "../domain/policy/policy.ts";
import type { Quota } from "../domain/policy/token-bucket.ts";
import { DAY_MS, dayOf } from "../domain/text/iso-time.ts";
import type { KeyFetch } from "../issuers/issuer-keys.ts";
import { print } from "./common/print.ts";

export function addPolicyCommands(program: Command): void {
  program
    .command("policy")
    .description("Work with policy files.")
    .command("check")
    .description("Check a policy file; exit code 1 and every fault when it is refused.")
    .argument("<file>")
    .option("--fetch", "also fetch the keys of its issuers, as the service will")
    .action(async (file: string, { fetch: isFetching = false }: { readonly fetch?: boolean }) => {
      const result = readPolicyFile(file);
      if (!result.ok) throw new CommandRefused([`${file}: refused`, ...result.faults].join("\n  "));
      const { roles, enforcement, issuers, keepsAuditValues } = result.policy;
      const until =
        enforcement.mode === "observe"
          ? ` until ${dayOf(enforcement.untilMs)}${enforcement.untilMs <= Date.now() ? ", which is over" : ""}`
          : "";
      const signers = issuers.length === 0 ? "" : `; issuers ${issuers.map(({ name }) => name).join(", ")}`;
      const kept = keepsAuditValues ? "; the audit trail keeps values, which are personal data" : "";
      print(
        `${file}: valid (roles ${[...roles.keys()].join(", ")}; enforcement ${enforcement.mode}${until}${signers}${kept})`,
      );
      const warning = farEndWarning(enforcement, Date.now());
      if (warning !== null) console.error(warning);
      for (const line of limitLines(result.policy)) print(`  ${line}`);
      if (isFetching) await fetchKeys(file, issuers);
    });
}

const YEAR_MS = 366 * DAY_MS;

/** An allowance is for a time only: strict mode is the rule (specification, section 7, rule 2). */
function farEndWarning(enforcement: Enforcement, nowMs: number): string | null {
  if (enforcement.mode === "strict" || enforcement.untilMs - nowMs <= YEAR_MS) return null;
  return `enforcement.until, ${dayOf(enforcement.untilMs)}, is more than a year away, and until then writes without If-Match are accepted. Choose an earlier day.`;
}

/** The limits that apply, a line for each holder. */
function limitLines({ limits, wrongTokens }: Policy): string[] {
  const rows: [string, Quotas | undefined][] = [
    ["each client", limits?.client],
    ["each tenant", limits?.tenant],
    ...[...(limits?.clients ?? [])].map(([name, row]): [string, Quotas] => [`client ${name}`, row]),
    ...[...(limits?.tenants ?? [])].map(([name, row]): [string, Quotas] => [`tenant ${name}`, row]),
  ];
  return [
    ...rows.map(([holder, row]) => `limits of ${holder}: ${quotasText(row)}`),
    `wrong tokens of an address: ${wrongTokens === null ? "no limit" : quotaText(wrongTokens)}`,
  ];
}

function quotasText({ requests, writes }: Quotas = {}): string {
  const texts = [
    ...(requests === undefined ? [] : [`requests ${quotaText(requests)}`]),
    ...(writes === undefined ? [] : [`writes ${quotaText(writes)}`]),
  ];
  return texts.length === 0 ? "none" : texts.join("; ");
}

function quotaText({ perSecond, burst }: Quota): string {
  return `${perSecond} a second, ${burst} at once`;
}

/** @throws CommandRefused where one of the issuers gives no keys */
async function fetchKeys(file: string, issuers: readonly Issuer[]): Promise<void> {
  // Loaded here alone: the other commands verify no signatures.
  const { IssuerKeys } = await import("../issuers/issuer-keys.ts");
  const faults: string[] = [];
  const onFetch = ({ issuer, fault }: KeyFetch): void => {
    if (fault === null) print(`issuers.${issuer}: keys fetched`);
    else faults.push(`issuers.${issuer}: ${fault}`);
  };
  for (const issuer of issuers) {
    const keys = new IssuerKeys(issuer, { onFetch });
    await keys.refresh();
    keys.stop();
  }
  if (faults.length > 0) {
    throw new CommandRefused(
      [`${file}: keys not fetched; correct the issuer, or reach it from here`, ...faults].join("\n  "),
    );
  }
}

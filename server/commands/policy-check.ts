import type { Command } from "commander";
import { readPolicyFile } from "../config/policy-file.ts";
import { CommandRefused } from "../domain/command-refused.ts";

export function addPolicyCommands(program: Command): void {
  program
    .command("policy")
    .description("Work with policy files.")
    .command("check")
    .description("Check a policy file; exit code 1 and every fault when it is refused.")
    .argument("<file>")
    .action((file: string) => {
      const result = readPolicyFile(file);
      if (!result.ok) throw new CommandRefused([`${file}: refused`, ...result.faults].join("\n  "));
      const { roles, enforcement, issuers } = result.policy;
      const end =
        enforcement.mode === "observe" ? new Date(enforcement.untilMs).toISOString().slice(0, 10) : null;
      const until =
        end === null ? "" : ` until ${end}${Date.parse(end) <= Date.now() ? ", which is over" : ""}`;
      const signers = issuers.length === 0 ? "" : `; issuers ${issuers.map(({ name }) => name).join(", ")}`;
      console.log(
        `${file}: valid (roles ${[...roles.keys()].join(", ")}; enforcement ${enforcement.mode}${until}${signers})`,
      );
    });
}

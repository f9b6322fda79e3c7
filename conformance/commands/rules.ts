/** `rules`: lists the rules. */
import type { Command } from "commander";
import { rulesMarkdown, rulesText } from "../report/rule-listing.ts";

export function addRulesCommand(program: Command): void {
  program
    .command("rules")
    .description("list the rules")
    .option("--markdown", "print RULES.md")
    .action(({ markdown }: { markdown?: boolean }) => {
      process.stdout.write(markdown ? rulesMarkdown() : rulesText());
    });
}

/** `rules`: lists the rules. */
import type { Command } from "commander";
import { coverageMarkdown } from "../report/coverage.ts";
import { rulesMarkdown, rulesText } from "../report/rule-listing.ts";
import { printText } from "./print.ts";

export function addRulesCommand(program: Command): void {
  program
    .command("rules")
    .description("list the rules")
    .option("--markdown", "print RULES.md")
    .option("--coverage", "print docs/coverage.md: the specification and the rules that test it")
    .action(({ markdown, coverage }: { markdown?: boolean; coverage?: boolean }) => {
      printText(coverage ? coverageMarkdown() : markdown ? rulesMarkdown() : rulesText());
    });
}

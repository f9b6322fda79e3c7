import type { Command } from "commander";
import { DEFAULT_OUT } from "../report/command-line.ts";
import { addTargetOptions, numberFlag } from "./target-options.ts";

export function addRunOptions(command: Command): Command {
  return addTargetOptions(command)
    .option("--only <ids>", "rules or families, comma-separated: IFM,FLD-03")
    .option("--skip <ids>", "rules or families to leave out")
    .option("--quick", "fewer rounds and combinations; the report lists what that leaves out")
    .option(
      "--gentle",
      "leave out probes that look like an attack or a flood, and report what that leaves untested",
    )
    .option("--read-only", "send nothing but GET; needs --customer-id")
    .option("--exclusive", "nobody else uses the service meanwhile: counters must match exactly")
    .option("--allow-incomplete", "exit 0 although something could not be tested; never where nothing was")
    .option("--expected <file>", "TOML list of known violations with reason, owner and end date")
    .option("--out <dir>", "where the reports go", DEFAULT_OUT)
    .option("--keep-failing", "leave the first customer that a violation shows in place, for its curl line")
    .option("--rounds <n>", "rounds of each race (20)", numberFlag("--rounds", 1))
    .option("--connections <n>", "contenders in each round (8)", numberFlag("--connections", 2))
    .option("--rate <n>", "requests a second at most", numberFlag("--rate", 0.01))
    .option("--budget <n>", "requests in all (20000)", numberFlag("--budget", 1));
}

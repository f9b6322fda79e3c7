/** The flags of `run`, and the options of a run that follow from them. */
import type { Command } from "commander";
import { DEFAULT_OUT, withoutCredentials } from "../report/command-line.ts";
import { FAMILIES } from "../report/schema.ts";
import { catalogue } from "../rules/catalogue.ts";
import { readExpected } from "../run/expected.ts";
import { trustSentences } from "../run/trust.ts";
import { defaultOptions, QUICK_ROUNDS, type RunOptions } from "../target/options.ts";
import { type Profile, ProfileFault } from "../target/profile.ts";
import { programName } from "./program-name.ts";
import { addTargetOptions, numberFlag, readTextFile, type TargetFlags } from "./target-options.ts";

export type RunFlags = TargetFlags & {
  only?: string;
  skip?: string;
  allowIncomplete?: boolean;
  exclusive?: boolean;
  out?: string;
  quick?: boolean;
  gentle?: boolean;
  readOnly?: boolean;
  rounds?: number;
  connections?: number;
  rate?: number;
  budget?: number;
  expected?: string;
  keepFailing?: boolean;
};

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

/** @param words the command line after `run`. @throws ProfileFault on wrong usage. */
export function runOptions(flags: RunFlags, profile: Profile, words: readonly string[]): RunOptions {
  if (flags.quick && flags.readOnly)
    throw new ProfileFault(["--quick and --read-only exclude each other. Give one of them."]);
  const mode = flags.readOnly ? "read-only" : flags.quick ? "quick" : "full";
  return {
    ...defaultOptions,
    mode,
    only: ids("--only", flags.only),
    skip: ids("--skip", flags.skip),
    rounds: flags.rounds ?? (mode === "quick" ? QUICK_ROUNDS : defaultOptions.rounds),
    connections: flags.connections ?? defaultOptions.connections,
    exclusive: flags.exclusive ?? false,
    allowIncomplete: flags.allowIncomplete ?? false,
    rate: flags.rate,
    budget: flags.budget ?? profile.budget ?? defaultOptions.budget,
    arguments: withoutCredentials(words),
    gentle: flags.gentle ?? false,
    keepFailing: flags.keepFailing ?? false,
    program: programName(process.argv, process.env, process.cwd()),
    expected: flags.expected === undefined ? [] : readExpected(readTextFile(flags.expected)),
    trust: trustSentences(),
  };
}

function ids(flag: string, text: string | undefined): string[] {
  const names = (text ?? "")
    .split(",")
    .map((name) => name.trim().toUpperCase())
    .filter((name) => name !== "");
  const known = new Set<string>([...catalogue.map(({ id }) => id), ...FAMILIES]);
  const unknown = names.filter((name) => !known.has(name));
  if (unknown.length > 0)
    throw new ProfileFault(
      unknown.map((name) => `${flag}: there is no rule or family ${name}. The command \`rules\` lists them.`),
    );
  return names;
}

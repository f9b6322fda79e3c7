/** Reads the flags back that a report or a journal has kept. Masked credentials come from the environment. */
import { Command } from "commander";
import { addRunOptions, type RunFlags } from "./run-flags.ts";

/**
 * The flags in the words that follow `run` or `init`, whose address and own options are passed over. A header that stands
 * there as `$NAME` is one from the environment.
 */
export function recordedFlags(words: readonly string[]): RunFlags {
  const command = addRunOptions(new Command("run"))
    .exitOverride()
    .allowUnknownOption()
    .allowExcessArguments();
  command.parse([...words], { from: "user" });
  const { header, limitedHeader, otherTenantHeader, metricsHeader, ...flags } = command.opts<RunFlags>();
  const both = (literal: readonly string[] = [], fromEnv: readonly string[] = []) => {
    const all = [...literal, ...fromEnv];
    return all.length === 0 ? undefined : all;
  };
  return {
    ...flags,
    headerEnv: both(header, flags.headerEnv),
    limitedHeaderEnv: both(limitedHeader, flags.limitedHeaderEnv),
    otherTenantHeaderEnv: both(otherTenantHeader, flags.otherTenantHeaderEnv),
    metricsHeaderEnv: both(metricsHeader, flags.metricsHeaderEnv),
  };
}

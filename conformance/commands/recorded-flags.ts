/** Reads the flags back that a report or a journal has kept. Masked credentials come from the environment. */
import { Command } from "commander";
import type { RunFlags } from "./run-flags.ts";
import { addRunOptions } from "./run-options.ts";

/** The flags in the words that follow `run`. */
function flagsIn(words: readonly string[]): RunFlags {
  const command = addRunOptions(new Command("run")).exitOverride();
  command.parse([...words], { from: "user" });
  return command.opts<RunFlags>();
}

/** The same of masked words: a header that stands there as `$NAME` is one from the environment. */
export function recordedFlags(words: readonly string[]): RunFlags {
  const { header, limitedHeader, otherTenantHeader, metricsHeader, ...flags } = flagsIn(words);
  const withEnv = (literal: string[] | undefined, own: string[] | undefined) => {
    const all = [...(literal ?? []), ...(own ?? [])];
    return all.length === 0 ? undefined : all;
  };
  const found: RunFlags = { ...flags };
  const assign = (
    key: "headerEnv" | "limitedHeaderEnv" | "otherTenantHeaderEnv" | "metricsHeaderEnv",
    value: string[] | undefined,
  ) => {
    if (value !== undefined) found[key] = value;
  };
  assign("headerEnv", withEnv(header, flags.headerEnv));
  assign("limitedHeaderEnv", withEnv(limitedHeader, flags.limitedHeaderEnv));
  assign("otherTenantHeaderEnv", withEnv(otherTenantHeader, flags.otherTenantHeaderEnv));
  assign("metricsHeaderEnv", withEnv(metricsHeader, flags.metricsHeaderEnv));
  return found;
}

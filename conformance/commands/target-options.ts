/** The flags that say which deployment is meant and with which credentials; shared by several commands. */
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { messageOf } from "../target/message.ts";
import { type Profile, ProfileFault, type ProfileFlags, readProfile } from "../target/profile.ts";

/** `profile` is a path. */
export type TargetFlags = Omit<ProfileFlags, "profileText"> & { profile?: string };

const repeated = (value: string, former: string[] | undefined): string[] => [...(former ?? []), value];

/** A number of a flag, within bounds. @throws ProfileFault */
export function numberFlag(name: string, min: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isFinite(value) || value < min)
      throw new ProfileFault([`${name}: ${text} must be a number, at least ${min}.`]);
    return value;
  };
}

export function addTargetOptions(command: Command): Command {
  return command
    .option("--base-url <url>", "what stands before /customers, any path prefix included")
    .option("--profile <file>", "TOML file that describes the deployment; a flag wins over it")
    .option(
      "--header <line>",
      "'Name: value' of the main caller; repeatable; stays in the shell's history",
      repeated,
    )
    .option(
      "--header-env <line>",
      "'Name: Bearer $VAR', filled in from the environment; repeatable",
      repeated,
    )
    .option(
      "--header-command <command>",
      "a command that prints header lines; run again on 401, at most once a minute",
    )
    .option("--limited-header <line>", "credentials of a caller who may not read some field", repeated)
    .option("--limited-header-env <line>", "the same from the environment", repeated)
    .option(
      "--limited-denied <field>",
      "the field that this caller may not read; else the first that is refused",
    )
    .option("--other-tenant-header <line>", "credentials of a caller of another tenant", repeated)
    .option("--other-tenant-header-env <line>", "the same from the environment", repeated)
    .option(
      "--customer-id <id>",
      "a customer that may be written; repeatable; without any, customers are created",
      repeated,
    )
    .option(
      "--metrics-url <url>",
      "where the counters are; repeatable, one for each replica: they are added up",
      repeated,
    )
    .option("--metrics-header <line>", "credentials for the metrics", repeated)
    .option("--metrics-header-env <line>", "the same from the environment", repeated)
    .option("--proxy <url>", "an HTTP proxy, in place of http_proxy, https_proxy and no_proxy")
    .option("--cacert <file>", "PEM file of the CA that signed the service's certificate")
    .option("--cert <file>", "PEM file of a client certificate")
    .option("--key <file>", "PEM file of its key")
    .option("--timeout <ms>", "milliseconds to wait for a reply (10000)", numberFlag("--timeout", 50));
}

/** @throws ProfileFault */
export function profileOf(flags: TargetFlags, env: Readonly<Record<string, string | undefined>>): Profile {
  return readProfile(profileFlags(flags), env);
}

function profileFlags({ profile, ...flags }: TargetFlags): ProfileFlags {
  return profile === undefined ? flags : { ...flags, profileText: readTextFile(profile) };
}

/** @throws ProfileFault where the file can't be read. */
export function readTextFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ProfileFault([`${path} can't be read: ${messageOf(error)}`]);
  }
}

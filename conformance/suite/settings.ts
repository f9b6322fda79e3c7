/** Settings of the bun test front, from environment variables; lists are separated by line breaks or commas. */
import { flagsIn } from "../commands/recorded-flags.ts";
import { runOptions } from "../commands/run-flags.ts";
import { beginJournal } from "../commands/run-journal.ts";
import { profileOf } from "../commands/target-options.ts";
import type { RunOptions } from "../run/options.ts";
import { type Profile, ProfileFault } from "../target/profile.ts";

/** Variable to flag. A list may hold several values; a header holds commas, so its list is split at line breaks. */
const VARIABLES = {
  BASE_URL: ["--base-url", "one"],
  PROFILE: ["--profile", "one"],
  HEADER: ["--header", "lines"],
  HEADER_ENV: ["--header-env", "lines"],
  LIMITED_HEADER: ["--limited-header", "lines"],
  LIMITED_HEADER_ENV: ["--limited-header-env", "lines"],
  LIMITED_DENIED: ["--limited-denied", "one"],
  OTHER_TENANT_HEADER: ["--other-tenant-header", "lines"],
  OTHER_TENANT_HEADER_ENV: ["--other-tenant-header-env", "lines"],
  CUSTOMER_ID: ["--customer-id", "commas"],
  METRICS_URL: ["--metrics-url", "commas"],
  METRICS_HEADER: ["--metrics-header", "lines"],
  METRICS_HEADER_ENV: ["--metrics-header-env", "lines"],
  ONLY: ["--only", "one"],
  SKIP: ["--skip", "one"],
  EXPECTED: ["--expected", "one"],
  ROUNDS: ["--rounds", "one"],
  RATE: ["--rate", "one"],
  BUDGET: ["--budget", "one"],
  QUICK: ["--quick", "switch"],
  READ_ONLY: ["--read-only", "switch"],
  EXCLUSIVE: ["--exclusive", "switch"],
  ALLOW_INCOMPLETE: ["--allow-incomplete", "switch"],
} as const satisfies Record<string, readonly [string, "one" | "lines" | "commas" | "switch"]>;

type Environment = Readonly<Record<string, string | undefined>>;

/** @throws ProfileFault */
export function suiteSettings(env: Environment): { profile: Profile; options: RunOptions } {
  const words = Object.entries(VARIABLES).flatMap(([variable, [flag, kind]]) => {
    const text = env[variable];
    if (text === undefined || text === "") return [];
    if (kind === "switch") return text === "0" || text === "false" ? [] : [flag];
    const values = kind === "one" ? [text] : text.split(kind === "lines" ? "\n" : ",");
    return values.flatMap((value) => [flag, value.trim()]);
  });
  if (!words.includes("--base-url") && !words.includes("--profile"))
    throw new ProfileFault(["BASE_URL is not set: BASE_URL=http://… bun test ./conformance/suite/"]);
  const flags = flagsIn(words);
  const profile = profileOf(flags, env);
  const options = runOptions(flags, profile, words);
  return { profile, options: { ...options, journal: beginJournal(profile, options, env) } };
}

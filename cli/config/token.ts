/** The bearer token: from stdin, a file, the environment or the profile, and never from the command line itself. */
import { UsageError } from "../outcome/failure.ts";
import type { Profile } from "./profile-file.ts";
import { type Environment, fromEnvironment, readSettingFile } from "./setting-source.ts";
import type { Flags } from "./settings.ts";

export async function chosenToken(sources: {
  flags: Flags;
  env: Environment;
  profile: Profile;
  readStdin: () => Promise<string>;
}): Promise<{ value: string; from: "flag" | "environment" | "profile" } | undefined> {
  const { flags, env, profile, readStdin } = sources;
  if (flags.tokenStdin && flags.tokenFile !== undefined) {
    throw new UsageError("--token-stdin and --token-file can't be given together");
  }
  if (flags.tokenStdin) return { value: checkedToken(await readStdin(), "--token-stdin"), from: "flag" };
  if (flags.tokenFile !== undefined) {
    return {
      value: checkedToken(readSettingFile(flags.tokenFile, "--token-file"), "--token-file"),
      from: "flag",
    };
  }
  const fromVariable = fromEnvironment(env, "CUSTOMERS_TOKEN");
  if (fromVariable !== undefined) {
    return { value: checkedToken(fromVariable, "CUSTOMERS_TOKEN"), from: "environment" };
  }
  return profile.token === undefined
    ? undefined
    : { value: checkedToken(profile.token, "the profile's token"), from: "profile" };
}

/** A token travels in a header: visible ASCII, no spaces. The value itself is never told. */
export function checkedToken(text: string, source: string): string {
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new UsageError(
    token === "" ? `${source} is empty` : `${source} holds spaces or characters that a token can't have`,
    "Give the token alone, on one line.",
  );
}

/** The bearer token: from standard input, a file, the environment or the profile; never from the command line itself. */
import type { Deployment } from "./deployment.ts";
import type { Flags } from "./flags.ts";
import { readSettingFile } from "./setting-source.ts";
import { checkedToken } from "./token-text.ts";

export type Token = {
  value: string;
  source: "--token-stdin" | "--token-file" | "CUSTOMERS_TOKEN" | "profile";
};

export async function chosenToken(
  flags: Flags,
  { environmentToken, profile }: Pick<Deployment, "environmentToken" | "profile">,
  readStdin: () => Promise<string>,
): Promise<Token | undefined> {
  const token = (text: string, source: Token["source"], words: string = source): Token => ({
    value: checkedToken(text, words),
    source,
  });
  if (flags.tokenStdin) return token(await readStdin(), "--token-stdin");
  if (flags.tokenFile !== undefined) {
    return token(readSettingFile(flags.tokenFile, "--token-file"), "--token-file");
  }
  if (environmentToken !== undefined) return token(environmentToken, "CUSTOMERS_TOKEN");
  return profile.token === undefined ? undefined : token(profile.token, "profile", "the profile's token");
}

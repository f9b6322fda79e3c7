/** The bearer token: from standard input, a file, the environment, the profile or the keyring; never from the command line itself. */
import { statSync } from "node:fs";
import { UsageError } from "../outcome/failure.ts";
import type { Deployment } from "./deployment.ts";
import type { Flags } from "./flags.ts";
import { readFromKeyring } from "./keyring.ts";
import { readSettingFile } from "./sources/setting-source.ts";
import { checkedToken } from "./values/token-text.ts";

export type Token = {
  value: string;
  source: "--token-stdin" | "--token-file" | "CUSTOMERS_TOKEN" | "profile" | "keyring";
};

/**
 * Where others can put in a token of their own. That they can read it is no warning: Docker and Kubernetes mount secrets so,
 * and a job can't change it.
 */
export function tokenFileWarnings({ tokenFile }: Flags): string[] {
  const stats = tokenFile === undefined ? undefined : statSync(tokenFile, { throwIfNoEntry: false });
  if (!stats?.isFile() || (stats.mode & 0o022) === 0) return [];
  const mode = (stats.mode & 0o777).toString(8).padStart(4, "0");
  return [
    `warning: ${tokenFile} has mode ${mode}, so others can change the token; correct that with: chmod 600 ${tokenFile}`,
  ];
}

/** For standard input that is too large for a token. */
export const TOKEN_ALONE = "Give the token alone there, or as --token-file PATH.";

export async function chosenToken(
  flags: Flags,
  { environmentToken, profile }: Pick<Deployment, "environmentToken" | "profile">,
  readStdin: (instead: string) => Promise<string>,
): Promise<Token | undefined> {
  const token = (text: string, source: Token["source"], words: string = source): Token => ({
    value: checkedToken(text, words),
    source,
  });
  if (flags.tokenStdin) return token(await readStdin(TOKEN_ALONE), "--token-stdin");
  if (flags.tokenFile !== undefined) {
    return token(await readSettingFile(flags.tokenFile, "--token-file"), "--token-file");
  }
  if (environmentToken !== undefined) return token(environmentToken, "CUSTOMERS_TOKEN");
  if (profile.token !== undefined) return token(profile.token, "profile", "the profile's token");
  return profile.keyring === undefined ? undefined : token(await ofKeyring(profile.keyring), "keyring");
}

async function ofKeyring(entry: string): Promise<string> {
  const reply = await readFromKeyring(entry);
  if (reply.kind === "done" && reply.value !== null) return reply.value;
  const why = reply.kind === "failed" ? reply.why : "does not have it";
  throw new UsageError(
    `the profile's token is in the system keyring, which ${why}; nothing was sent`,
    "Unlock the keyring, or store the token in the profile file instead: customers login --store file",
  );
}

/** Profiles of the file, for the commands that are about them: profile, login, logout. */
import { deleteFromKeyring } from "../../config/keyring.ts";
import { type ProfileFile, profilePath, readProfileFile } from "../../config/profile-file.ts";
import { profileSecrets } from "../../config/profile-settings.ts";
import type { Invocation } from "../../invocation.ts";
import { type Failure, failure } from "../../outcome/failure.ts";
import { nearestOf } from "../../outcome/nearest.ts";

export async function load({ env, messages }: Pick<Invocation, "env" | "messages">): Promise<ProfileFile> {
  const file = await readProfileFile(profilePath(env));
  for (const profile of file.profiles.values()) messages.hide(profileSecrets(profile));
  for (const warning of file.warnings) messages.caution(warning);
  return file;
}

/** @param entry of the keyring, where the token of a profile that no longer uses it stands there. */
export async function forgetToken(entry: string | undefined): Promise<Failure | undefined> {
  if (entry === undefined) return undefined;
  const reply = await deleteFromKeyring(entry);
  if (reply.kind === "done") return undefined;
  return failure(
    "failure",
    `no profile uses the token any more, but it is still in the system keyring, which ${reply.why}`,
    `Unlock the keyring, and delete the entry "${entry}" of the service customers there.`,
  );
}

export function unknownProfile(name: string, file: ProfileFile) {
  const known = [...file.profiles.keys()];
  const near = nearestOf(name, known);
  return failure(
    "usage",
    name === "" ? "no profile is in use" : `there is no profile "${name}" in ${file.path}`,
    near !== undefined
      ? `Did you mean "${near}"?`
      : known.length === 0
        ? "Make one with: customers profile set NAME --url URL"
        : `Known profiles: ${known.join(", ")}.`,
  );
}

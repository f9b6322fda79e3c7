/** Profiles of the file, for the commands that are about them: profile, login, logout. */
import { deleteFromKeyring } from "../../config/keyring.ts";
import {
  changeProfileFile,
  type ProfileContent,
  type ProfileFile,
  profilePath,
  readProfileFile,
} from "../../config/profile/profile-file.ts";
import { profileSecrets } from "../../config/profile/profile-settings.ts";
import type { Invocation } from "../../invocation.ts";
import { type Failure, failure, isFailure } from "../../outcome/failure.ts";
import { nearestOf } from "../../outcome/nearest.ts";
import { untilInterrupted } from "../../outcome/until-interrupted.ts";

type Reader = Pick<Invocation, "env" | "messages" | "interrupted">;

export async function load({ env, messages, interrupted }: Reader): Promise<ProfileFile> {
  const file = await untilInterrupted(readProfileFile(profilePath(env)), interrupted);
  for (const profile of file.profiles.values()) messages.hide(profileSecrets(profile));
  for (const warning of file.warnings) messages.caution(warning);
  return file;
}

/** Changes the file, and forgets the token in the keyring that no profile uses any more. @param done a note. */
export async function changeProfiles(
  invocation: Reader,
  change: (file: ProfileFile) => ProfileContent | Failure,
  done: (path: string) => string,
): Promise<Failure | undefined> {
  const { path } = await load(invocation);
  let unused: string | undefined;
  const refused = await changeProfileFile(path, (file) => {
    const changed = change(file);
    if (!isFailure(changed)) {
      const left = entriesOf(changed.profiles);
      unused = entriesOf(file.profiles).find((entry) => !left.includes(entry));
    }
    return changed;
  });
  if (refused === undefined) invocation.messages.note(done(path));
  return refused ?? (await forgetToken(unused));
}

function entriesOf(profiles: ProfileFile["profiles"]): string[] {
  return [...profiles.values()].flatMap(({ keyring }) => keyring ?? []);
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

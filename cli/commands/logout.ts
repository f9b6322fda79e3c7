import { changeProfileFile } from "../config/profile/profile-file.ts";
import { failure } from "../outcome/failure.ts";
import type { RegisterCommand } from "./common/command.ts";
import { forgetToken, load, unknownProfile } from "./common/stored-profile.ts";

export const registerLogout: RegisterCommand = (program, run) => {
  program
    .command("logout")
    .description("remove the stored token from the profile; it stays valid on the server")
    .action(
      run(async (invocation) => {
        const { env, flags, messages } = invocation;
        const file = await load(invocation);
        const name = flags.profile ?? (env["CUSTOMERS_PROFILE"] || undefined) ?? file.current ?? "default";
        let entry: string | undefined;
        const refused = await changeProfileFile(file.path, (now) => {
          const profile = now.profiles.get(name);
          if (profile === undefined) return unknownProfile(name, now);
          const { token, keyring, ...rest } = profile;
          entry = keyring;
          if ((token ?? keyring) === undefined) {
            return failure("usage", `profile "${name}" holds no token`, "See: customers profile show");
          }
          return { ...now, profiles: new Map([...now.profiles, [name, rest]]) };
        });
        const left = refused ?? (await forgetToken(entry));
        if (left !== undefined) return left;
        const where = entry === undefined ? file.path : "the system keyring";
        messages.note(
          `Logged out: the token of profile "${name}" is removed from ${where}. It stays valid until the server revokes it.`,
        );
        return undefined;
      }, "no-profile"),
    );
};

/** Which deployment a command goes to, and what may be sent there: a pure choice between flags, environment and profiles. */
import { UsageError } from "../outcome/failure.ts";
import type { Flags } from "./flags.ts";
import type { ProfileFile } from "./profile/profile-file.ts";
import { holdsCredentials, isFor, type Profile } from "./profile/profile-settings.ts";
import { type Environment, fromEnvironment } from "./sources/setting-source.ts";
import { originOf, parseBaseUrl } from "./values/base-url.ts";

export type Deployment = {
  url: string | undefined;
  /** The setting that named the URL, for `customers config`. */
  urlSource: string | undefined;
  /** The profile whose settings are used; undefined where there is none, or where it belongs to another server. */
  profileName: string | undefined;
  /** What named it. */
  profileSource: NamedProfile["source"] | undefined;
  profile: Profile;
  /** A profile of this origin that asks before writes, whichever profile is used. */
  protectedBy: string | undefined;
  /** CUSTOMERS_TOKEN, unless it belongs to another server or an explicit profile outranks it. */
  environmentToken: string | undefined;
  warnings: readonly string[];
};

type Sources = { flags: Pick<Flags, "url" | "profile">; env: Environment; file: ProfileFile };

/**
 * An explicit flag outranks the environment, and the environment outranks the profile that `profile use` chose, each
 * as a whole: a URL of one and a token of another never meet by accident. Two settings of one rank that name different
 * servers are refused (UsageError), since either could be the one that was forgotten.
 */
export function chooseDeployment({ flags, env, file }: Sources): Deployment {
  const flagUrl = flags.url === undefined ? undefined : parseBaseUrl(flags.url, "--url");
  const variable = fromEnvironment(env, "CUSTOMERS_URL");
  const variableUrl = variable === undefined ? undefined : parseBaseUrl(variable, "CUSTOMERS_URL");
  const named = namedProfile(flags, env, file);
  const profile = named === undefined ? {} : profileNamed(named.name, file);
  const profileUrl = profile.url === undefined ? undefined : parseBaseUrl(profile.url, "url");
  const profileWords = `profile "${named?.name}" (${named?.source})`;

  if (named?.source === "--profile" && differ(flagUrl, profileUrl)) {
    throw disagreement(`--url names ${flagUrl}`, `${profileWords} belongs to ${profileUrl}`);
  }
  if (named?.source === "CUSTOMERS_PROFILE" && flagUrl === undefined && differ(variableUrl, profileUrl)) {
    throw disagreement(`CUSTOMERS_URL names ${variableUrl}`, `${profileWords} belongs to ${profileUrl}`);
  }
  const ofProfile = [profileWords, profileUrl] as const;
  const ofVariable = ["CUSTOMERS_URL", variableUrl] as const;
  const ranked = named?.source === "--profile" ? [ofProfile, ofVariable] : [ofVariable, ofProfile];
  const [urlSource, url] = [["--url", flagUrl] as const, ...ranked].find(
    ([, candidate]) => candidate !== undefined,
  ) ?? [undefined, undefined];
  const origin = originOf(url);

  const warnings: string[] = [];
  const used = isFor(profile, origin);
  const token = fromEnvironment(env, "CUSTOMERS_TOKEN");
  const tokenFits = variableUrl === undefined || originOf(variableUrl) === origin;
  const outranked = named?.source === "--profile" && (profile.token ?? profile.keyring) !== undefined;
  if (!used && holdsCredentials(profile) && (flagUrl !== undefined || token === undefined)) {
    warnings.push(
      `warning: profile "${named?.name}" belongs to ${originOf(profileUrl)}: its token and its other settings are not used for ${origin}`,
    );
  }
  if (token !== undefined && !tokenFits && !outranked) {
    warnings.push(
      `warning: CUSTOMERS_TOKEN belongs to ${originOf(variableUrl)} (CUSTOMERS_URL) and is not sent to ${origin}`,
    );
  }
  return {
    url,
    urlSource,
    profileName: used ? named?.name : undefined,
    profileSource: named?.source,
    profile: used ? profile : {},
    protectedBy: protectingProfile(used ? named?.name : undefined, origin, file),
    environmentToken: tokenFits && !outranked ? token : undefined,
    warnings,
  };
}

type NamedProfile = { name: string; source: "--profile" | "CUSTOMERS_PROFILE" | "profile use" };

function namedProfile(
  flags: Pick<Flags, "profile">,
  env: Environment,
  file: ProfileFile,
): NamedProfile | undefined {
  if (flags.profile !== undefined) return { name: flags.profile, source: "--profile" };
  const variable = fromEnvironment(env, "CUSTOMERS_PROFILE");
  if (variable !== undefined) return { name: variable, source: "CUSTOMERS_PROFILE" };
  return file.current === undefined ? undefined : { name: file.current, source: "profile use" };
}

/** Throws where the file has no such profile, or where a setting of it is wrong. */
function profileNamed(name: string, file: ProfileFile): Profile {
  const profile = file.profiles.get(name);
  const [problem] = file.problems.get(name) ?? [];
  if (problem !== undefined) {
    throw new UsageError(
      `profile "${name}" in ${file.path}: ${problem}`,
      `Correct the file, or remove the setting with: customers profile set ${name} --unset SETTING`,
    );
  }
  if (profile !== undefined) return profile;
  const known = [...file.profiles.keys()];
  throw new UsageError(
    `there is no profile "${name}" in ${file.path}`,
    known.length === 0
      ? `Make it with: customers profile set ${name} --url https://…`
      : `Known profiles: ${known.join(", ")}.`,
  );
}

/** `--url` and the environment must not bypass the protection: any profile of the same origin counts. */
function protectingProfile(
  used: string | undefined,
  origin: string | undefined,
  { profiles }: ProfileFile,
): string | undefined {
  if (used !== undefined && profiles.get(used)?.protected) return used;
  for (const [name, { url, protected: asks }] of profiles) {
    if (asks && origin !== undefined && originOf(url) === origin) return name;
  }
  return undefined;
}

function differ(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

function disagreement(one: string, other: string): UsageError {
  return new UsageError(`${one}, and ${other}; nothing was sent`, "Give only one of the two.");
}

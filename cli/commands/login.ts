import { Option } from "@commander-js/extra-typings";
import type { Flags } from "../config/flags.ts";
import { mayHaveKeyring, storeInKeyring } from "../config/keyring.ts";
import { changeProfileFile, checkProfileFile } from "../config/profile/profile-file.ts";
import type { Profile } from "../config/profile/profile-settings.ts";
import { readSettings } from "../config/settings.ts";
import { fromEnvironment, readSettingFile } from "../config/sources/setting-source.ts";
import { TOKEN_ALONE } from "../config/token.ts";
import { parseBaseUrl } from "../config/values/base-url.ts";
import { checkedToken } from "../config/values/token-text.ts";
import { openCustomersApi } from "../http/customers-api.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { type TokenEnd, tokenEndWarning } from "../outcome/token-end.ts";
import { untilInterrupted } from "../outcome/until-interrupted.ts";
import type { RegisterCommand } from "./common/command.ts";
import { refusedByService } from "./common/service-check.ts";
import { forgetToken, load } from "./common/stored-profile.ts";

export const registerLogin: RegisterCommand = (program, run) => {
  program
    .command("login")
    .description(
      "read a token from a prompt or from stdin, check it, and store it in the profile or in the system keyring",
    )
    .addOption(
      new Option(
        "--store <place>",
        "where the token is kept (default: the system keyring where there is one, else the profile file)",
      ).choices(["keyring", "file"]),
    )
    .action(run((invocation, { store }) => login(invocation, invocation.flags, store), "no-profile"));
};

async function login(
  invocation: Invocation,
  options: Flags,
  store: "keyring" | "file" | undefined,
): Promise<Ending> {
  const { env, messages, terminal } = invocation;
  const file = await load(invocation);
  const name = options.profile ?? (env["CUSTOMERS_PROFILE"] || undefined) ?? file.current ?? "default";
  const before = file.profiles.get(name) ?? {};
  const address = loginUrl(options, env, name, before);
  if (typeof address !== "string") return address;
  const url = parseBaseUrl(address, "url");
  await checkProfileFile(file.path);
  const token = await readToken(options, invocation, `Token for ${url}: `);
  if (invocation.interrupted.aborted) return failure("interrupted", "interrupted; no token was stored");
  messages.hide([token]);
  const { keyring: _, ...kept } = before;
  const profile: Profile = { ...kept, url: address, token };
  // Checked with the settings that later commands will have: the profile's proxy, certificates and headers.
  const { tokenFile: __, tokenStdin: ___, ...flags } = options;
  const reading = readSettings({
    flags: { ...flags, url: address, profile: name },
    env: { ...env, CUSTOMERS_TOKEN: undefined, CUSTOMERS_URL: undefined },
    file: { ...file, profiles: new Map([[name, profile]]), problems: new Map(), warnings: [] },
    readStdin: terminal.readStdin,
  });
  const settings = await untilInterrupted(reading, invocation.interrupted);
  messages.hide(settings.secrets);
  const api = openCustomersApi(settings, messages);
  let tokenEnd: TokenEnd | undefined;
  try {
    const ports = { transport: api, deadline: invocation.deadline() };
    const refused = await refusedByService(ports);
    if (refused !== undefined) return { ...refused, message: `the token was not stored: ${refused.message}` };
    tokenEnd = api.takeTokenEnd();
  } finally {
    await api.close();
  }
  const place = await keep(token, name, env, store);
  if (place.kind === "refused") return place.failure;
  let earlier: string | undefined;
  const refused = await changeProfileFile(file.path, ({ current = name, profiles }) => {
    const { keyring, token: ___, ...now } = profiles.get(name) ?? {};
    earlier = keyring;
    // Another command may have pointed the profile elsewhere: nobody asked for the token to be sent there.
    if (now.url !== before.url && now.url !== address) return pointedElsewhere(name, now.url);
    return { current, profiles: new Map([...profiles, [name, { ...now, url: address, ...place.settings }]]) };
  });
  // Of two entries one is of no use now, and must not stay.
  const unused = refused === undefined ? earlier : place.settings.keyring;
  const left = await forgetToken(unused);
  if (left !== undefined) messages.warn(`warning: ${left.message}`);
  if (refused !== undefined) return refused;
  const where = place.settings.keyring === undefined ? file.path : `system keyring, ${file.path}`;
  if (place.why !== undefined) messages.note(`The system keyring ${place.why}.`);
  messages.note(`Logged in to ${url}. Token saved in profile "${name}" (${where}).`);
  if (tokenEnd !== undefined) messages.caution(tokenEndWarning(tokenEnd, settings));
  return undefined;
}

type Place =
  | { kind: "kept"; settings: Pick<Profile, "token" | "keyring">; why?: string }
  | { kind: "refused"; failure: Failure };

/** A new entry each time: until the profile file is written, the earlier one must hold the earlier token. */
async function keep(
  token: string,
  profile: string,
  env: Invocation["env"],
  store: "keyring" | "file" | undefined,
): Promise<Place> {
  if (store === "file" || (store === undefined && !mayHaveKeyring(env)))
    return { kind: "kept", settings: { token } };
  const keyring = `${profile} ${crypto.randomUUID()}`;
  const reply = await storeInKeyring(keyring, token);
  if (reply.kind === "done") return { kind: "kept", settings: { keyring } };
  if (store === undefined) return { kind: "kept", settings: { token }, why: reply.why };
  const message = `the token was not stored: the system keyring ${reply.why}`;
  return { kind: "refused", failure: failure("failure", message, "Give --store file for the profile file.") };
}

/**
 * The URL as it was written, which the profile keeps. CUSTOMERS_URL must not quietly move a profile to another
 * server: the token in it would go there too.
 */
function loginUrl(options: Flags, env: Invocation["env"], name: string, before: Profile): string | Failure {
  const { url: stored } = before;
  const variable = fromEnvironment(env, "CUSTOMERS_URL");
  if (options.url !== undefined) return options.url;
  if (stored === undefined)
    return (
      variable ??
      failure("usage", `profile "${name}" has no server yet`, "Give it once: customers login --url URL")
    );
  if (variable === undefined || options.profile !== undefined) return stored;
  const [theirs, own] = [parseBaseUrl(variable, "CUSTOMERS_URL"), parseBaseUrl(stored, "url")];
  if (theirs === own) return stored;
  return failure(
    "usage",
    `CUSTOMERS_URL names ${theirs}, and profile "${name}" belongs to ${own}; nothing was sent`,
    "Say which is meant with --url URL or --profile NAME.",
  );
}

function pointedElsewhere(name: string, url: string | undefined): Failure {
  return failure(
    "failure",
    `the token was not stored: profile "${name}" was changed meanwhile and ${url === undefined ? "has no server any more" : `belongs to ${url} now`}`,
    "Look at it with customers profile show, and log in again.",
  );
}

/** Empty where the operator interrupted. */
async function readToken(
  options: Flags,
  { terminal, interrupted }: Invocation,
  question: string,
): Promise<string> {
  const { tokenFile } = options;
  if (tokenFile !== undefined) {
    const text = await untilInterrupted(readSettingFile(tokenFile, "--token-file"), interrupted);
    return checkedToken(text, "--token-file");
  }
  if (!terminal.interactive || options.tokenStdin)
    return checkedToken(await terminal.readStdin(TOKEN_ALONE), "stdin");
  const answer = await terminal.ask(question, { secret: true });
  return interrupted.aborted ? "" : checkedToken(answer ?? "", "the answer");
}

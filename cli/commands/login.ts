import { readFileSync } from "node:fs";
import { parseCustomer } from "../client/customer.ts";
import { readWithRetry } from "../client/read-retry.ts";
import { refusalOf } from "../client/refusal.ts";
import type { Reply } from "../client/reply.ts";
import { readCustomer } from "../client/request.ts";
import { parseBaseUrl } from "../config/base-url.ts";
import type { Flags } from "../config/flags.ts";
import { changeProfileFile } from "../config/profile-file.ts";
import type { Profile } from "../config/profile-settings.ts";
import { readSettings } from "../config/settings.ts";
import { checkedToken } from "../config/token-text.ts";
import { openCustomersApi } from "../http/customers-api.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { type Failure, failure, UsageError } from "../outcome/failure.ts";
import { readFailure } from "../outcome/reply-failure.ts";
import type { RegisterCommand } from "./command.ts";
import { load } from "./profile.ts";

/** No service assigns it: a reading of it tells whether the credentials are known, and shows nobody's data. */
const NO_CUSTOMER = "00000000-0000-0000-0000-000000000000";

export const registerLogin: RegisterCommand = (program, run) => {
  program
    .command("login")
    .description("read a token from a prompt or from stdin, check it, and store it in the profile")
    .action(run((invocation, _, options) => login(invocation, options), "no-profile"));
};

async function login(invocation: Invocation, options: Flags): Promise<Ending> {
  const { env, messages, terminal } = invocation;
  const file = await load(invocation);
  const name = options.profile ?? (env["CUSTOMERS_PROFILE"] || undefined) ?? file.current ?? "default";
  const before = file.profiles.get(name) ?? {};
  const url = loginUrl(options, env, name, before);
  if (typeof url !== "string") return url;
  const token = await readToken(options, invocation, `Token for ${url}: `);
  messages.hide([token]);
  const profile: Profile = { ...before, url, token };
  // Checked with the settings that later commands will have: the profile's proxy, certificates and headers.
  const { tokenFile: _, tokenStdin: __, ...flags } = options;
  const settings = await readSettings({
    flags: { ...flags, url, profile: name },
    env: { ...env, CUSTOMERS_TOKEN: undefined, CUSTOMERS_URL: undefined },
    file: { ...file, profiles: new Map([[name, profile]]), problems: new Map(), warnings: [] },
    readStdin: terminal.readStdin,
  });
  messages.hide(settings.secrets);
  const api = openCustomersApi(settings, messages);
  try {
    const reply = await readWithRetry(api, readCustomer(NO_CUSTOMER, undefined), invocation.deadline());
    const refused = refusal(reply, url);
    if (refused !== undefined) return { ...refused, message: `the token was not stored: ${refused.message}` };
  } finally {
    await api.close();
  }
  const refused = await changeProfileFile(file.path, ({ current = name, profiles }) => {
    const now = profiles.get(name) ?? {};
    // Another command may have pointed the profile elsewhere: nobody asked for the token to be sent there.
    if (now.url !== before.url && now.url !== url) return pointedElsewhere(name, now.url);
    return { current, profiles: new Map([...profiles, [name, { ...now, url, token }]]) };
  });
  if (refused !== undefined) return refused;
  messages.note(`Logged in to ${url}. Token saved in profile "${name}" (${file.path}).`);
  return undefined;
}

/** The service answers that there is no such customer: whoever shows a page or something else is another service. */
function refusal(reply: Reply, url: string): Failure | undefined {
  if (reply.kind === "complete" && /\bhtml\b/i.test(reply.fields.get("content-type") ?? "")) {
    return failure(
      "failure",
      `${url} answers with a web page (${reply.status}), not as a customer service`,
      "Check the URL: it is the base URL of the service. A proxy or a login page on the way answers like this too.",
    );
  }
  if (reply.kind === "complete" && reply.status === 404) return undefined;
  if (
    reply.kind === "complete" &&
    reply.status === 200 &&
    parseCustomer(reply.text, undefined) !== undefined
  ) {
    return undefined;
  }
  return readFailure(refusalOf(reply, "reading"), { what: "the test customer", url });
}

/** CUSTOMERS_URL must not quietly move a profile to another server: the token in it would go there too. */
function loginUrl(options: Flags, env: Invocation["env"], name: string, before: Profile): string | Failure {
  if (options.url !== undefined) return parseBaseUrl(options.url, "--url");
  const stored = before.url === undefined ? undefined : parseBaseUrl(before.url, "url");
  const variable = env["CUSTOMERS_URL"] ? parseBaseUrl(env["CUSTOMERS_URL"], "CUSTOMERS_URL") : undefined;
  if (
    stored !== undefined &&
    (variable === undefined || variable === stored || options.profile !== undefined)
  ) {
    return stored;
  }
  if (variable !== undefined && stored === undefined) return variable;
  return stored === undefined
    ? failure("usage", `profile "${name}" has no server yet`, "Give it once: customers login --url URL")
    : failure(
        "usage",
        `CUSTOMERS_URL names ${variable}, and profile "${name}" belongs to ${stored}; nothing was sent`,
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

async function readToken(options: Flags, { terminal }: Invocation, question: string): Promise<string> {
  if (options.tokenFile !== undefined) {
    try {
      return checkedToken(readFileSync(options.tokenFile, "utf8"), "--token-file");
    } catch (error) {
      if (error instanceof UsageError) throw error;
      throw new UsageError(`--token-file: ${options.tokenFile} can't be read`);
    }
  }
  if (!terminal.interactive || options.tokenStdin) return checkedToken(await terminal.readStdin(), "stdin");
  return checkedToken((await terminal.ask(question, { secret: true })) ?? "", "the answer");
}

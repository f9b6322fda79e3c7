import { createUntilDecided } from "../client/creation.ts";
import { memberName, withFieldsOnly } from "../client/customer.ts";
import type { Json } from "../client/json.ts";
import { readCurrent } from "../client/read-customer.ts";
import { type ApiRequest, createCustomer } from "../client/request.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { failure } from "../outcome/failure.ts";
import { inOneSentence, readReason } from "../outcome/reply-failure.ts";
import { counted, creationEnding } from "../outcome/write-ending.ts";
import { printCustomer } from "../output/print-customers.ts";
import type { RegisterCommand } from "./command.ts";
import { confirmWrite } from "./confirm-write.ts";
import { printRequest } from "./dry-run.ts";
import { addFieldsOption, addWithEtagOption, idempotencyKey } from "./options.ts";

type Options = {
  name: string;
  email: string;
  status?: string;
  idempotencyKey?: string;
  dryRun?: boolean;
  yes?: boolean;
  fields?: readonly string[];
  withEtag?: boolean;
};

export const registerCreate: RegisterCommand = (program, run) => {
  const command = program
    .command("create")
    .description("create one customer and print it")
    .requiredOption("--name <name>", "the name")
    .requiredOption("--email <email>", "the e-mail address")
    .option("--status <status>", "the status (default: the server's)")
    .option(
      "--idempotency-key <key>",
      "names this creation, so that repeating it creates once (default: a new one)",
      idempotencyKey,
    )
    .option("--dry-run", "print the request, write nothing")
    .option("-y, --yes", "do not ask");
  addWithEtagOption(addFieldsOption(command)).action(
    run<Options>(async (invocation, _, options) => {
      const key = options.idempotencyKey ?? crypto.randomUUID();
      const request = createCustomer(bodyOf(options, invocation.settings.casing), key);
      if (options.dryRun) {
        await printRequest(invocation, request, undefined);
        invocation.messages.note("dry run: no customer was created; nothing was sent");
        return undefined;
      }
      const refused = await confirmWrite(invocation, "create a customer", options.yes ?? false);
      return refused ?? create(invocation, request, key, options);
    }),
  );
};

function bodyOf({ name, email, status }: Options, casing: "lower" | "pascal"): Map<string, Json> {
  const none = new Map<string, Json>();
  const body = new Map<string, Json>([
    [memberName(none, "name", casing), name],
    [memberName(none, "email", casing), email],
  ]);
  if (status !== undefined) body.set(memberName(none, "status", casing), status);
  return body;
}

async function create(
  invocation: Invocation,
  request: ApiRequest,
  key: string,
  { email, fields, withEtag = false }: Options,
): Promise<Ending> {
  const { api, messages } = invocation;
  const creation = await createUntilDecided(invocation.ports(), request);
  if (creation.kind !== "created") {
    const subject = { what: `the customer ${email}`, url: api.url, fields, method: "POST", collection: true };
    return creationEnding(creation, subject, key);
  }
  const { id, tag, replayed, requestId, attempts } = creation;
  const facts = [counted(attempts, "attempt")];
  if (tag !== undefined) facts.push(`tag ${tag}`);
  if (requestId !== undefined) facts.push(`request id ${requestId}`);
  const how = replayed ? "was created earlier with this idempotency key" : "created";
  messages.note(`customer ${id ?? email} ${how}: ${facts.join("; ")}`);
  // The fields are not asked for in the creation itself: a deployment need not know `fields` there, and a creation
  // that is refused for it would be a pity.
  const picked = creation.customer === undefined ? undefined : withFieldsOnly(creation.customer, fields);
  if (picked !== undefined) return printCustomer(invocation, picked, { fields, withEtag });
  if (id === undefined) {
    const hint = "Find it with: customers list --email EMAIL";
    return failure("failure", `the customer ${email} was created, but the server did not say its id`, hint);
  }
  const reading = await readCurrent(invocation.ports(), id, { fields });
  if (reading.kind === "read") return printCustomer(invocation, reading.customer, { fields, withEtag });
  const reason = readReason(reading, { what: `customer ${id}`, url: api.url, fields });
  // Not its own exit: that would say that nothing was written.
  const claim = `the customer ${email} was created, but ${reason.claim}`;
  return inOneSentence({ ...reason, exit: "failure", claim });
}

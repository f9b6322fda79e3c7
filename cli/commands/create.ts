import { createUntilDecided } from "../client/creation.ts";
import { memberNamed, plainText, spelledUnseen, withFieldsOnly } from "../client/customer.ts";
import type { Json, JsonObject } from "../client/json.ts";
import { readCurrent } from "../client/read-customer.ts";
import { type CreationRequest, createCustomer } from "../client/wire/request.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { amount } from "../outcome/amount.ts";
import { failure, UsageError } from "../outcome/failure.ts";
import { inOneSentence, readReason } from "../outcome/reply-failure.ts";
import { creationEnding } from "../outcome/write-ending.ts";
import { resultOfCreation } from "../outcome/write-result.ts";
import { printCustomer } from "../output/print-customers.ts";
import { printFacts } from "../output/print-facts.ts";
import type { RegisterCommand } from "./common/command.ts";
import { confirmWrite } from "./common/confirm-write.ts";
import { printRequest } from "./common/dry-run.ts";
import { type FieldOptions, fieldValues, once, SET, SET_JSON } from "./common/field-options.ts";
import { checkedResult, FIELDS, idempotencyKey, RESULT, WITH_ETAG, YES } from "./common/options.ts";

export const registerCreate: RegisterCommand = (program, run) => {
  program
    .command("create")
    .description("create one customer and print it")
    .option("--name <name>", "the name", once)
    .option("--email <email>", "the e-mail address", once)
    .option("--status <status>", "the status (default: the server's)", once)
    .option(
      "--idempotency-key <key>",
      "names this creation, so that repeating it creates once (default: a new one)",
      idempotencyKey,
    )
    .option("--dry-run", "print the request, write nothing")
    .addOption(YES)
    .addOption(SET)
    .addOption(SET_JSON)
    .addOption(FIELDS)
    .addOption(WITH_ETAG)
    .addOption(RESULT)
    .action(
      run(async (invocation, options) => {
        const key = options.idempotencyKey ?? crypto.randomUUID();
        const values = creationValues(options);
        checkedResult(options.result, invocation.settings.output);
        const request = createCustomer(spelledUnseen(values, invocation.settings.casing), key);
        if (options.dryRun) {
          await printRequest(invocation, request, undefined);
          invocation.messages.note("dry run: no customer was created; nothing was sent");
          return undefined;
        }
        const refused = await confirmWrite(invocation, "create a customer", options.yes ?? false);
        return refused ?? create(invocation, request, key, { ...options, who: labelOf(values) });
      }),
    );
};

/** Name and email are what every customer has; a deployment that wants other fields gets them by --set. */
function creationValues(options: FieldOptions): Map<string, Json> {
  const values = fieldValues(options);
  for (const field of ["name", "email"] as const) {
    if (memberNamed(values, field) !== undefined || options.set || options.setJson) continue;
    throw new UsageError(
      `required option '--${field} <${field}>' not specified`,
      "See: customers create --help",
    );
  }
  return values;
}

/** How messages name a customer that has no id yet. */
function labelOf(values: JsonObject): string {
  return plainText(memberNamed(values, "email")?.value ?? memberNamed(values, "name")?.value ?? "");
}

async function create(
  invocation: Invocation,
  request: CreationRequest,
  key: string,
  {
    who,
    fields,
    withEtag = false,
    result = false,
  }: { who: string; fields?: readonly string[]; withEtag?: boolean; result?: boolean },
): Promise<Ending> {
  const { api, messages } = invocation;
  const creation = await createUntilDecided(invocation.ports(), request);
  if (creation.kind !== "created") {
    const subject = { what: `the customer ${who}`, url: api.url, fields, method: "POST", collection: true };
    const ending = creationEnding(creation, subject, key);
    if (result) await printFacts(invocation, resultOfCreation(creation, ending));
    return ending;
  }
  const { id, tag, replayed, requestId, attempts } = creation;
  const facts = [amount(attempts, "attempt")];
  if (tag !== undefined) facts.push(`tag ${tag}`);
  if (requestId !== undefined) facts.push(`request id ${requestId}`);
  const how = replayed ? "was created earlier with this idempotency key" : "created";
  messages.note(`customer ${id ?? who} ${how}: ${facts.join("; ")}`);
  // The fields are not asked for in the creation itself: a deployment need not know `fields` there, and a creation
  // that is refused for it would be a pity.
  if (result) {
    await printFacts(invocation, resultOfCreation(creation, undefined));
    if (id === undefined)
      messages.warn(`warning: the customer ${who} was created, but the server did not say its id`);
    return undefined;
  }
  // Without its id, a script would take the empty line for one.
  const lacksId = id === undefined && fields?.some((field) => field.toLowerCase() === "id");
  const picked =
    creation.customer === undefined || lacksId ? undefined : withFieldsOnly(creation.customer, fields);
  if (picked !== undefined) return printCustomer(invocation, picked, { fields, withEtag });
  if (id === undefined) {
    const hint = "Find it with: customers list --email ADDRESS";
    return failure("failure", `the customer ${who} was created, but the server did not say its id`, hint);
  }
  const reading = await readCurrent(invocation.ports(), id, { fields });
  if (reading.kind === "read") return printCustomer(invocation, reading.customer, { fields, withEtag });
  const reason = readReason(reading, { what: `customer ${id}`, url: api.url, fields });
  // Not its own exit: that would say that nothing was written.
  const claim = `the customer ${who} was created, but ${reason.claim}`;
  return inOneSentence({ ...reason, exit: "failure", claim });
}

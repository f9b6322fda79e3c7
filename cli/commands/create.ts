import { sendCreation } from "../client/creation.ts";
import { type Customer, memberName, memberNamed, parseCustomer, plainText } from "../client/customer.ts";
import { formatJson, type Json } from "../client/json.ts";
import { readCurrent } from "../client/read-customer.ts";
import type { Reply } from "../client/reply.ts";
import { type ApiRequest, createCustomer } from "../client/request.ts";
import { judgeCreation, unclearReply } from "../client/verdict.ts";
import { counted } from "../outcome/conflict-failure.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { requestIdOf, writeFailure } from "../outcome/reply-failure.ts";
import { printCustomer } from "../output/print-customers.ts";
import type { RegisterCommand } from "../program.ts";
import { confirmWrite } from "./confirm-write.ts";
import { printRequest } from "./dry-run.ts";
import type { Ending, Invocation } from "./invocation.ts";
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
  options: Options,
): Promise<Ending> {
  const { api, messages } = invocation;
  const deadline = invocation.deadline();
  const { reply, attempts } = await sendCreation({ api, deadline }, request);
  const subject = {
    what: `the customer ${options.email}`,
    url: api.url,
    fields: options.fields,
    method: request.method,
    collection: true,
  };
  const verdict = judgeCreation(reply);
  if (verdict === "unknown") return unknownCreation(reply, key, options.email, deadline.interrupted.aborted);
  if (verdict !== "accepted" || reply.kind !== "complete") return writeFailure(reply, "created", subject);
  const location = reply.fields.get("location");
  const shown = parseCustomer(reply.text, reply.fields.get("etag"));
  const id = shown === undefined ? idIn(location) : memberNamed(shown.value, "id")?.value;
  const created = await withFields(
    invocation,
    shown,
    id === undefined ? undefined : plainText(id),
    options.fields,
  );
  const facts = [counted(attempts, "attempt")];
  const tag = reply.fields.get("etag");
  if (tag !== undefined) facts.push(`tag ${tag}`);
  const requestId = requestIdOf(reply);
  if (requestId !== undefined) facts.push(`request id ${requestId}`);
  const replayed = reply.fields.get("idempotency-replayed")?.toLowerCase() === "true";
  const how = replayed ? "was created earlier with this idempotency key" : "created";
  messages.note(`customer ${id === undefined ? options.email : plainText(id)} ${how}: ${facts.join("; ")}`);
  if ("exit" in created) {
    // Not its own exit: that would say that nothing was written.
    return {
      ...created,
      exit: "failure",
      message: `the customer ${options.email} was created, but ${created.message}`,
    };
  }
  return printCustomer(invocation, created, { fields: options.fields, withEtag: options.withEtag ?? false });
}

function unknownCreation(reply: Reply, key: string, email: string, interrupted: boolean): Failure {
  const requestId = requestIdOf(reply);
  return {
    exit: interrupted ? "interrupted" : "unknown-outcome",
    code: "unknown-outcome",
    message: `unknown outcome: whether the customer ${email} was created can't be told: ${unclearReply(reply)}`,
    hint: `Run it again with --idempotency-key ${key}: a server that knows Idempotency-Key then creates it once, and answers with the one that it has.`,
    ...(requestId === undefined ? {} : { requestId }),
  };
}

/** Where the reply to the creation had no body, its Location names the customer; nothing that would have to be decoded. */
function idIn(location: string | undefined): string | undefined {
  const id = location?.split(/[?#]/)[0]?.split("/").pop() ?? "";
  return /^[\w.~-]+$/.test(id) ? id : undefined;
}

/**
 * The customer with the fields that were asked for. They are not asked for in the creation itself: a deployment
 * need not know `fields` there, and a creation that is refused for it would be a pity.
 */
async function withFields(
  invocation: Invocation,
  shown: Customer | undefined,
  id: string | undefined,
  fields: readonly string[] | undefined,
): Promise<Customer | Failure> {
  if (shown !== undefined && fields === undefined) return shown;
  const picked = (fields ?? []).map((field) => shown && memberNamed(shown.value, field));
  if (shown !== undefined && picked.every((member) => member !== undefined)) {
    const value = new Map(picked.map(({ name, value }) => [name, value]));
    return { ...shown, value, text: formatJson(value) };
  }
  if (id !== undefined)
    return readCurrent({ api: invocation.api, deadline: invocation.deadline() }, id, fields);
  return failure("failure", "the server did not say its id", "Find it with: customers list --email EMAIL");
}

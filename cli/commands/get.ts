import { parseCustomer } from "../client/customer.ts";
import { readWithRetry } from "../client/read-retry.ts";
import { readCustomer } from "../client/request.ts";
import { readFailure } from "../outcome/reply-failure.ts";
import { printCustomer } from "../output/print-customers.ts";
import type { RegisterCommand } from "../program.ts";
import { addFieldsOption, addWithEtagOption, entityTags, requiredId } from "./options.ts";

type Options = { fields?: readonly string[]; ifNoneMatch?: string; withEtag?: boolean };

export const registerGet: RegisterCommand = (program, run) => {
  const command = program
    .command("get <id>")
    .description("print one customer")
    .option("--if-none-match <tag>", "print nothing where the tag is still the current one", entityTags);
  addWithEtagOption(addFieldsOption(command)).action(
    run<Options>(async (invocation, [id], { fields, ifNoneMatch, withEtag = false }) => {
      const request = readCustomer(requiredId(id), fields, ifNoneMatch);
      const reply = await readWithRetry(invocation.api, request, invocation.deadline());
      if (reply.kind === "complete" && reply.status === 304) {
        invocation.messages.note(`customer ${id} is unchanged: ${ifNoneMatch} is still its tag`);
        return undefined;
      }
      const customer =
        reply.kind === "complete" && reply.status === 200
          ? parseCustomer(reply.text, reply.fields.get("etag"))
          : undefined;
      if (customer === undefined)
        return readFailure(reply, { what: `customer ${id}`, url: invocation.api.url, fields });
      return printCustomer(invocation, customer, { fields, withEtag });
    }),
  );
};

import { readUnless } from "../client/read-customer.ts";
import { readFailure } from "../outcome/reply-failure.ts";
import { printCustomer } from "../output/print-customers.ts";
import type { RegisterCommand } from "./command.ts";
import { addFieldsOption, addWithEtagOption, entityTags, requiredId } from "./options.ts";

type Options = { fields?: readonly string[]; ifNoneMatch?: string; withEtag?: boolean };

export const registerGet: RegisterCommand = (program, run) => {
  const command = program
    .command("get <id>")
    .description("print one customer")
    .option("--if-none-match <tag>", "print nothing where the tag is still the current one", entityTags);
  addWithEtagOption(addFieldsOption(command)).action(
    run<Options>(async (invocation, [argument], { fields, ifNoneMatch, withEtag = false }) => {
      const id = requiredId(argument);
      const reading = await readUnless(invocation.ports(), id, ifNoneMatch, fields);
      switch (reading.kind) {
        case "read":
          return printCustomer(invocation, reading.customer, { fields, withEtag });
        case "not-modified":
          invocation.messages.note(`customer ${id} is unchanged: ${ifNoneMatch} is still its tag`);
          return undefined;
        default:
          return readFailure(reading, { what: `customer ${id}`, url: invocation.api.url, fields });
      }
    }),
  );
};

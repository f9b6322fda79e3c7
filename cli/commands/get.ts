import type { Customer } from "../client/customer.ts";
import { readUnless } from "../client/read-customer.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { readFailure } from "../outcome/reply-failure.ts";
import { openListPrinter, printCustomer } from "../output/print-customers.ts";
import type { RegisterCommand } from "./common/command.ts";
import { customerIds, entityTags, FIELDS, WITH_ETAG } from "./common/options.ts";
import { forEachId, idsOf, onlyOne } from "./common/several.ts";

type Options = { fields?: readonly string[]; ifNoneMatch?: string; withEtag?: boolean };

/** Customers that are printed together: a table needs the widths of all its rows. */
const PAGE = 100;

export const registerGet: RegisterCommand = (program, run) => {
  program
    .command("get")
    .description("print one customer, or several as a list; - reads ids from stdin")
    .argument("<id...>", "ids of the customers", customerIds)
    .option("--if-none-match <tag>", "print nothing where the tag is still the current one", entityTags)
    .addOption(FIELDS)
    .addOption(WITH_ETAG)
    .action(
      run(async (invocation, words, options) => {
        const ids = await idsOf(words, invocation);
        const { fields, withEtag = false } = options;
        const [only] = ids;
        if (only !== undefined && ids.length === 1) {
          return await get(invocation, only, options, (customer) =>
            printCustomer(invocation, customer, { fields, withEtag }),
          );
        }
        onlyOne("--if-none-match", options.ifNoneMatch, ids);
        return await getSeveral(invocation, ids, options);
      }),
    );
};

async function get(
  invocation: Invocation,
  id: string,
  { fields, ifNoneMatch }: Options,
  found: (customer: Customer) => Promise<Ending>,
): Promise<Ending> {
  const reading = await readUnless(invocation.ports(), id, ifNoneMatch, fields);
  switch (reading.kind) {
    case "read":
      return await found(reading.customer);
    case "not-modified":
      invocation.messages.note(`customer ${id} is unchanged: ${ifNoneMatch} is still its tag`);
      return undefined;
    default:
      return readFailure(reading, { what: `customer ${id}`, url: invocation.api.url, fields });
  }
}

async function getSeveral(invocation: Invocation, ids: readonly string[], options: Options): Promise<Ending> {
  const printer = openListPrinter(invocation, {
    fields: options.fields,
    withEtag: options.withEtag ?? false,
  });
  let page: Customer[] = [];
  const ending = await forEachId(invocation, ids, "printed", (id) =>
    get(invocation, id, options, async (customer) => {
      page.push(customer);
      if (page.length < PAGE) return undefined;
      await printer.write(page);
      page = [];
      return undefined;
    }),
  );
  await printer.write(page);
  const refused = await printer.end();
  return ending ?? refused;
}

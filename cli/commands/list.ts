import { eachPage } from "../client/pages.ts";
import { failure } from "../outcome/failure.ts";
import { listFailure } from "../outcome/reply-failure.ts";
import { openListPrinter, outputFormat } from "../output/print-customers.ts";
import type { RegisterCommand } from "./common/command.ts";
import { EMAIL, FIELDS, positiveInteger, STATUS, WITH_ETAG } from "./common/options.ts";

const LIMIT_DEFAULT = 50;
/** A page of `--all`; servers that allow fewer say so, and --limit then gives the size of the page too. */
const PAGE_DEFAULT = 200;

export const registerList: RegisterCommand = (program, run) => {
  program
    .command("list")
    .description("print customers")
    .addOption(STATUS)
    .addOption(EMAIL)
    .option(
      "--limit <n>",
      `customers at most (default: ${LIMIT_DEFAULT}); with --all: the size of a page`,
      positiveInteger,
    )
    .option("--all", "every customer, page by page")
    .addOption(FIELDS)
    .addOption(WITH_ETAG)
    .action(
      run(async (invocation, { status, email, limit, all = false, fields, withEtag = false }) => {
        const { api, messages, interrupted } = invocation;
        const wanted = all ? Number.POSITIVE_INFINITY : (limit ?? LIMIT_DEFAULT);
        const size = all ? (limit ?? PAGE_DEFAULT) : Math.min(wanted, PAGE_DEFAULT);
        const printer = openListPrinter(invocation, { fields, withEtag });
        let printed = 0;
        for await (const page of eachPage(invocation.ports, {
          status,
          email,
          limit: size,
          fields,
        })) {
          if (page.kind !== "page") {
            // What was printed stays a part: the JSON array is left open rather than made to look whole.
            return listFailure(page, { url: api.url, fields, email });
          }
          const customers = page.customers.slice(0, wanted - printed);
          printed += customers.length;
          if (!(await printer.write(customers)) || interrupted.aborted) break;
          if (printed >= wanted) {
            const more = customers.length < page.customers.length || page.customers.length === size;
            // Who gave --limit asked for a part; the default must not pass for the whole.
            if (more && limit === undefined) {
              messages.warn(`warning: only the first ${printed} customers are shown; --all shows every one`);
            }
            break;
          }
        }
        if (printed === 0 && outputFormat(invocation) === "table") messages.note("No customers.");
        if (interrupted.aborted) return failure("interrupted", "interrupted; the list is not complete");
        return printer.end();
      }),
    );
};

import { eachPage } from "../client/pages.ts";
import { listFailure } from "../outcome/reply-failure.ts";
import { openListPrinter } from "../output/print-customers.ts";
import type { RegisterCommand } from "./common/command.ts";
import { EMAIL, FIELDS, positiveInteger, STATUS, WITH_ETAG } from "./common/options.ts";
import { LIMIT_DEFAULT, printPages } from "./common/print-pages.ts";

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
      run(async (invocation, { status, email, limit, all, fields, withEtag = false }) => {
        const { api, ports } = invocation;
        return await printPages(
          invocation,
          { limit, all },
          {
            noun: "customer",
            pages: (size) => eachPage(ports, { status, email, limit: size, fields }),
            printer: openListPrinter(invocation, { fields, withEtag }),
            refused: (stop) => listFailure(stop, { url: api.url, fields, email }),
          },
        );
      }),
    );
};

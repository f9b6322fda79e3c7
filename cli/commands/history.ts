import { eachHistoryPage } from "../client/customer-history.ts";
import { historyFailure } from "../outcome/reply-failure.ts";
import { openHistoryPrinter } from "../output/print-history.ts";
import type { RegisterCommand } from "./common/command.ts";
import { customerId, positiveInteger } from "./common/options.ts";
import { LIMIT_DEFAULT, printPages } from "./common/print-pages.ts";

export const registerHistory: RegisterCommand = (program, run) => {
  program
    .command("history")
    .description("print who changed a customer and when, the newest change first, also after it was deleted")
    .argument("<id>", "id of the customer", customerId)
    .option(
      "--limit <n>",
      `changes at most (default: ${LIMIT_DEFAULT}); with --all: the size of a page`,
      positiveInteger,
    )
    .option("--all", "every change, page by page")
    .action(
      run(async (invocation, id, { limit, all }) => {
        const { api, ports } = invocation;
        return await printPages(
          invocation,
          { limit, all },
          {
            noun: "change",
            pages: (size) => eachHistoryPage(ports, id, size),
            printer: openHistoryPrinter(invocation),
            refused: (stop) => historyFailure(stop, { id, url: api.url }),
          },
        );
      }),
    );
};

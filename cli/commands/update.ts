import type { Change } from "../client/field-conflicts.ts";
import { changeIntent } from "../client/intent.ts";
import type { Json } from "../client/json.ts";
import { writeUntilDecided } from "../client/loop.ts";
import { readCurrent } from "../client/read-customer.ts";
import { UsageError } from "../outcome/failure.ts";
import { summaryLine, withSummary } from "../outcome/write-summary.ts";
import { printCustomer } from "../output/print-customers.ts";
import type { RegisterCommand } from "../program.ts";
import { confirmWrite } from "./confirm-write.ts";
import { dryRun } from "./dry-run.ts";
import type { Ending, Invocation } from "./invocation.ts";
import {
  addFieldsOption,
  addLoopOptions,
  addWithEtagOption,
  addWriteOptions,
  checkedLoop,
  type LoopOptions,
  requiredId,
  type WriteOptions,
} from "./options.ts";

type Options = WriteOptions &
  LoopOptions & {
    name?: string;
    email?: string;
    status?: string;
    fields?: readonly string[];
    withEtag?: boolean;
  };

export const registerUpdate: RegisterCommand = (program, run) => {
  const command = program
    .command("update <id>")
    .description("change fields of one customer; re-read and retried when someone else writes meanwhile")
    .option("--name <name>", "the new name")
    .option("--email <email>", "the new e-mail address")
    .option("--status <status>", "the new status");
  addWithEtagOption(addFieldsOption(addLoopOptions(addWriteOptions(command)))).action(
    run<Options>(async (invocation, [argument], options) => {
      const id = requiredId(argument);
      checkedLoop(options);
      const change = namedChange(options);
      const { settings, messages, api } = invocation;
      const expect = options.expect ?? [];
      const job = {
        id,
        intent: changeIntent(
          id,
          change,
          expect.map(({ field }) => field),
          settings.casing,
        ),
        onConflict: options.onConflict ?? "reapply",
        expect,
        ifMatch: options.ifMatch,
        maxAttempts: options.maxAttempts,
      };
      if (options.dryRun) return dryRun(invocation, job);
      const refused = await confirmWrite(invocation, `update customer ${id}`, options.yes ?? false);
      if (refused !== undefined) return refused;
      const outcome = await writeUntilDecided({ api, deadline: invocation.deadline() }, job);
      if (outcome.kind === "conflict" || outcome.kind === "failed") {
        return withSummary(invocation, id, "updated", outcome);
      }
      messages.note(summaryLine(id, "updated", outcome));
      return printAfterwards(invocation, id, options);
    }),
  );
};

function namedChange(options: Options): Change {
  const change = new Map<string, Json>();
  for (const field of ["name", "email", "status"] as const) {
    const value = options[field];
    if (value !== undefined) change.set(field, value);
  }
  if (change.size > 0) return change;
  throw new UsageError("there is nothing to change", "Give at least one of --name, --email, --status.");
}

/** A write prints the customer only where --output, --fields or --with-etag ask for it. */
async function printAfterwards(
  invocation: Invocation,
  id: string,
  { fields, withEtag }: Options,
): Promise<Ending> {
  const { settings, api } = invocation;
  if (settings.output === undefined && fields === undefined && withEtag === undefined) return undefined;
  const customer = await readCurrent({ api, deadline: invocation.deadline() }, id, fields);
  if (!("exit" in customer))
    return printCustomer(invocation, customer, { fields, withEtag: withEtag ?? false });
  // Not exit 7: that would say that nothing was written.
  return { ...customer, exit: "failure", message: `the write is done, but ${customer.message}` };
}

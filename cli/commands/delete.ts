import type { Customer } from "../client/customer.ts";
import { deletionIntent } from "../client/intent.ts";
import { writeUntilDecided } from "../client/loop.ts";
import { readCurrent } from "../client/read-customer.ts";
import { summaryLine, withSummary } from "../outcome/write-summary.ts";
import { formatRecord } from "../output/table.ts";
import type { RegisterCommand } from "../program.ts";
import { ask, unasked } from "./confirm-write.ts";
import { dryRun } from "./dry-run.ts";
import type { Ending, Invocation } from "./invocation.ts";
import {
  addLoopOptions,
  addWriteOptions,
  checkedLoop,
  type LoopOptions,
  requiredId,
  type WriteOptions,
} from "./options.ts";

type Options = WriteOptions & LoopOptions;

export const registerDelete: RegisterCommand = (program, run) => {
  const command = program
    .command("delete <id>")
    .description("delete one customer; it is shown and asked about first, or needs --yes");
  addLoopOptions(addWriteOptions(command)).action(
    run<Options>(async (invocation, [argument], options) => {
      const id = requiredId(argument);
      checkedLoop(options);
      const { api, messages } = invocation;
      const expect = options.expect ?? [];
      const yes = options.yes ?? false;
      const job = {
        id,
        intent: deletionIntent(
          id,
          expect.map(({ field }) => field),
        ),
        onConflict: options.onConflict ?? "reapply",
        expect,
        ifMatch: options.ifMatch,
        maxAttempts: options.maxAttempts,
      };
      if (options.dryRun) return dryRun(invocation, job);
      let shown: Customer | undefined;
      if (!yes) {
        const confirmed = await confirmShown(invocation, id);
        if ("exit" in confirmed) return confirmed;
        shown = confirmed;
      }
      const outcome = await writeUntilDecided(
        { api, deadline: invocation.deadline() },
        // What was confirmed is the version that was shown, and no other.
        shown === undefined ? job : { ...job, onConflict: "fail", base: shown },
      );
      if (outcome.kind === "conflict" || outcome.kind === "failed") {
        return withSummary(invocation, id, "deleted", outcome);
      }
      messages.note(summaryLine(id, "deleted", outcome));
      return undefined;
    }),
  );
};

async function confirmShown(invocation: Invocation, id: string): Promise<Customer | NonNullable<Ending>> {
  const { api, terminal } = invocation;
  const statement = `About to delete customer ${id} at ${api.url}.`;
  if (!terminal.interactive) return unasked(statement);
  const customer = await readCurrent({ api, deadline: invocation.deadline() }, id, undefined);
  if ("exit" in customer) return customer;
  const shown = formatRecord(customer.value, { color: false, columns: undefined }).trimEnd();
  return (await ask(invocation, `${shown}\n${statement}`)) ?? customer;
}

import type { Customer } from "../client/customer.ts";
import { deletionIntent } from "../client/loop/intent.ts";
import type { WriteJob } from "../client/loop/write-job.ts";
import { readWhole } from "../client/whole-customer.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { type Failure, isFailure } from "../outcome/failure.ts";
import { readFailure } from "../outcome/reply-failure.ts";
import { resultOfWrite } from "../outcome/write-result.ts";
import { printFacts } from "../output/print-facts.ts";
import { formatRecord } from "../output/table.ts";
import type { RegisterCommand } from "./common/command.ts";
import { ask, unasked } from "./common/confirm-write.ts";
import { dryRun } from "./common/dry-run.ts";
import {
  checkedLoop,
  checkedResult,
  customerIds,
  DRY_RUN,
  EXPECT,
  IF_MATCH,
  type LoopOptions,
  MAX_ATTEMPTS,
  ON_CONFLICT,
  onConflictDefault,
  RESULT,
  type WriteOptions,
  YES,
} from "./common/options.ts";
import { sendWrite } from "./common/send-write.ts";
import { forEachId, idsOf, onlyOne } from "./common/several.ts";

type Options = WriteOptions & LoopOptions & { result?: boolean };

export const registerDelete: RegisterCommand = (program, run) => {
  program
    .command("delete")
    .description(
      "delete one customer or several; each is shown and asked about first, or needs --yes; - reads ids from stdin",
    )
    .argument("<id...>", "ids of the customers", customerIds)
    .addOption(DRY_RUN)
    .addOption(IF_MATCH)
    .addOption(EXPECT)
    .addOption(YES)
    .addOption(ON_CONFLICT)
    .addOption(MAX_ATTEMPTS)
    .addOption(RESULT)
    .action(
      run(async (invocation, words, options) => {
        const ids = await idsOf(words, invocation);
        checkedLoop(options);
        checkedResult(options.result, invocation.settings.output);
        onlyOne("--if-match", options.ifMatch, ids);
        return await forEachId(invocation, ids, options.dryRun ? "looked at" : "deleted", (id) =>
          deleteOne(invocation, id, options),
        );
      }),
    );
};

async function deleteOne(invocation: Invocation, id: string, options: Options): Promise<Ending> {
  const { expect = [], ifMatch, maxAttempts, yes = false } = options;
  const recorded = invocation.settings.undoMs !== undefined;
  const intent = deletionIntent(id, recorded ? "whole" : expect.map(({ field }) => field));
  const onConflict = options.onConflict ?? onConflictDefault(invocation.terminal);
  const job: WriteJob = { id, intent, onConflict, expect, ifMatch, maxAttempts };
  if (options.dryRun) return await dryRun(invocation, job, "deleted");
  if (yes) return await remove(invocation, job, options);
  const shown = await confirmShown(invocation, id);
  if (isFailure(shown)) return shown;
  // What was confirmed is the version that was shown, and no other.
  return await remove(invocation, { ...job, onConflict: "fail", base: shown }, options);
}

async function remove(invocation: Invocation, job: WriteJob, { result }: Options): Promise<Ending> {
  const { outcome, stop } = await sendWrite(invocation, job, "deleted");
  if (result) {
    const failure = stop?.ending;
    await printFacts(invocation, resultOfWrite(job.id, "deleted", outcome, { failure }));
  }
  return stop?.failureWithSummary;
}

/** Every field is read: --expect may look at any, and the operator sees what goes. */
async function confirmShown(invocation: Invocation, id: string): Promise<Customer | Failure> {
  const { api, terminal } = invocation;
  const statement = `About to delete customer ${id} at ${api.url}.`;
  if (!terminal.interactive) return unasked(statement);
  const reading = await readWhole(invocation.ports(), id);
  if (reading.kind !== "read") return readFailure(reading, { what: `customer ${id}`, url: api.url });
  const { customer } = reading;
  const shown = formatRecord(customer.value, { color: false, columns: undefined }).trimEnd();
  return (await ask(invocation, `${shown}\n${statement}`)) ?? customer;
}

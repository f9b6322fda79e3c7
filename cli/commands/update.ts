import { withFieldsOnly } from "../client/customer.ts";
import type { Change } from "../client/loop/field-conflicts.ts";
import { changeIntent } from "../client/loop/intent.ts";
import type { WriteJob } from "../client/loop/write-job.ts";
import { isDone, type WriteOutcome } from "../client/loop/write-outcome.ts";
import { readCurrent } from "../client/read-customer.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { UsageError } from "../outcome/failure.ts";
import { inOneSentence, readReason } from "../outcome/reply-failure.ts";
import { resultOfWrite } from "../outcome/write-result.ts";
import { printCustomer } from "../output/print-customers.ts";
import { printFacts } from "../output/print-facts.ts";
import type { RegisterCommand } from "./common/command.ts";
import { confirmWrite } from "./common/confirm-write.ts";
import { dryRun } from "./common/dry-run.ts";
import { type FieldOptions, fieldValues, once, SET, SET_JSON, UNSET } from "./common/field-options.ts";
import {
  checkedLoop,
  checkedResult,
  customerIds,
  DRY_RUN,
  EXPECT,
  FIELDS,
  IF_MATCH,
  MAX_ATTEMPTS,
  ON_CONFLICT,
  onConflictDefault,
  RESULT,
  WITH_ETAG,
  YES,
} from "./common/options.ts";
import { sendWrite } from "./common/send-write.ts";
import { forEachId, idsOf, onlyOne } from "./common/several.ts";

type PrintOptions = { fields?: readonly string[]; withEtag?: boolean; result?: boolean };

export const registerUpdate: RegisterCommand = (program, run) => {
  program
    .command("update")
    .description(
      "change fields of one customer or several; re-read and retried when someone else writes meanwhile; - reads ids from stdin",
    )
    .argument("<id...>", "ids of the customers", customerIds)
    .option("--name <name>", "the new name", once)
    .option("--email <email>", "the new e-mail address", once)
    .option("--status <status>", "the new status", once)
    .addOption(SET)
    .addOption(SET_JSON)
    .addOption(UNSET)
    .addOption(DRY_RUN)
    .addOption(IF_MATCH)
    .addOption(EXPECT)
    .addOption(YES)
    .addOption(ON_CONFLICT)
    .addOption(MAX_ATTEMPTS)
    .addOption(FIELDS)
    .addOption(WITH_ETAG)
    .addOption(RESULT)
    .action(
      run(async (invocation, words, options) => {
        const ids = await idsOf(words, invocation);
        checkedLoop(options);
        checkedResult(options.result, invocation.settings.output);
        onlyOne("--if-match", options.ifMatch, ids);
        const change = namedChange(options);
        const { settings } = invocation;
        const { expect = [], ifMatch, maxAttempts } = options;
        const alsoRead = expect.map(({ field }) => field);
        const representation = wantsCustomer(invocation, options);
        const onConflict = options.onConflict ?? onConflictDefault(invocation.terminal);
        const what = ids.length === 1 ? `update customer ${ids[0]}` : `update ${ids.length} customers`;
        const refused = options.dryRun
          ? undefined
          : await confirmWrite(invocation, what, options.yes ?? false);
        if (refused !== undefined) return refused;
        return await forEachId(invocation, ids, options.dryRun ? "looked at" : "updated", async (id) => {
          const intent = changeIntent({ id, change, alsoRead, casing: settings.casing, representation });
          const job: WriteJob = { id, intent, onConflict, expect, ifMatch, maxAttempts };
          if (options.dryRun) return await dryRun(invocation, job, "updated");
          return await update(invocation, job, change, options);
        });
      }),
    );
};

async function update(
  invocation: Invocation,
  job: WriteJob,
  change: Change,
  options: PrintOptions,
): Promise<Ending> {
  const { outcome, stop } = await sendWrite(invocation, job, "updated", { change });
  if (options.result) {
    const shown = isDone(outcome) ? outcome.customer : undefined;
    const customer = shown && withFieldsOnly(shown, options.fields);
    const result = resultOfWrite(job.id, "updated", outcome, { failure: stop?.ending, customer });
    await printFacts(invocation, result);
  }
  if (stop !== undefined) return stop.failureWithSummary;
  if (options.result || !wantsCustomer(invocation, options)) return undefined;
  const unshown = await printWritten(invocation, job.id, outcome, options);
  return unshown && { ...unshown, isWritten: true };
}

function namedChange(options: FieldOptions): Change {
  const change = fieldValues(options);
  if (change.size > 0) return change;
  throw new UsageError(
    "there is nothing to change",
    "Give at least one of --name, --email, --status, --set, --set-json, --unset.",
  );
}

/** A write prints the customer only where --output, --fields or --with-etag ask for it. */
function wantsCustomer({ settings }: Invocation, { fields, withEtag, result }: PrintOptions): boolean {
  return result || settings.output !== undefined || fields !== undefined || withEtag !== undefined;
}

/** The customer as this write made it: what the reply shows, else a reading of the version that it names. */
async function printWritten(
  invocation: Invocation,
  id: string,
  outcome: WriteOutcome,
  { fields, withEtag = false }: PrintOptions,
): Promise<Ending> {
  // After an unclear reply it may be of a reading, which asks for no more than the write needs.
  const shown = outcome.kind === "written" && outcome.unknowns === 0 ? outcome.customer : undefined;
  const picked = shown === undefined ? undefined : withFieldsOnly(shown, fields);
  if (picked !== undefined) return printCustomer(invocation, picked, { fields, withEtag });
  const reading = await readCurrent(invocation.ports(), id, { fields });
  if (reading.kind !== "read") {
    const reason = readReason(reading, { what: `customer ${id}`, url: invocation.api.url, fields });
    // Not exit 7: that would say that nothing was written.
    return inOneSentence({ ...reason, exit: "failure", claim: `the write is done, but ${reason.claim}` });
  }
  const { customer } = reading;
  if (outcome.after !== undefined && customer.etag !== outcome.after)
    invocation.messages.warn(
      `warning: someone else has changed customer ${id} since; what is printed is version ${customer.etag}, and the write made ${outcome.after}`,
    );
  return printCustomer(invocation, customer, { fields, withEtag });
}

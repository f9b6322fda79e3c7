import { Option } from "@commander-js/extra-typings";
import { createUntilDecided } from "../client/creation.ts";
import type { Json } from "../client/json.ts";
import { changeIntent } from "../client/loop/intent.ts";
import { previewWrite } from "../client/loop/loop.ts";
import type { WriteJob } from "../client/loop/write-job.ts";
import { readCurrent } from "../client/read-customer.ts";
import { createCustomer } from "../client/wire/request.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { amount } from "../outcome/amount.ts";
import { type Failure, failure, UsageError } from "../outcome/failure.ts";
import { readFailure } from "../outcome/reply-failure.ts";
import { changeLines } from "../outcome/value-text.ts";
import { whoChangedTexts } from "../outcome/who-changed.ts";
import { badOutcome, creationEnding, pinnedElsewhere, writeEnding } from "../outcome/write-ending.ts";
import { printCustomer } from "../output/print-customers.ts";
import { printRows } from "../output/print-facts.ts";
import type { RecordedChange, UndoJournal } from "../undo/undo-journal.ts";
import type { RegisterCommand } from "./common/command.ts";
import { ask } from "./common/confirm-write.ts";
import { printRequest } from "./common/dry-run.ts";
import { customerIds, DRY_RUN, YES } from "./common/options.ts";
import { sendWrite } from "./common/send-write.ts";
import { forEachId, idsOf } from "./common/several.ts";

type Options = { dryRun?: boolean; yes?: boolean };
type Undoing = { journal: UndoJournal; change: RecordedChange; options: Options };

export const registerUndo: RegisterCommand = (program, run) => {
  program
    .command("undo")
    .description(
      "write back what the last change of a customer replaced, never over someone else's change; asks first, or needs --yes",
    )
    .argument("[id...]", "ids of the customers; - reads them from stdin", customerIds)
    .addOption(new Option("--list", "print the changes that can be undone").conflicts(["dryRun", "forget"]))
    .addOption(
      new Option(
        "--forget",
        "delete what is recorded, of these customers or of all; nothing is sent",
      ).conflicts("dryRun"),
    )
    .addOption(DRY_RUN)
    .addOption(YES)
    .action(
      run(async (invocation, words = [], options) => {
        const { openUndoJournal, undoJournalPath } = await import("../undo/undo-journal.ts");
        const path = undoJournalPath(invocation.env);
        const ids = words.length === 0 ? words : await idsOf(words, invocation);
        const journal = openUndoJournal(path);
        try {
          if (options.list) return await list(invocation, journal, ids);
          if (options.forget) return forget(invocation, journal, ids);
          if (ids.length === 0) {
            throw new UsageError("an id is missing", "See what can be undone with: customers undo --list");
          }
          return await forEachId(invocation, ids, options.dryRun ? "looked at" : "restored", async (id) => {
            const change = journal.latest(invocation.api.url, id);
            if (change === undefined) return nothingRecorded(invocation, id);
            const undoing = { journal, change, options };
            return change.kind === "updated"
              ? await undoUpdate(invocation, undoing)
              : await undoDeletion(invocation, undoing);
          });
        } finally {
          journal.close();
        }
      }),
    );
};

async function list(invocation: Invocation, journal: UndoJournal, ids: readonly string[]): Promise<Ending> {
  const wanted = ids.map((id) => id.toLowerCase());
  const changes = journal
    .all(invocation.api.url)
    .filter(({ id }) => wanted.length === 0 || wanted.includes(id.toLowerCase()));
  const rows = changes.map(
    ({ id, kind, before, writtenMs, expiresMs }) =>
      new Map<string, Json>([
        ["id", id],
        ["change", kind],
        ["fields", [...before.keys()].join(", ")],
        ["written", new Date(writtenMs).toISOString()],
        ["expires", new Date(expiresMs).toISOString()],
      ]),
  );
  await printRows(invocation, ["id", "change", "fields", "written", "expires"], rows);
  if (rows.length === 0) invocation.messages.note("There is nothing to undo.");
  return undefined;
}

function forget({ api, messages }: Invocation, journal: UndoJournal, ids: readonly string[]): Ending {
  const deleted =
    ids.length === 0
      ? journal.forget(api.url)
      : ids.map((id) => journal.forget(api.url, id)).reduce((sum, count) => sum + count, 0);
  messages.note(`${amount(deleted, "recorded change")} of ${api.url} deleted; they can no longer be undone`);
  return undefined;
}

function nothingRecorded({ api, settings }: Invocation, id: string): Ending {
  return failure(
    "failure",
    `customer ${id} was not restored: no change of it at ${api.url} is recorded on this machine`,
    settings.undoMs === undefined
      ? "Changes are recorded once this is set: customers profile set NAME --undo 7d, or CUSTOMERS_UNDO=7d."
      : "See what can be undone with: customers undo --list",
  );
}

/** Under the tag that our write made: who wrote since is not written over. */
async function undoUpdate(invocation: Invocation, { journal, change, options }: Undoing): Promise<Ending> {
  const { api, messages, settings, ports } = invocation;
  const { id, before, tagAfter } = change;
  const job: WriteJob = {
    id,
    intent: changeIntent({ id, change: before, casing: settings.casing }),
    onConflict: "fail",
    expect: [],
    ifMatch: tagAfter,
  };
  const pin = "that the recorded change made";
  const about = { id, done: "restored", url: api.url, onConflict: "fail", pin } as const;
  const preview = await previewWrite(ports(), job);
  if (preview.kind === "would-write") {
    const { request, current } = preview;
    const lines = changeLines(before, current);
    if (tagAfter !== undefined && current.etag !== tagAfter)
      return changedSince(pinnedElsewhere(about, current, tagAfter), lines);
    if (options.dryRun) {
      await printRequest(invocation, request, current);
      messages.note(`dry run: customer ${id} was not restored; nothing was sent`);
      return undefined;
    }
    const statement = `About to restore customer ${id} at ${api.url}.`;
    const refused = options.yes ? undefined : await ask(invocation, [...lines, statement].join("\n"));
    if (refused !== undefined) return refused;
    if (options.yes) for (const line of lines) messages.note(line);
    const { outcome, stop } = await sendWrite(invocation, { ...job, base: current }, "restored", { pin });
    if (stop !== undefined)
      return stop.bad.kind === "conflict" ? changedSince(stop.ending, lines) : stop.failureWithSummary;
    const tag = outcome.kind === "written" ? outcome.after : undefined;
    journal.undone(change, tag === undefined ? undefined : { id, tag });
    return undefined;
  }
  const bad = badOutcome(preview);
  if (bad !== undefined) {
    const ending = writeEnding(about, bad);
    return bad.kind === "conflict" ? changedSince(ending, changeLines(before, bad.theirs)) : ending;
  }
  if (!options.dryRun) {
    journal.undone(change, preview.after === undefined ? undefined : { id, tag: preview.after });
  }
  messages.note(`customer ${id} has its earlier values already; nothing was sent`);
  return undefined;
}

/** @param lines what writing back would change now. */
function changedSince(conflict: Failure, lines: readonly string[]): Failure {
  const hint =
    "Someone else changed it since. Above is what the undo would write: decide, and set it with customers update.";
  const changes = conflict.changes === undefined ? [] : whoChangedTexts(conflict.changes);
  return { ...conflict, hint, details: [...lines, ...changes].map((line) => `  ${line}`) };
}

/** A deleted customer can't come back under its id: it is created again, and gets a new one. */
async function undoDeletion(invocation: Invocation, { journal, change, options }: Undoing): Promise<Ending> {
  const { api, messages, ports } = invocation;
  const { id, before, idempotencyKey } = change;
  const subject = { what: `customer ${id}`, url: api.url };
  const reading = await readCurrent(ports(), id);
  if (reading.kind === "read") {
    return failure("conflict", `customer ${id} was not created again: it exists`, "Look at it as it is now.");
  }
  if (reading.kind !== "not-found") return readFailure(reading, subject);
  const values = new Map([...before].filter(([name, value]) => !/^id$/i.test(name) && value !== null));
  const request = createCustomer(values, idempotencyKey);
  if (options.dryRun) {
    await printRequest(invocation, request, undefined);
    messages.note(`dry run: customer ${id} was not created again; nothing was sent`);
    return undefined;
  }
  const lines = changeLines(values, undefined);
  const statement = `About to create the deleted customer ${id} again at ${api.url}; it gets a new id.`;
  const refused = options.yes ? undefined : await ask(invocation, [...lines, statement].join("\n"));
  if (refused !== undefined) return refused;
  const creation = await createUntilDecided(ports(), request);
  if (creation.kind !== "created") {
    const created = { ...subject, method: "POST", collection: true };
    const ending = creationEnding(creation, created, undefined);
    const hint = `Run it again: it is sent with the same Idempotency-Key (${idempotencyKey}).`;
    return creation.kind === "unknown-outcome" ? { ...ending, hint } : ending;
  }
  const { id: newId, tag } = creation;
  journal.undone(change, newId === undefined || tag === undefined ? undefined : { id: newId, tag });
  const known = creation.replayed ? "had been created again before" : "was created again";
  messages.note(`customer ${id} was deleted; it ${known}, with the new id ${newId ?? "(not named)"}`);
  if (creation.customer === undefined) return undefined;
  return await printCustomer(invocation, creation.customer, { withEtag: false });
}

import { existsSync } from "node:fs";
import type { Customer } from "../client/customer.ts";
import type { Change } from "../client/loop/field-conflicts.ts";
import { changeIntent } from "../client/loop/intent.ts";
import { unmetExpectation } from "../client/loop/write-job.ts";
import { readWhole } from "../client/whole-customer.ts";
import {
  changedMembers,
  conflictComments,
  introduction,
  mergedValue,
  parseText,
  renderText,
  withComments,
} from "../edit/edit-text.ts";
import { type EditedFile, openEditor } from "../edit/editor.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { type Failure, isFailure } from "../outcome/failure.ts";
import { readFailure } from "../outcome/reply-failure.ts";
import { whoChangedTexts } from "../outcome/who-changed.ts";
import { pinnedElsewhere, unmetAtFirst } from "../outcome/write-ending.ts";
import type { RegisterCommand } from "./common/command.ts";
import { confirmWrite } from "./common/confirm-write.ts";
import { dryRun } from "./common/dry-run.ts";
import { customerId, DRY_RUN, EXPECT, IF_MATCH, type WriteOptions, YES } from "./common/options.ts";
import { sendWrite } from "./common/send-write.ts";

/** The editor opens again after a conflict or a mistake; an editor that is a script must not do so forever. */
const ROUNDS_MAX = 20;

export const registerEdit: RegisterCommand = (program, run) => {
  program
    .command("edit")
    .description("change one customer in $VISUAL or $EDITOR; what others change meanwhile is kept")
    .argument("<id>", "id of the customer", customerId)
    .addOption(DRY_RUN)
    .addOption(IF_MATCH)
    .addOption(EXPECT)
    .addOption(YES)
    .action(
      run(async (invocation, id, options) => {
        const reading = await readWhole(invocation.ports(), id);
        if (reading.kind !== "read")
          return readFailure(reading, { what: `customer ${id}`, url: invocation.api.url });
        const base = reading.customer;
        const hopeless = refusedAlready(invocation, id, base, options);
        if (hopeless !== undefined) return hopeless;
        const file = openEditor(invocation, `customer-${id}`);
        if (isFailure(file)) return file;
        return await editUntilDecided(invocation, { id, base, file, options });
      }),
    );
};

/** A condition that does not hold is reported before anyone writes a text in vain. */
function refusedAlready(
  { api }: Invocation,
  id: string,
  base: Customer,
  { expect = [], ifMatch: pin }: WriteOptions,
): Failure | undefined {
  const about = { id, done: "updated", url: api.url, onConflict: "merge" } as const;
  const unmet = unmetExpectation(expect, base);
  if (unmet !== undefined) return unmetAtFirst(about, unmet, base);
  return pin === undefined || pin === base.etag ? undefined : pinnedElsewhere(about, base, pin);
}

type Editing = { id: string; base: Customer; file: EditedFile; options: WriteOptions };

/** `again`: the editor opens on this text; the failure is how it ends where the text comes back as it was. */
type Round =
  | { kind: "end"; ending: Ending; keep: boolean }
  | { kind: "again"; text: string; base: Customer; reason: Failure };

async function editUntilDecided(invocation: Invocation, editing: Editing): Promise<Ending> {
  const { id, file } = editing;
  let { base } = editing;
  let shown = renderText(base.value, introduction(id));
  let reason: Failure | undefined;
  for (let round = 1; ; round += 1) {
    const text = await file.edit(shown);
    if (typeof text !== "string") return kept(file, text);
    if (text === shown && reason !== undefined) return kept(file, reason);
    const next = await decide(invocation, { ...editing, base }, text);
    if (next.kind === "end") {
      if (next.keep && next.ending !== undefined) return kept(file, next.ending);
      if (next.keep) invocation.messages.note(`the text is kept in ${file.path}`);
      else file.remove();
      return next.ending;
    }
    if (round === ROUNDS_MAX) return kept(file, next.reason);
    ({ text: shown, base, reason } = next);
  }
}

async function decide(invocation: Invocation, editing: Editing, text: string): Promise<Round> {
  const { id, base, options } = editing;
  const parsed = parseText(text, base.value);
  if (!parsed.ok) {
    const reason: Failure = {
      kind: "failure",
      exit: "usage",
      code: "invalid-text",
      message: `customer ${id} was not updated: ${parsed.problem}; nothing was sent`,
    };
    const comments = [
      `${parsed.problem}. Correct it, save and quit; if you leave the text as it is, nothing is sent.`,
    ];
    return { kind: "again", text: withComments(text, comments), base, reason };
  }
  const change = changedMembers(base.value, parsed.value);
  if (change.size === 0) {
    invocation.messages.note(`customer ${id} unchanged: the text says what is there; nothing was sent`);
    return { kind: "end", ending: undefined, keep: false };
  }
  if (options.dryRun)
    return {
      kind: "end",
      ending: await dryRun(invocation, jobOf(invocation, editing, change), "updated"),
      keep: true,
    };
  const refused = await confirmWrite(invocation, `update customer ${id}`, options.yes ?? false);
  if (refused !== undefined) return { kind: "end", ending: refused, keep: true };
  return await send(invocation, editing, text, change);
}

async function send(invocation: Invocation, editing: Editing, text: string, change: Change): Promise<Round> {
  const { id, base } = editing;
  const job = { ...jobOf(invocation, editing, change), base };
  const { stop } = await sendWrite(invocation, job, "updated", { change });
  if (stop === undefined) return { kind: "end", ending: undefined, keep: false };
  const { bad, ending, failureWithSummary: failure } = stop;
  if (bad.kind === "conflict" && bad.fields.length > 0 && editing.options.ifMatch === undefined) {
    const reading = await readWhole(invocation.ports(), id);
    if (reading.kind !== "read") return { kind: "end", ending: failure, keep: true };
    const theirs = reading.customer;
    const comments = conflictComments(id, bad.fields, whoChangedTexts(bad));
    return {
      kind: "again",
      text: renderText(mergedValue(theirs.value, change), comments),
      base: theirs,
      reason: {
        ...failure,
        hint: "Run customers edit again, and decide in the editor which value is right.",
      },
    };
  }
  if (failure.exit === "invalid") {
    const comments = [
      ending.message,
      ...(ending.details ?? []),
      "Correct it, save and quit; if you leave the text as it is, nothing is sent.",
    ];
    return { kind: "again", text: withComments(text, comments), base, reason: failure };
  }
  return { kind: "end", ending: failure, keep: true };
}

function jobOf({ settings }: Invocation, { id, options }: Editing, change: Change) {
  const expect = options.expect ?? [];
  const alsoRead = expect.map(({ field }) => field);
  return {
    id,
    intent: changeIntent({ id, change, alsoRead, casing: settings.casing }),
    onConflict: "merge" as const,
    expect,
    ifMatch: options.ifMatch,
  };
}

/** Whatever went wrong, what was written in the editor is not lost. */
function kept(file: EditedFile, failure: Failure): Failure {
  if (!existsSync(file.path)) return failure;
  const line = `Your text is kept in ${file.path}`;
  return { ...failure, hint: failure.hint === undefined ? line : `${failure.hint}\n${line}` };
}

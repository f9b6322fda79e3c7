/** Options that several commands share. */
import type { Command } from "commander";
import { InvalidArgumentError, Option } from "commander";
import { parseEntityTag } from "../client/entity-tag.ts";
import type { Expectation, OnConflict } from "../client/step.ts";
import { UsageError } from "../outcome/failure.ts";

export type WriteOptions = {
  dryRun?: boolean;
  ifMatch?: string;
  expect?: readonly Expectation[];
  yes?: boolean;
};

export type LoopOptions = { onConflict?: OnConflict; maxAttempts?: number };

/** Names go to the server as written: which fields there are is the server's business. */
export function addFieldsOption(command: Command): Command {
  return command.option("--fields <names>", "fields to print, comma-separated", (text: string) =>
    text.split(",").map((name) => name.trim()),
  );
}

export function addWithEtagOption(command: Command): Command {
  return command.option("--with-etag", "print {etag, customer} rather than the bare customer");
}

export function addWriteOptions(command: Command): Command {
  return command
    .option("--dry-run", "read, print the request and the change, write nothing")
    .option("--if-match <tag>", "write only this version: never read again, never retried", entityTag)
    .option("--expect <field=value>", "stop unless the field has this value (repeatable)", expectation)
    .option("-y, --yes", "do not ask");
}

export function addLoopOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--on-conflict <how>",
        "when someone else wrote in between (default: merge on a terminal, else reapply)",
      ).choices(["reapply", "merge", "fail"]),
    )
    .option(
      "--max-attempts <n>",
      "writes that are sent at most (default: as many as --timeout allows)",
      atLeastOne,
    );
}

/** A person at a terminal is shown what others changed; a script says what it wants. */
export function onConflictDefault({ interactive }: { interactive: boolean }): OnConflict {
  return interactive ? "merge" : "reapply";
}

/** A version that is pinned is written or it is not: there is nothing to apply again or to merge. */
export function checkedLoop({ ifMatch, onConflict }: WriteOptions & LoopOptions): void {
  if (ifMatch === undefined || onConflict === undefined || onConflict === "fail") return;
  throw new UsageError(
    `--if-match and --on-conflict ${onConflict} exclude each other: a pinned version is never read again`,
    "For values that must still be there, give --expect FIELD=VALUE instead of --if-match.",
  );
}

export function requiredId(id: string | undefined): string {
  if (id !== undefined && id.trim() !== "") return id.trim();
  throw new UsageError("the customer id is empty", "Was the variable set that should hold it?");
}

/** A tag is used byte for byte; what can't be one would be a sure 412. */
export function entityTag(text: string): string {
  const tag = text.trim();
  if (parseEntityTag(tag).kind === "strong") return tag;
  const advice =
    tag === ""
      ? "it is empty; was the variable set that should hold it?"
      : tag.startsWith("W/")
        ? "a weak tag (W/) is of no use for a write; a proxy weakened it"
        : /^(?:W\/)?"[^"]*"[ \t]*,/.test(tag)
          ? "it is a list, and a write names one version alone."
          : /^".*"$/s.test(tag)
            ? "it has a character inside its quotes that no entity-tag has."
            : `it must have its double quotes, kept from the shell like this: '"${tag.replaceAll('"', "")}"'`;
  throw new InvalidArgumentError(advice);
}

/** What If-None-Match takes: a list of tags, weak ones too, or `*`. */
export function entityTags(text: string): string {
  const list = text.trim();
  if (
    /^(?:\*|(?:W\/)?"[\x20\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x20\x21\x23-\x7e\x80-\xff]*")*)$/.test(
      list,
    )
  )
    return list;
  throw new InvalidArgumentError(`give it with its double quotes, kept from the shell like this: '"abc"'`);
}

export function atLeastOne(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidArgumentError("give a whole number from 1 on.");
}

export function idempotencyKey(text: string): string {
  if (/^[\x21-\x7e]{1,255}$/.test(text)) return text;
  throw new InvalidArgumentError("give 1 to 255 visible ASCII characters, no spaces.");
}

export function expectation(
  text: string,
  earlier: readonly Expectation[] | undefined,
): readonly Expectation[] {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("give it as FIELD=VALUE, such as status=active.");
  return [...(earlier ?? []), { field: text.slice(0, at).trim(), value: text.slice(at + 1) }];
}

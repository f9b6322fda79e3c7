/** Options and arguments that several commands share. */
import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import type { Expectation, OnConflict } from "../../client/loop/write-job.ts";
import { parseEntityTag } from "../../client/wire/entity-tag.ts";
import { canBeId } from "../../client/wire/request.ts";
import type { OutputFormat } from "../../config/flags.ts";
import { UsageError } from "../../outcome/failure.ts";

export type WriteOptions = {
  dryRun?: boolean;
  ifMatch?: string;
  expect?: readonly Expectation[];
  yes?: boolean;
};

export type LoopOptions = { onConflict?: OnConflict; maxAttempts?: number };

/** Names go to the server as written: which fields there are is the server's business. */
export const FIELDS = new Option("--fields <names>", "fields to print, comma-separated")
  .argParser((text: string): readonly string[] => text.split(",").map((name) => name.trim()))
  .helpGroup("Output:");
export const WITH_ETAG = new Option(
  "--with-etag",
  "print {etag, customer} rather than the bare customer",
).helpGroup("Output:");
/** Of a write; it holds the customer, so nothing else is printed. */
export const RESULT = new Option(
  "--result",
  "print what came of it instead: result, attempts, conflicts, tags, request id, customer",
)
  .conflicts(["withEtag", "dryRun"])
  .helpGroup("Output:");
export const STATUS = new Option("--status <status>", "only customers with this status");
export const EMAIL = new Option(
  "--email <email>",
  "only customers with this address; case makes no difference",
);

export const YES = new Option("-y, --yes", "do not ask");
export const DRY_RUN = new Option("--dry-run", "read, print the request and the change, write nothing");
export const IF_MATCH = new Option(
  "--if-match <tag>",
  "write only this version: never read again, never retried",
)
  .argParser(entityTag)
  .helpGroup("Conflicts:");
export const EXPECT = new Option(
  "--expect <field=value>",
  "stop unless the field has this value (repeatable)",
)
  .argParser(expectation)
  .helpGroup("Conflicts:");
export const ON_CONFLICT = new Option(
  "--on-conflict <how>",
  "when someone else wrote in between (default: merge on a terminal, else reapply)",
)
  .choices(["reapply", "merge", "fail"])
  .helpGroup("Conflicts:");
export const MAX_ATTEMPTS = new Option(
  "--max-attempts <n>",
  "writes that are sent at most (default: as many as --timeout allows)",
)
  .argParser(positiveInteger)
  .helpGroup("Conflicts:");

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

/** A result holds objects, and there is one for each customer: CSV and bare values have no place for either. */
export function checkedResult(result: boolean | undefined, output: OutputFormat | undefined): void {
  if (!result || (output !== "csv" && output !== "value")) return;
  throw new UsageError(
    `--result can't be printed as ${output}; nothing was sent`,
    "Give --output table, json or ndjson.",
  );
}

/** An argument. */
export function customerId(text: string): string {
  const id = text.trim();
  if (canBeId(id)) return id;
  if (id !== "")
    throw new UsageError(`"${id}" is not a customer id`, "List the ids with: customers list --fields id");
  throw new UsageError("the customer id is empty", "Was the variable set that should hold it?");
}

/** A repeated argument; `-` stands for ids on standard input. */
export function customerIds(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, customerId(text)];
}

/** A tag is used byte for byte; what can't be one would be a sure 412. */
export function entityTag(text: string): string {
  const tag = text.trim();
  if (parseEntityTag(tag).kind === "strong") return tag;
  const advice =
    tag === ""
      ? "It is empty; was the variable set that should hold it?"
      : tag.startsWith("W/")
        ? "A weak tag (W/) can't be the condition of a write; a proxy weakened it."
        : /^(?:W\/)?"[^"]*"[ \t]*,/.test(tag)
          ? "It is a list, and a write names one version alone."
          : /^".*"$/s.test(tag)
            ? "It has a character inside its quotes that no entity-tag has."
            : `It must have its double quotes, kept from the shell like this: '"${tag.replaceAll('"', "")}"'`;
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
  throw new InvalidArgumentError(`Give it with its double quotes, kept from the shell like this: '"abc"'`);
}

export function positiveInteger(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidArgumentError("It must be a positive integer.");
}

export function idempotencyKey(text: string): string {
  if (/^[\x21-\x7e]{1,255}$/.test(text)) return text;
  throw new InvalidArgumentError("Give 1 to 255 visible ASCII characters, no spaces.");
}

export function expectation(text: string, earlier: readonly Expectation[] = []): readonly Expectation[] {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("Give it as FIELD=VALUE, such as status=active.");
  return [...earlier, { field: text.slice(0, at).trim(), value: text.slice(at + 1) }];
}

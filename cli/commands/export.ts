import { once } from "node:events";
import { createWriteStream, statSync, type WriteStream } from "node:fs";
import { extname } from "node:path";
import { Option } from "@commander-js/extra-typings";
import { eachPage, type Page } from "../client/pages.ts";
import type { Ports } from "../client/read-customer.ts";
import { wholeFields } from "../client/whole-customer.ts";
import type { ListQuery } from "../client/wire/request.ts";
import type { OutputFormat } from "../config/flags.ts";
import { systemCode } from "../files/system-code.ts";
import { type Draft, openDraft } from "../files/write-atomically.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { amount } from "../outcome/amount.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { listFailure } from "../outcome/reply-failure.ts";
import { untilInterrupted } from "../outcome/until-interrupted.ts";
import { type DataStream, openDataStream } from "../output/data-stream.ts";
import { openListPrinter } from "../output/print-customers.ts";
import { showProgress } from "../output/progress.ts";
import type { RegisterCommand } from "./common/command.ts";
import { EMAIL, FIELDS, positiveInteger, STATUS, WITH_ETAG } from "./common/options.ts";
import { perhapsMore, perhapsMoreText } from "./common/print-pages.ts";

type Options = {
  status?: string;
  email?: string;
  fields?: readonly string[];
  withEtag?: boolean;
  pageSize: number;
};
type ExportFormat = Extract<OutputFormat, "csv" | "ndjson" | "json">;

/** The most that our own service allows; one that allows fewer refuses, and is then asked for its default. */
const PAGE_SIZE_DEFAULT = 500;

export const registerExport: RegisterCommand = (program, run) => {
  program
    .command("export")
    .description("write every customer as CSV or NDJSON, to a file or stdout")
    .argument("[file]", "file to write (default: stdout)", String, "-")
    .addOption(
      new Option(
        "--format <format>",
        "csv, ndjson or json (default: by the file's name, else ndjson)",
      ).choices(["csv", "ndjson", "json"]),
    )
    .addOption(STATUS)
    .addOption(EMAIL)
    .option("--page-size <n>", "customers a request", positiveInteger, PAGE_SIZE_DEFAULT)
    .addOption(FIELDS)
    .addOption(WITH_ETAG)
    .action(
      run(async (invocation, file, options) => {
        const format = options.format ?? invocation.settings.output ?? formatOf(file);
        if (format === undefined) {
          return failure(
            "usage",
            `the name ${file} does not say in which format to export`,
            "Name it .csv, .ndjson or .json, or give --format.",
          );
        }
        if (format === "table" || format === "value") {
          return failure(
            "usage",
            `export writes csv, ndjson or json, not ${format}`,
            "For a table: customers list --all",
          );
        }
        if (file === "-") return await exportTo(invocation, invocation.out, format, options);
        return await exportToFile(invocation, file, format, options);
      }),
    );
};

/** NDJSON where the name has no extension; undefined where it has one that is no format of ours. */
function formatOf(file: string): ExportFormat | undefined {
  const extension = extname(file).slice(1).toLowerCase();
  const formats: Record<string, ExportFormat> = {
    csv: "csv",
    json: "json",
    ndjson: "ndjson",
    jsonl: "ndjson",
    "": "ndjson",
  };
  return formats[extension];
}

/** The file appears when it is whole; until then, and after a failure, an earlier one of its name stays. */
async function exportToFile(
  invocation: Invocation,
  file: string,
  format: ExportFormat,
  options: Options,
): Promise<Ending> {
  // A pipe or a device is written to as it is: a rename would put a file in its place.
  const existing = statSync(file, { throwIfNoEntry: false });
  const inPlace = existing !== undefined && !existing.isFile();
  let draft: Draft | undefined;
  let stream: WriteStream;
  try {
    // It holds personal data, so a new file is for the operator alone, who can widen it.
    draft = inPlace ? undefined : openDraft(file, "keep");
    stream = createWriteStream(file, draft && { fd: draft.fd, autoClose: false });
    // A pipe is open when somebody reads it.
    if (draft === undefined) await untilInterrupted(once(stream, "open"), invocation.interrupted);
  } catch (error) {
    const code = systemCode(error);
    return failure("usage", `${file} can't be written (${code}); nothing was asked for`, "Check the path.");
  }
  const release = draft && invocation.host.onExit(draft.discard);
  const out = openDataStream(stream, invocation.interrupted);
  let ending = await exportTo(invocation, out, format, options);
  // After a failed write `finish` may never come.
  if (out.failure() === undefined)
    await new Promise<void>((resolve) => stream.once("finish", resolve).once("error", resolve).end());
  const lost = out.failure();
  if (lost !== undefined) ending ??= failure("failure", `${file} can't be written: ${lost}`);
  release?.();
  if (ending === undefined) return draft && putInPlace(draft, file);
  draft?.discard();
  return ending;
}

function putInPlace(draft: Draft, file: string): Ending {
  try {
    draft.commit();
    return undefined;
  } catch (error) {
    const code = systemCode(error);
    return failure("failure", `${file} can't be replaced (${code}); the export is whole, in ${draft.path}`);
  }
}

async function exportTo(
  invocation: Invocation,
  out: DataStream,
  format: ExportFormat,
  options: Options,
): Promise<Ending> {
  const { messages, settings, terminal, api, ports } = invocation;
  const { status, email, pageSize, withEtag = false } = options;
  const whole = options.fields === undefined ? await wholeFields(ports, { status, email }) : undefined;
  const fields = options.fields ?? whole?.fields;
  if (whole !== undefined && whole.leftOut.length > 0) {
    messages.warn(
      `warning: the server does not show ${whole.leftOut.join(", ")} unless asked, and then nothing that it was not asked for; to export it: --fields id,name,email,status`,
    );
  }
  const printer = openListPrinter(
    {
      ...invocation,
      out,
      // A file is not looked at on the terminal where its export was started.
      terminal: { ...terminal, stdoutIsTerminal: terminal.stdoutIsTerminal && out === invocation.out },
      settings: { ...settings, output: format },
    },
    { fields, withEtag },
  );
  let written = 0;
  // On one terminal, a bar would stand in the middle of the data.
  const quiet = out === invocation.out && terminal.stdoutIsTerminal;
  const progress = quiet
    ? undefined
    : showProgress(invocation, "customers", () => ({
        done: written,
        before: 0,
        total: undefined,
        conflicts: 0,
        failed: 0,
      }));
  try {
    for await (const page of pages(ports, { status, email, fields }, pageSize)) {
      if (page.kind !== "page")
        return incomplete(listFailure(page, { url: api.url, fields, email }), written);
      if (!(await printer.write(page.items))) return printer.end();
      written += page.items.length;
      if (perhapsMore(page, pageSize)) messages.warn(perhapsMoreText("customer", "--page-size N"));
      if (invocation.interrupted.aborted) {
        return incomplete(failure("interrupted", "interrupted"), written);
      }
    }
  } finally {
    progress?.stop();
  }
  messages.note(`${amount(written, "customer")} exported`);
  return printer.end();
}

/** Where a server refuses the size of a page, it is asked for pages of its own size. */
async function* pages(
  ports: () => Ports,
  query: Omit<ListQuery, "limit" | "cursor">,
  pageSize: number,
): AsyncGenerator<Page> {
  let begun = false;
  for await (const page of eachPage(ports, { ...query, limit: pageSize })) {
    if (!begun && page.kind === "invalid") return yield* eachPage(ports, query);
    begun = true;
    yield page;
  }
}

function incomplete(reason: Failure, written: number): Failure {
  return {
    ...reason,
    message: `${reason.message}; the export is incomplete, ${amount(written, "customer")} written`,
  };
}

/** A list on stdout, page by page: the end of `list` and `history`. */
import type { ListFailure, PageOf } from "../../client/pages.ts";
import type { ReadRefusal } from "../../client/refusal.ts";
import type { Ending, Invocation } from "../../invocation.ts";
import { type Failure, failure } from "../../outcome/failure.ts";
import { type ListPrinter, outputFormat } from "../../output/print-customers.ts";

type Extent = { limit?: number | undefined; all?: boolean | undefined };

type Listing<Item> = {
  /** `customer`: what an item is. */
  noun: string;
  /** @param size of a page. */
  pages: (size: number) => AsyncIterable<PageOf<Item> | ReadRefusal>;
  printer: ListPrinter<Item>;
  refused: (stop: ReadRefusal | ListFailure) => Failure;
};

export const LIMIT_DEFAULT = 50;
/** A page of `--all`; servers that allow fewer say so, and --limit then gives the size of the page too. */
const PAGE_DEFAULT = 200;

/** A full page, after which the server says nothing. */
export function perhapsMore(
  { open, items }: { open: boolean; items: readonly unknown[] },
  size: number,
): boolean {
  return open && items.length === size;
}

/** @param option gives a larger page. */
export function perhapsMoreText(noun: string, option: string): string {
  return `warning: the last page is full, and the server does not say whether there are more ${noun}s; ask again with a larger page: ${option}`;
}

export async function printPages<Item>(
  invocation: Invocation,
  { limit, all = false }: Extent,
  { noun, pages, printer, refused }: Listing<Item>,
): Promise<Ending> {
  const { messages, interrupted } = invocation;
  const wanted = all ? Number.POSITIVE_INFINITY : (limit ?? LIMIT_DEFAULT);
  const size = all ? (limit ?? PAGE_DEFAULT) : Math.min(wanted, PAGE_DEFAULT);
  let printed = 0;
  for await (const page of pages(size)) {
    // What was printed stays a part: the JSON array is left open rather than made to look whole.
    if (page.kind !== "page") return refused(page);
    const items = page.items.slice(0, wanted - printed);
    printed += items.length;
    if (!(await printer.write(items)) || interrupted.aborted) break;
    if (printed >= wanted) {
      const more = items.length < page.items.length || page.items.length === size;
      // Who gave --limit asked for a part; the default must not pass for the whole.
      if (more && limit === undefined) {
        messages.warn(`warning: only the first ${printed} ${noun}s are shown; --all shows every one`);
      }
      break;
    }
    if (perhapsMore(page, size)) messages.warn(perhapsMoreText(noun, "--all --limit N"));
  }
  if (printed === 0 && outputFormat(invocation) === "table") messages.note(`No ${noun}s.`);
  if (interrupted.aborted) return failure("interrupted", "interrupted; the list is not complete");
  return printer.end();
}

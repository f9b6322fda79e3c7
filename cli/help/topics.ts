/** What `customers help TOPIC` prints. Each fits one screen: 24 lines of 80 columns. */
import { Help } from "@commander-js/extra-typings";
import { EXIT_CODES } from "../outcome/exit-code.ts";

export const HELP_TOPICS: Readonly<Record<string, () => string>> = {
  conflicts: () => CONFLICTS,
  "exit-codes": exitCodes,
  output: () => OUTPUT,
};

const CONFLICTS = `How update, edit, delete and import write under concurrent writers

1. The customer is read with its entity-tag, which names this version of it.
2. Your change is applied. If nothing would change, nothing is sent.
3. The write carries If-Match: TAG. It is accepted only if nobody wrote since.
4. Refused (412): the customer is read again, and --on-conflict decides.
     reapply  your fields are set on the new version; the summary names what
              they overwrote (default without a terminal)
     merge    the same, unless someone else changed one of your fields: then
              base, theirs and mine are shown (exit 5; default on a terminal)
     fail     stop at the first 412 (exit 5), unless it is as you want it
   Again and again, with growing random pauses, until --timeout (30 s) or
   --max-attempts ends it (exit 5). edit merges, and opens the editor again.
5. No reply, or 500, 502, 503, 504: the write may have been applied, so the
   customer is read first. If that can't tell, it is exit 8; repeating is safe.
   The last fifth of --timeout, at most 5 s, is kept for this reading.
6. 429 is waited for as Retry-After says.

--if-match TAG pins a version: no second reading, no retry.
--expect FIELD=VALUE stops (exit 5) where any reading shows another value. Of
many who claim with it, one alone ends with exit 0.
`;

const OUTPUT = `stdout is data; summaries, progress and errors are on stderr. --quiet removes
the summaries, --verbose adds the exchange with every secret masked.

--output FORMAT
  table    for people; the default on a terminal
  json     the server's own text, numbers unrounded; the default elsewhere
  ndjson   one customer a line
  csv      with a header; cells that a spreadsheet would run as a formula have
           an apostrophe in front, which import takes away again
  value    the bare values of --fields, separated by tabs, a customer a line;
           tabs, line ends and backslashes in them as \\t, \\n, \\r, \\\\:
             email=$(customers get ID --output value --fields email)

--fields name,email   what the server is asked for
--with-etag           {"etag": …, "customer": …}, in CSV and tables a column
--result              of a write: what came of it, attempts, conflicts, tags

With --output json an error is one JSON object on stderr: code, message, hint,
requestId, exitCode, details, and the server's problem document.

NO_COLOR, FORCE_COLOR and TERM=dumb are honoured. Nothing asks, colours or
moves without a terminal.
`;

function exitCodes(): string {
  const helper = Object.assign(new Help(), { helpWidth: 78 });
  const rows = Object.values(EXIT_CODES).map(({ code, meaning }) =>
    helper.formatItem(String(code).padStart(3), 3, meaning, helper),
  );
  return `Exit codes\n\n${rows.join("\n")}\n`;
}

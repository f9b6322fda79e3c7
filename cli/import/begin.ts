/** Which journal an import goes by: a new one, or that of an unfinished import. */
import { existsSync } from "node:fs";
import { type Failure, failure, isFailure } from "../outcome/failure.ts";
import { type Journal, openJournal } from "./journal.ts";

type Beginning = {
  resume: boolean;
  restart: boolean;
  /** Creations of a finished import are repeated. */
  again: boolean;
  url: string;
  journalPath: string;
  /** The operator named the journal: one that is not there is a mistake. */
  journalIsNamed: boolean;
  input: string;
};

/**
 * `done`: of a finished import at this deployment; its creations must not be repeated by
 * accident. `replace`: of one that was given up, or is to be repeated. Both are emptied once the new input
 * is known to be sound.
 */
export type EarlierJournal = { kind: "none" } | { kind: "resume" | "done" | "replace"; journal: Journal };

export function earlierJournal(beginning: Beginning): EarlierJournal | Failure {
  const { journalPath, journalIsNamed, resume, restart, again, url, input } = beginning;
  if (!existsSync(journalPath)) {
    // Beside its input, where nothing is, nothing was begun: a script may give --resume each time.
    return resume && journalIsNamed ? nothingToResume(journalPath) : { kind: "none" };
  }
  const journal = openJournal(journalPath, beginning);
  if (isFailure(journal)) return journal;
  const { record } = journal;
  if (resume && record.url !== url) {
    journal.close();
    return failure(
      "usage",
      `the import of ${input} that ${journalPath} belongs to went to ${record.url}, not to ${url}; nothing was sent`,
      "Give the same --url or --profile as then, or start over with --restart.",
    );
  }
  if (resume) return { kind: "resume", journal };
  if (record.complete && !again && record.url === url) return { kind: "done", journal };
  if (restart || again || record.complete || journal.lastRow() === 0) return { kind: "replace", journal };
  const { created, updated, unchanged, failed } = journal.counts();
  journal.close();
  return failure(
    "usage",
    `an earlier import of ${input} did not finish: ${created + updated + unchanged + failed} rows are done; nothing was sent`,
    "Resume it with --resume, or start over with --restart: rows that were imported are then sent again.",
  );
}

/** Begun anew, an import whose journal lies elsewhere would create its customers a second time. */
function nothingToResume(journalPath: string): Failure {
  return failure(
    "usage",
    `there is nothing to resume: ${journalPath} does not exist; nothing was sent`,
    "If the import was begun with another --journal, give that one. If none was begun, leave out --resume.",
  );
}

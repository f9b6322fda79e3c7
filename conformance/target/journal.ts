/**
 * What a run has made or borrowed, written down before it goes on, so that `cleanup` can put right what a
 * killed run left. One file a run, JSON lines, mode 0600 since it holds the former values of given customers.
 */
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Names } from "./names.ts";

/** The caller who makes a customer; without one it is the main caller. */
export type Maker = "main" | "limited" | "other-tenant";

export type JournalEntry =
  | {
      readonly kind: "run";
      readonly pid: number;
      readonly baseUrl: string;
      readonly startedAt: string;
      /** The words after `run`, secrets as $NAME: with them `cleanup` finds the credentials again. */
      readonly arguments: readonly string[];
    }
  /** A create was sent; without `made` after it, its answer never came. */
  | { readonly kind: "making"; readonly email: string; readonly maker?: Maker }
  | { readonly kind: "not-made"; readonly email: string }
  /** `email` as in `making`; without it the customer was not made by such a create. */
  | { readonly kind: "made"; readonly id: string; readonly email?: string; readonly maker?: Maker }
  | {
      readonly kind: "borrowed";
      readonly id: string;
      readonly names: Names;
      readonly values: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: "settled"; readonly id: string };

export class Journal {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** A new file in `folder`. */
  static begin(folder: string, entry: Omit<JournalEntry & { kind: "run" }, "kind">): Journal {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const journal = new Journal(join(folder, `${entry.startedAt.replace(/[:.]/g, "-")}-${entry.pid}.jsonl`));
    journal.note({ kind: "run", ...entry });
    return journal;
  }

  /** On the disk when it returns, as far as the system call goes: `kill -9` loses nothing. */
  note(entry: JournalEntry): void {
    appendFileSync(this.path, `${JSON.stringify(entry)}\n`, { mode: 0o600 });
  }

  /** A last line cut short by a kill is left out. */
  read(): JournalEntry[] {
    if (!existsSync(this.path)) return [];
    return readFileSync(this.path, "utf8")
      .split("\n")
      .flatMap((line) => {
        try {
          return line === "" ? [] : [JSON.parse(line) as JournalEntry];
        } catch {
          return [];
        }
      });
  }

  remove(): void {
    rmSync(this.path, { force: true });
  }
}

/** `$CUSTOMERS_CONFORMANCE_STATE`, else below `$XDG_STATE_HOME` or `~/.local/state`. */
export function journalFolder(env: Readonly<Record<string, string | undefined>>): string {
  const own = env["CUSTOMERS_CONFORMANCE_STATE"];
  if (own !== undefined && own !== "") return own;
  const state = env["XDG_STATE_HOME"] || join(homedir(), ".local", "state");
  return join(state, "customers-conformance");
}

export function journalsIn(folder: string): Journal[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .sort()
    .map((name) => new Journal(join(folder, name)));
}

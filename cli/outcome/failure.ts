import type { Json } from "../client/json.ts";
import type { NamedChanges } from "../client/named-changes.ts";
import type { Exit } from "./exit-code.ts";

/**
 * Why a command did not end as asked: what happened and to which customer (`message`), and what to do next
 * (`hint`). A refusal is a value; only a bug is thrown.
 */
export type Failure = {
  kind: "failure";
  exit: Exclude<Exit, "done">;
  /** The server's problem code (`unknown-field`) where it gave one, else our own word. */
  code: string;
  message: string;
  hint?: string;
  /** The write is done; only what it made could not be shown. */
  isWritten?: true;
  /** Lines under the message, such as the values of a conflict. */
  details?: readonly string[];
  /** Who changed the customer meanwhile, where the server says it. */
  changes?: NamedChanges;
  /** Of the reply that refused; absent where none came. */
  status?: number;
  /** Milliseconds that the server asks for before the next request (Retry-After). */
  waitMs?: number;
  requestId?: string;
  /** The server's problem document, as it came. */
  problem?: Json;
};

export function failure(exit: Failure["exit"], message: string, hint?: string): Failure {
  const kind = "failure";
  return hint === undefined ? { kind, exit, code: exit, message } : { kind, exit, code: exit, message, hint };
}

/** Thrown while options are parsed, where a value can't be returned; `program.ts` catches it. */
export class UsageError extends Error {
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

/** Distinguishes a failure from the value that was hoped for. */
export function isFailure(value: object | undefined): value is Failure {
  return value !== undefined && "kind" in value && value.kind === "failure";
}

import { CUSTOMER_WRITES } from "./customer-writes.ts";
import { FIRST_WRITES } from "./first-rows.ts";
import type { GroupCommit } from "./group-commit.ts";
import { KEY_WRITES } from "./idempotency-keys.ts";
import type { StatementCache } from "./statement-cache.ts";
import { TOKEN_WRITES } from "./token-writes.ts";

/** Every write that there is, by name. Input and outcome are JSON, so that they can cross to another thread as text. */
const WRITES = { ...CUSTOMER_WRITES, ...KEY_WRITES, ...TOKEN_WRITES, ...FIRST_WRITES };

type Writes = typeof WRITES;
export type WriteName = keyof Writes;
export type WriteInput<Name extends WriteName> = Parameters<Writes[Name]>[1];
export type WriteResult<Name extends WriteName> = ReturnType<Writes[Name]>;
/** A write as it is sent to another thread. */
export type WriteRequest = { readonly name: WriteName; readonly input: WriteInput<WriteName> };

/** Takes writes and answers each once it is durable, or fails with StoreUnavailable. */
export interface Writer {
  run<Name extends WriteName>(name: Name, input: WriteInput<Name>): Promise<WriteResult<Name>>;
  /** Finishes the writes that were taken. */
  close(): Promise<void>;
}

/** Runs one write on the writer's connection, inside its transaction. */
export function applyWrite<Name extends WriteName>(
  statements: StatementCache,
  name: Name,
  input: WriteInput<Name>,
): WriteResult<Name> {
  const apply = WRITES[name] as (statements: StatementCache, input: WriteInput<Name>) => WriteResult<Name>;
  return apply(statements, input);
}

/** Writes on a connection of this thread. */
export class LocalWriter implements Writer {
  readonly #statements: StatementCache;
  readonly #groupCommit: GroupCommit;
  readonly #isAtOnce: boolean;

  /** @param isAtOnce for a database in memory, whose commits wait for no disk: nothing is gained by gathering them */
  constructor(statements: StatementCache, groupCommit: GroupCommit, isAtOnce = false) {
    this.#statements = statements;
    this.#groupCommit = groupCommit;
    this.#isAtOnce = isAtOnce;
  }

  run<Name extends WriteName>(name: Name, input: WriteInput<Name>): Promise<WriteResult<Name>> {
    const job = (): WriteResult<Name> => applyWrite(this.#statements, name, input);
    return (this.#isAtOnce ? this.#groupCommit.tryNow(job) : null) ?? this.#groupCommit.run(job);
  }

  async close(): Promise<void> {
    await this.#groupCommit.close();
    this.#statements.close();
  }
}

import type { WriteMethod } from "../domain/policy.ts";
import type { WriteCount } from "../domain/rollout/write-count.ts";
import { storedTime } from "./stored-time.ts";

/** A row of the table `write_counts`, as every engine stores it. PostgreSQL's driver gives its numbers as text. */
export type WriteCountRow = {
  readonly tenant: string;
  readonly client: string;
  readonly day: string;
  readonly client_version: string;
  readonly method: WriteMethod;
  readonly with_if_match: number | string;
  readonly allowed: number | string;
  readonly refused: number | string;
  readonly first_at: number | string;
  readonly last_with_at: number | string | null;
  readonly first_without_at: number | string | null;
  readonly last_without_at: number | string | null;
};

export function writeCountOf(row: WriteCountRow): WriteCount {
  return {
    tenant: row.tenant,
    client: row.client,
    version: row.client_version,
    method: row.method,
    day: row.day,
    withIfMatch: Number(row.with_if_match),
    allowed: Number(row.allowed),
    refused: Number(row.refused),
    firstAtMs: Number(row.first_at),
    lastWithAtMs: storedTime(row.last_with_at),
    firstWithoutAtMs: storedTime(row.first_without_at),
    lastWithoutAtMs: storedTime(row.last_without_at),
  };
}

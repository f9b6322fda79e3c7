import { WRITE_METHODS, type WriteMethod } from "../domain/policy/policy.ts";
import { readPreconditions } from "../domain/precondition.ts";
import type { WriteKind } from "../domain/rollout/write-count.ts";
import type { AnsweredRequest } from "./answered-request.ts";
import { versionOf } from "./client-versions.ts";

/** A write to `/customers/{id}` by an authenticated caller, and how it was answered. */
export type AnsweredWrite = {
  readonly answered: AnsweredRequest;
  readonly method: WriteMethod;
  readonly client: string;
  readonly tenant: string;
  readonly version: string;
};

export const CUSTOMER_ROUTE = "/customers/{id}";

/** @param headers of the request @returns null for everything else */
export function answeredWriteOf(answered: AnsweredRequest, headers: Headers): AnsweredWrite | null {
  const { method, route, caller } = answered;
  if (route !== CUSTOMER_ROUTE || caller === null || !isWriteMethod(method)) return null;
  const { client, tenant } = caller;
  return { answered, method, client, tenant: tenant ?? "", version: versionOf(headers.get("user-agent")) };
}

function isWriteMethod(method: string): method is WriteMethod {
  return (WRITE_METHODS as readonly string[]).includes(method);
}

/**
 * What a write says about its client's readiness; null where it says nothing: one that was
 * refused for another reason is refused whether or not If-Match is enforced, and one that is replayed was counted when it
 * was applied.
 */
export function writeKindOf(
  { status, isAllowedWithoutIfMatch, isReplayed }: AnsweredRequest,
  headers: Headers,
): WriteKind | null {
  if (status === 428) return "refused";
  if (isReplayed) return null;
  if (isAllowedWithoutIfMatch) return "allowed";
  if (status === 412) return readPreconditions(headers).ifMatch === null ? null : "with";
  return status < 300 ? "with" : null;
}

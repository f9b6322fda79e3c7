import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { Enforcement } from "../domain/policy/policy.ts";
import type { Rights } from "../domain/policy/rights.ts";
import type { Result } from "../domain/problem.ts";

/** Who calls, what it may do, which writes need If-Match, and when: all of one look. */
export type Authority = {
  readonly tenant: string;
  readonly client: string;
  /** Idempotency keys belong to the token: clients of one name may have different rights. */
  readonly tokenId: string;
  /** The part of the token that lists show. */
  readonly tokenPrefix: string;
  readonly rights: Rights;
  readonly enforcement: Enforcement;
  /** As the policy says for the audit trail. */
  readonly keepsValues: boolean;
  /** ms since 1970. */
  readonly nowMs: number;
};

/** A request for an operation on customers. */
export type Call = {
  /** As of the arrival of the headers. */
  readonly authority: Authority;
  readonly headers: Headers;
  readonly requestId: string;
  /** The query string, with its question mark. */
  readonly search: string;
  /** Reads the body as JSON of one of these media types; may be called once. */
  readonly readJson: (mediaTypes: readonly string[]) => Promise<Result<unknown>>;
  /**
   * Reads a body that means nothing to the operation to its end, within the bounds of others. At once where there is
   * none; may be called once.
   */
  readonly discardBody: () => MaybePromise<Result<null>>;
  /**
   * Looks at caller, rights, enforcement and time once more. A body may
   * take long to arrive, and the token may be revoked or the policy changed
   * meanwhile: an operation that reads a body decides by this look alone.
   */
  readonly lookAgain: () => MaybePromise<Result<Authority>>;
};

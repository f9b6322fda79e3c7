import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { Result } from "../domain/problem.ts";
import type { TenantCaller } from "./authentication.ts";
import type { Reply } from "./reply/reply.ts";
import type { RequestContext } from "./request-context.ts";

/** Check 2 of the order of checks, and the handler behind it. */
export type Access =
  | { readonly callers: "anyone" | "monitors"; readonly handle: Handler }
  | { readonly callers: "tenants"; readonly handle: TenantHandler };

export type Handler = (context: RequestContext) => MaybePromise<Result<Reply>>;
export type TenantHandler = (context: RequestContext, caller: TenantCaller) => MaybePromise<Result<Reply>>;

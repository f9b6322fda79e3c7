import type { MaybePromise } from "../domain/maybe-promise.ts";
import { andThen } from "../domain/maybe-promise.ts";
import { type Enforcement, type Policy, type Rights, rightsOf } from "../domain/policy.ts";
import { ok, type Result } from "../domain/problem.ts";
import type { Call } from "../operations/checks.ts";
import { list, read, search } from "../operations/reads.ts";
import { create, patch, remove, replace, type Written } from "../operations/writes.ts";
import type { CustomerStore } from "../storage/customer-store.ts";
import { authenticate, type TenantCaller, type TokenLookup } from "./authentication.ts";
import type { Reply } from "./reply.ts";
import { createdReply, pageReply, readReply, writtenReply } from "./representation.ts";
import { readJsonBody } from "./request-body.ts";
import { type RequestContext, searchOf } from "./request-context.ts";
import type { TenantHandler } from "./routes.ts";

export type CustomerRoutesParts = {
  readonly store: CustomerStore;
  readonly tokens: TokenLookup;
  readonly policy: () => Policy;
  readonly publicUrl: string;
  /** ms since 1970. */
  readonly now: () => number;
};

/** The operations on customers, each with what makes its outcome a reply. */
export function customerHandlers(parts: CustomerRoutesParts) {
  const { store, publicUrl } = parts;
  function handler<Outcome>(
    operate: (store: CustomerStore, call: Call, parameter: string) => MaybePromise<Result<Outcome>>,
    represent: (outcome: Outcome, context: RequestContext) => Reply,
  ): TenantHandler {
    return (context, caller) =>
      andThen(operate(store, new RequestCall(context, caller, parts), context.parameter), (outcome) =>
        outcome.ok ? ok(represent(outcome.value, context)) : outcome,
      );
  }
  const nextUrl =
    (search: string) =>
    (cursor: string): string => {
      const query = new URLSearchParams(search);
      query.set("cursor", cursor);
      return `${publicUrl}/customers?${query}`;
    };
  const written = (outcome: Written): Reply => writtenReply(outcome, publicUrl);

  return {
    list: handler(list, (listed, { request }) => pageReply(listed, nextUrl(searchOf(request)))),
    search: handler(search, (listed) => pageReply(listed, null)),
    create: handler(create, (created) => createdReply(created, publicUrl)),
    read: handler(read, readReply),
    replace: handler(replace, written),
    patch: handler(patch, written),
    remove: handler(remove, written),
  };
}

/** A class, since its methods are seldom called and would otherwise be made for each request. */
class RequestCall implements Call {
  readonly tenant: string;
  readonly client: string;
  readonly tokenId: string;
  readonly rights: Rights;
  readonly enforcement: Enforcement;
  readonly nowMs: number;
  readonly headers: Headers;
  readonly search: string;
  readonly #request: Request;
  readonly #parts: CustomerRoutesParts;

  constructor(
    { request, nowMs }: RequestContext,
    { client, tokenId, tenant, role }: TenantCaller,
    parts: CustomerRoutesParts,
  ) {
    const policy = parts.policy();
    this.tenant = tenant;
    this.client = client;
    this.tokenId = tokenId;
    this.rights = rightsOf(policy, tenant, role);
    this.enforcement = policy.enforcement;
    this.nowMs = nowMs;
    this.headers = request.headers;
    this.search = searchOf(request);
    this.#request = request;
    this.#parts = parts;
  }

  readJson(mediaTypes: readonly string[]): Promise<Result<unknown>> {
    return readJsonBody(this.#request, mediaTypes);
  }

  currentRights(): MaybePromise<Result<Rights>> {
    const { tokens, policy, now } = this.#parts;
    return andThen(authenticate(tokens, this.headers.get("authorization"), now()), (again) =>
      again.ok ? ok(rightsOf(policy(), again.value.tenant, again.value.role)) : again,
    );
  }
}

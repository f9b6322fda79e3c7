import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { type Policy, rightsOf } from "../../domain/policy/policy.ts";
import { flatMap, ok, type Result } from "../../domain/problem.ts";
import type { Authority, Call } from "../../operations/call.ts";
import { patch, replace } from "../../operations/change-customer.ts";
import type { Written } from "../../operations/conditional-write.ts";
import { create } from "../../operations/create.ts";
import { type HistoryStores, history } from "../../operations/history.ts";
import { list } from "../../operations/list.ts";
import type { PageStore } from "../../operations/page.ts";
import { read } from "../../operations/read.ts";
import { RefusalTrail } from "../../operations/refusal-trail.ts";
import { remove } from "../../operations/remove.ts";
import { search } from "../../operations/search.ts";
import type { HistoryQuery } from "../../storage/audit/audit-store.ts";
import type { CustomerStore } from "../../storage/customers/customer-store.ts";
import {
  authenticate,
  type CallerLookup,
  requireTenant,
  type TenantCaller,
  tokenIn,
} from "../authentication.ts";
import { readJsonBody, readUnusedBody } from "../body/request-body.ts";
import type { TenantHandler } from "../handler.ts";
import { PageTurns } from "../page-turns.ts";
import type { Reply } from "../reply/reply.ts";
import { createdReply, historyReply, pageReply, readReply, writtenReply } from "../reply/representation.ts";
import { type RequestContext, searchOf } from "../request-context.ts";

export type CustomerRoutesParts = CallerLookup & {
  readonly store: CustomerStore;
  readonly audit: HistoryStores["audit"];
  readonly policy: () => Policy;
  readonly publicUrl: string;
  /** How long a refusal waits for the audit trail. */
  readonly changesWaitMs?: number;
  /** ms since 1970. */
  readonly now: () => number;
};

/** The operations on customers, each with what makes its outcome a reply. */
export function customerHandlers(parts: CustomerRoutesParts) {
  const { store, publicUrl } = parts;
  const turns = new PageTurns();
  const pages: PageStore = {
    cursorKey: store.cursorKey,
    page: (query, projection) => turns.run(query.tenant, query.limit, () => store.page(query, projection)),
  };
  const stores = { customers: store, trail: new RefusalTrail(parts.audit, parts.changesWaitMs) };
  const histories: HistoryStores = {
    customers: store,
    audit: {
      history: (query: HistoryQuery) =>
        turns.run(query.tenant, query.limit, () => parts.audit.history(query)),
    },
  };
  function handler<Outcome, Store>(
    store: Store,
    operate: (store: Store, call: Call, parameter: string) => MaybePromise<Result<Outcome>>,
    represent: (outcome: Outcome, context: RequestContext) => Reply,
  ): TenantHandler {
    return (context, caller) =>
      andThen(operate(store, new CustomerCall(context, caller, parts), context.parameter), (outcome) =>
        outcome.ok ? ok(represent(outcome.value, context)) : outcome,
      );
  }
  const nextUrl =
    (path: string, search: string) =>
    (cursor: string): string => {
      const query = new URLSearchParams(search);
      query.set("cursor", cursor);
      return `${publicUrl}${path}?${query}`;
    };
  const written = (outcome: Written): Reply => writtenReply(outcome, publicUrl);

  return {
    list: handler(pages, list, (listed, { request }) =>
      pageReply(listed, nextUrl("/customers", searchOf(request))),
    ),
    search: handler(pages, search, (listed) => pageReply(listed, null)),
    create: handler(store, create, (created) => createdReply(created, publicUrl)),
    read: handler(stores, read, readReply),
    replace: handler(stores, replace, written),
    patch: handler(stores, patch, written),
    remove: handler(stores, remove, written),
    history: handler(histories, history, (page, { request, parameter }) =>
      historyReply(page, nextUrl(`/customers/${encodeURIComponent(parameter)}/history`, searchOf(request))),
    ),
  };
}

/** A class, since its methods are seldom called and would otherwise be made for each request. */
class CustomerCall implements Call {
  readonly authority: Authority;
  readonly headers: Headers;
  readonly requestId: string;
  readonly search: string;
  readonly #request: Request;
  readonly #parts: CustomerRoutesParts;

  constructor(
    { request, headers, requestId, nowMs }: RequestContext,
    caller: TenantCaller,
    parts: CustomerRoutesParts,
  ) {
    this.authority = authorityOf(caller, parts.policy(), nowMs);
    this.headers = headers;
    this.requestId = requestId;
    this.search = searchOf(request);
    this.#request = request;
    this.#parts = parts;
  }

  readJson(mediaTypes: readonly string[]): Promise<Result<unknown>> {
    return readJsonBody(this.#request, mediaTypes);
  }

  discardBody(): MaybePromise<Result<null>> {
    return readUnusedBody(this.#request);
  }

  lookAgain(): MaybePromise<Result<Authority>> {
    const { policy, now } = this.#parts;
    const nowMs = now();
    return andThen(authenticate(this.#parts, tokenIn(this.headers.get("authorization")), nowMs), (found) =>
      flatMap(flatMap(found, requireTenant), (caller) => ok(authorityOf(caller, policy(), nowMs))),
    );
  }
}

function authorityOf(caller: TenantCaller, policy: Policy, nowMs: number): Authority {
  const { tenant, client, tokenId, tokenPrefix } = caller;
  const rights = rightsOf(policy, caller);
  const { enforcement, keepsAuditValues: keepsValues } = policy;
  return { tenant, client, tokenId, tokenPrefix, rights, enforcement, keepsValues, nowMs };
}

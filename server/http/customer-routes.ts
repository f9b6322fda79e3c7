import { type Enforcement, type Policy, type Rights, rightsOf } from "../domain/policy.ts";
import { ok, type Result, refuse } from "../domain/problem.ts";
import type { Call } from "../operations/checks.ts";
import { list, read, search } from "../operations/reads.ts";
import { create, PATCH_TYPES, patch, remove, replace, type Written } from "../operations/writes.ts";
import type { CustomerStore, MaybePromise } from "../storage/customer-store.ts";
import { authenticate, type TokenLookup } from "./authentication.ts";
import type { Handler } from "./boundary.ts";
import { type Answer, type Exchange, searchOf } from "./exchange.ts";
import { createdAnswer, pageAnswer, readAnswer, writtenAnswer } from "./representation.ts";
import { readJsonBody } from "./request-body.ts";
import type { Route } from "./routes.ts";

type CustomerRoutesParts = {
  readonly store: CustomerStore;
  readonly tokens: TokenLookup;
  readonly policy: () => Policy;
  readonly publicUrl: string;
  /** ms since 1970. */
  readonly now: () => number;
};

/** The routes of the customer: method, path, operation. */
export function customerRoutes(parts: CustomerRoutesParts): Route[] {
  const { store, publicUrl } = parts;
  /** Check 2, then the operation on what the path names, then its outcome as an answer. */
  function handler<Outcome>(
    operate: (store: CustomerStore, call: Call, parameter: string) => MaybePromise<Result<Outcome>>,
    represent: (outcome: Outcome, exchange: Exchange) => Answer,
  ): Handler {
    const answer = (outcome: Result<Outcome>, exchange: Exchange): Result<Answer> =>
      outcome.ok ? ok(represent(outcome.value, exchange)) : outcome;
    return (exchange) => {
      const call = callOf(exchange, parts);
      if (!call.ok) return call;
      const result = operate(store, call.value, exchange.parameter);
      return result instanceof Promise
        ? result.then((outcome) => answer(outcome, exchange))
        : answer(result, exchange);
    };
  }

  const nextUrl =
    (search: string) =>
    (cursor: string): string => {
      const query = new URLSearchParams(search);
      query.set("cursor", cursor);
      return `${publicUrl}/customers?${query}`;
    };
  const admit: Route["admit"] = (exchange) => {
    const call = callOf(exchange, parts);
    return call.ok ? null : call;
  };
  const written = (outcome: Written): Answer => writtenAnswer(outcome, publicUrl);

  return [
    {
      path: "/customers",
      template: "/customers",
      admit,
      handlers: {
        GET: handler(list, (listed, { request }) => pageAnswer(listed, nextUrl(searchOf(request)))),
        POST: handler(create, (created) => createdAnswer(created, publicUrl)),
      },
    },
    {
      path: "/customers/search",
      template: "/customers/search",
      admit,
      handlers: {
        POST: handler(search, (listed) => pageAnswer(listed, null)),
      },
    },
    {
      path: "/customers/:id",
      template: "/customers/{id}",
      admit,
      optionsHeaders: { "accept-patch": PATCH_TYPES.join(", ") },
      handlers: {
        GET: handler(read, readAnswer),
        PUT: handler(replace, written),
        PATCH: handler(patch, written),
        DELETE: handler(remove, written),
      },
    },
  ];
}

function callOf(exchange: Exchange, parts: CustomerRoutesParts): Result<Call> {
  const { request, nowMs } = exchange;
  const caller = authenticate(parts.tokens, request.headers.get("authorization"), nowMs);
  if (!caller.ok) return caller;
  exchange.caller = caller.value;
  const { role, tenant } = caller.value;
  if (tenant === null) {
    return refuse("forbidden-operation", "This token belongs to no tenant; it reads metrics alone.");
  }
  return ok(new RequestCall(request, parts, caller.value.client, tenant, role, nowMs));
}

/** A class, since its methods are seldom called and would otherwise be made for each request. */
class RequestCall implements Call {
  readonly tenant: string;
  readonly client: string;
  readonly rights: Rights;
  readonly enforcement: Enforcement;
  readonly nowMs: number;
  readonly headers: Headers;
  readonly search: string;
  readonly #request: Request;
  readonly #parts: CustomerRoutesParts;

  constructor(
    request: Request,
    parts: CustomerRoutesParts,
    client: string,
    tenant: string,
    role: string,
    nowMs: number,
  ) {
    const policy = parts.policy();
    this.tenant = tenant;
    this.client = client;
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

  currentRights(): Result<Rights> {
    const { tokens, policy, now } = this.#parts;
    const again = authenticate(tokens, this.headers.get("authorization"), now());
    return again.ok ? ok(rightsOf(policy(), again.value.tenant, again.value.role)) : again;
  }
}

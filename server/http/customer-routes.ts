import type { Call } from "../checks.ts";
import { type Policy, rightsOf } from "../domain/policy.ts";
import { ok, type Result, refuse } from "../domain/problem.ts";
import * as operations from "../operations.ts";
import type { CustomerStore, MaybePromise } from "../storage/customer-store.ts";
import { authenticate, type TokenLookup } from "./authentication.ts";
import { type Answer, type Exchange, searchOf } from "./exchange.ts";
import { createdAnswer, pageAnswer, readAnswer, writtenAnswer } from "./representation.ts";
import { readJsonBody } from "./request-body.ts";
import type { Route } from "./routes.ts";

export type CustomerRoutesParts = {
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
  /** Check 2, then the operation, then its outcome as an answer. */
  function answer<Outcome>(
    exchange: Exchange,
    operate: (call: Call) => MaybePromise<Result<Outcome>>,
    represent: (outcome: Outcome) => Answer,
  ): MaybePromise<Result<Answer>> {
    const call = callOf(exchange, parts);
    if (!call.ok) return call;
    const result = operate(call.value);
    const toAnswer = (outcome: Result<Outcome>): Result<Answer> =>
      outcome.ok ? ok(represent(outcome.value)) : outcome;
    return result instanceof Promise ? result.then(toAnswer) : toAnswer(result);
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
  const written = (outcome: operations.Written): Answer => writtenAnswer(outcome, publicUrl);

  return [
    {
      path: "/customers",
      template: "/customers",
      admit,
      handlers: {
        GET: (exchange) =>
          answer(
            exchange,
            (call) => operations.list(store, call),
            (listed) => pageAnswer(listed, nextUrl(searchOf(exchange.request))),
          ),
        POST: (exchange) =>
          answer(
            exchange,
            (call) => operations.create(store, call),
            (created) => createdAnswer(created, publicUrl),
          ),
      },
    },
    {
      path: "/customers/search",
      template: "/customers/search",
      admit,
      handlers: {
        POST: (exchange) =>
          answer(
            exchange,
            (call) => operations.search(store, call),
            (listed) => pageAnswer(listed, null),
          ),
      },
    },
    {
      path: "/customers/:id",
      template: "/customers/{id}",
      admit,
      optionsHeaders: { "accept-patch": operations.PATCH_TYPES.join(", ") },
      handlers: {
        GET: (exchange, id) => answer(exchange, (call) => operations.read(store, call, id), readAnswer),
        PUT: (exchange, id) => answer(exchange, (call) => operations.replace(store, call, id), written),
        PATCH: (exchange, id) => answer(exchange, (call) => operations.patch(store, call, id), written),
        DELETE: (exchange, id) => answer(exchange, (call) => operations.remove(store, call, id), written),
      },
    },
  ];
}

function callOf(exchange: Exchange, { tokens, policy, now }: CustomerRoutesParts): Result<Call> {
  const { request, nowMs } = exchange;
  const caller = authenticate(tokens, request.headers.get("authorization"), nowMs);
  if (!caller.ok) return caller;
  exchange.caller = caller.value;
  const { client, role, tenant } = caller.value;
  if (tenant === null) {
    return refuse("forbidden-operation", "This token belongs to no tenant; it reads metrics alone.");
  }
  return ok({
    tenant,
    client,
    rights: rightsOf(policy(), tenant, role),
    enforcement: policy().enforcement,
    nowMs,
    headers: request.headers,
    search: searchOf(request),
    readJson: (mediaTypes: readonly string[]) => readJsonBody(request, mediaTypes),
    currentRights: () => {
      const again = authenticate(tokens, request.headers.get("authorization"), now());
      return again.ok ? ok(rightsOf(policy(), again.value.tenant, again.value.role)) : again;
    },
  });
}

import { type Policy, rightsOf } from "../domain/policy.ts";
import { isProblemCode, ok, type Result, refuse } from "../domain/problem.ts";
import { readQuery } from "../operations/query.ts";
import type { CustomerStore, MaybePromise } from "../storage/customer-store.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { authenticate, type TokenLookup } from "./authentication.ts";
import type { Handler } from "./boundary.ts";
import { type Answer, answerHeaders, type Exchange, searchOf } from "./exchange.ts";
import { problemPage } from "./problem-pages.ts";
import type { Route } from "./routes.ts";

export type ServiceRoutesParts = {
  readonly store: CustomerStore;
  readonly tokens: TokenLookup;
  readonly policy: () => Policy;
  readonly metrics: Metrics;
  /** The text of /metrics: of this process, or of all that serve with it. */
  readonly exposition: () => Promise<string>;
  /** Whether anyone may read the metrics (then they name no caller). */
  readonly arePublic: boolean;
  readonly publicUrl: string;
};

/** Metrics, health and the pages behind problem types. */
export function serviceRoutes(parts: ServiceRoutesParts): Route[] {
  const { store, tokens, policy, metrics, exposition, arePublic, publicUrl } = parts;
  const open = (): null => null;

  const admitMetrics = (exchange: Exchange): Result<null> => {
    if (arePublic) return ok(null);
    const caller = authenticate(tokens, exchange.request.headers.get("authorization"), exchange.nowMs);
    if (!caller.ok) return caller;
    exchange.caller = caller.value;
    const { tenant, role } = caller.value;
    // A tenant's token would read every tenant's name in the labels, whatever its role says.
    if (tenant === null && rightsOf(policy(), null, role).operations.has("metrics")) return ok(null);
    return refuse("forbidden-operation", "The role of this token may not read metrics.");
  };
  return [
    {
      path: "/metrics",
      template: "/metrics",
      admit: (exchange) => refusalOf(admitMetrics(exchange)),
      handlers: {
        GET: async (exchange) => {
          const admitted = admitMetrics(exchange);
          if (!admitted.ok) return admitted;
          const query = readQuery(searchOf(exchange.request), []);
          if (!query.ok) return query;
          const headers = answerHeaders({ "content-type": metrics.contentType, "cache-control": "no-store" });
          return ok({ status: 200, headers, body: await exposition() });
        },
      },
    },
    {
      path: "/healthz",
      template: "/healthz",
      admit: open,
      handlers: { GET: withoutParameters(() => ok(health("ok"))) },
    },
    {
      path: "/readyz",
      template: "/readyz",
      admit: open,
      handlers: { GET: withoutParameters(() => readiness(store)) },
    },
    {
      path: "/problems/:code",
      template: "/problems/{code}",
      admit: open,
      handlers: {
        GET: withoutParameters(({ request, parameter: code }) =>
          isProblemCode(code)
            ? ok(problemPage(code, request.headers.get("accept"), publicUrl))
            : refuse("route-not-found", "There is no problem type of this name."),
        ),
      },
    },
  ];
}

/** These routes know no parameter: one is a mistake, and is said to be, as on every route. */
function withoutParameters(handle: Handler): Handler {
  return (exchange) => {
    const query = readQuery(searchOf(exchange.request), []);
    return query.ok ? handle(exchange) : query;
  };
}

function refusalOf(result: Result<null>): Result<never> | null {
  return result.ok ? null : result;
}

function health(status: string): Answer {
  return {
    status: 200,
    headers: answerHeaders({ "content-type": "application/json", "cache-control": "no-store" }),
    body: JSON.stringify({ status }),
  };
}

function readiness(store: CustomerStore): MaybePromise<Result<Answer>> {
  const ready = (): Result<Answer> => ok(health("ready"));
  const answer = store.ping();
  return answer instanceof Promise ? answer.then(ready) : ready();
}

import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { ok } from "../../domain/problem.ts";
import { readQuery } from "../../operations/request/query.ts";
import type { Metrics } from "../../telemetry/metrics/metrics.ts";
import type { Handler } from "../handler.ts";
import { type Reply, replyHeaders } from "../reply/reply.ts";
import { searchOf } from "../request-context.ts";

export type ServiceRoutesParts = {
  /** Fails with StoreUnavailable while the store cannot answer. */
  readonly requireReady: () => MaybePromise<void>;
  readonly isStopping: () => boolean;
  readonly metrics: Metrics;
};

/** Metrics and health. */
export function serviceHandlers({ requireReady, isStopping, metrics }: ServiceRoutesParts) {
  return {
    metrics: withoutParameters(async () => {
      const headers = replyHeaders({ "content-type": metrics.contentType, "cache-control": "no-store" });
      return ok({ status: 200, headers, body: await metrics.text() });
    }),
    // Probes may put what they like into the query, such as the time against caches.
    health: () => ok(healthReply("ok")),
    readiness: () =>
      isStopping()
        ? ok(healthReply("stopping", 503))
        : andThen(requireReady(), () => ok(healthReply("ready"))),
  } satisfies Record<string, Handler>;
}

/** These routes have no query parameters; any parameter is refused as a mistake, as on every route. */
export function withoutParameters(handle: Handler): Handler {
  return (context) => {
    const query = readQuery(searchOf(context.request), []);
    return query.ok ? handle(context) : query;
  };
}

function healthReply(status: string, code = 200): Reply {
  return {
    status: code,
    headers: replyHeaders({ "content-type": "application/json", "cache-control": "no-store" }),
    body: JSON.stringify({ status }),
  };
}

import { Elysia } from "elysia";
import type { MaybePromise } from "./domain/maybe-promise.ts";
import type { TrustedProxies } from "./domain/network/trusted-proxies.ts";
import { METHODS } from "./domain/policy/policy.ts";
import { ok, refuse } from "./domain/problem.ts";
import type { Access, Handler } from "./http/handler.ts";
import { Pipeline, type PipelineParts } from "./http/pipeline.ts";
import { replyHeaders } from "./http/reply/reply.ts";
import { type Audience, type Route, type RoutesParts, routesFor } from "./http/routes/routes.ts";
import { PATCH_TYPES } from "./operations/change-customer.ts";

type AppParts = Omit<PipelineParts, "addressOf"> &
  RoutesParts & {
    /** Null: a request comes from the connection's other end, whatever its headers say. */
    readonly trustedProxies: TrustedProxies | null;
  };

/**
 * The service, listening on nothing yet.
 *
 * @param audience whom the listener is for: with a listener
 *   for operators (ADMIN_PORT) the other serves no metrics
 *
 * Elysia routes, and nothing more. Its idiomatic form (a plugin for each concern, `derive` for the caller,
 * a macro for the checks) was built and measured: it kept the contract at 0.88 to 0.90 of the throughput,
 * saved no line, and lost types, since a macro does not see what a plugin derives. Its schemas cannot be
 * used in any form: they are checked before authentication and If-Match, against the order of checks.
 */
export function createApp(parts: AppParts, audience: Audience = "everything"): Elysia {
  const app: Elysia = new Elysia({
    strictPath: true,
    normalize: false,
    // Without it a short Host header shifts where Elysia thinks that the path begins.
    handler: { standardHostname: false },
    serve: {
      development: false,
      reusePort: false,
      // Bun would refuse by itself, before every check of ours; what is not read it throws away.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    },
  });
  const { trustedProxies } = parts;
  const addressOf = (request: Request): string | null => {
    const peer = app.server === null ? "" : (app.server.requestIP(request)?.address ?? null);
    if (peer === null || trustedProxies === null) return peer;
    const { headers } = request;
    return trustedProxies.clientOf(peer, {
      forwarded: headers.get("forwarded"),
      xForwardedFor: headers.get("x-forwarded-for"),
    });
  };
  register(app, new Pipeline({ ...parts, addressOf }), parts, routesFor(audience, parts));
  return app;
}

/**
 * Registers all methods of each path: those of the table, OPTIONS, and 405 with Allow for every other.
 *
 * The handlers are plain arrows that take their context apart: Elysia reads their source text to learn
 * what to hand them. Bodies are left unread (`parse: "none"`): operations read them when their turn comes.
 */
function register(app: Elysia, pipeline: Pipeline, { cors }: AppParts, table: readonly Route[]): void {
  for (const [path, rows] of Map.groupBy(table, (route) => route.path)) {
    const pattern = path.replace(/\{\w+\}/, ":parameter");
    const allow = allowOf(rows);
    const notAllowed = anyone(({ request: { method } }) =>
      refuse("method-not-allowed", `${method} is not for this address; it takes ${allow}.`, {
        headers: { allow },
      }),
    );
    const answer = (request: Request, access: Access, parameter?: string): MaybePromise<Response> =>
      hasThePathItSays(request)
        ? pipeline.answer(request, path, access, parameter)
        : pipeline.answer(request, "(none)", NOT_FOUND);
    // Each method by name, also those that are refused: the router looks through the paths of
    // one method before those of any, and would take /customers/search for a customer's id.
    for (const method of METHODS) {
      const access = rows.find((route) => route.method === method) ?? notAllowed;
      app.route(
        method,
        pattern,
        ({ request, params }: Routed) => answer(request, access, params?.parameter),
        { parse: "none" },
      );
    }
    const preflight = anyone(() => ok({ status: 204, headers: cors.preflightHeaders(allow), body: null }));
    const options = optionsOf(rows, allow);
    app.route(
      "OPTIONS",
      pattern,
      ({ request }) => answer(request, cors.isPreflight(request) ? preflight : options),
      { parse: "none" },
    );
    // Methods that Elysia does not register with Bun: PROPFIND, TRACE and the like.
    app.all(pattern, ({ request }) => pipeline.answer(request, path, notAllowed), { parse: "none" });
  }
  // HAProxy's plain `option httpchk` asks `OPTIONS / HTTP/1.0`, without Host.
  const readiness = table.find(({ path }) => path === "/readyz") ?? NOT_FOUND;
  app.route("OPTIONS", "/", ({ request }) => pipeline.answer(request, "/readyz", readiness), {
    parse: "none",
  });
  app.onError(({ request, code, error }) =>
    pipeline.answer(request, "(none)", code === "NOT_FOUND" ? NOT_FOUND : failing(error)),
  );
}

/**
 * Bun routes by the path as it was sent, and gives `params` to the requests that it routed. Elysia tries
 * the others once more, by the path of `request.url`, from which dot segments are resolved and in which
 * a backslash is a slash: `/x\..\metrics` reached /metrics past a proxy that hides it by its path.
 */
function hasThePathItSays(request: Request): boolean {
  return "params" in request;
}

/**
 * What Elysia hands to a handler; the path's one parameter
 * is called `parameter`, whatever the table calls it.
 */
type Routed = { readonly request: Request; readonly params?: { readonly parameter?: string } };

/**
 * Anyone who may use the path may ask which methods it has;
 * PATCH names its media types (RFC 5789, section 3.1).
 */
function optionsOf(rows: readonly Route[], allow: string): Access {
  const patchTypes = rows.some(({ method }) => method === "PATCH")
    ? { "accept-patch": PATCH_TYPES.join(", ") }
    : {};
  const headers = replyHeaders({ allow, ...patchTypes });
  return { callers: rows[0]?.callers ?? "anyone", handle: () => ok({ status: 204, headers, body: null }) };
}

function allowOf(rows: readonly Route[]): string {
  return [...rows.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])), "OPTIONS"].join(
    ", ",
  );
}

const NOT_FOUND = anyone(() =>
  refuse("route-not-found", "Nothing is served at this address. Customers are at /customers/{id}."),
);

function anyone(handle: Handler): Access {
  return { callers: "anyone", handle };
}

function failing(error: unknown): Access {
  return anyone(() => {
    throw error;
  });
}

import type { Elysia } from "elysia";
import { ok, refuse } from "../domain/problem.ts";
import type { Boundary, Handler } from "./boundary.ts";
import type { Cors } from "./cors.ts";
import { answerHeaders, type Exchange, type RouteTemplate } from "./exchange.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
export type Method = (typeof METHODS)[number];

type RouteHandlers = Partial<Record<Method, Handler>>;

export type Route = {
  /** As Elysia writes it: `/customers/:id`. */
  readonly path: string;
  readonly template: RouteTemplate;
  readonly handlers: RouteHandlers;
  /** Further headers of the answer to OPTIONS. */
  readonly optionsHeaders?: Readonly<Record<string, string>>;
  /** Decides whether a plain OPTIONS is answered; every method but a preflight is authenticated first. */
  readonly admit: (exchange: Exchange) => ReturnType<Handler> | null;
};

/**
 * Registers a route whole: its methods, HEAD beside GET, OPTIONS, and 405 with Allow for every other method.
 *
 * The handlers are plain arrows that take their context apart: Elysia reads their source text to learn what
 * to hand them. Bodies are left unread (`parse: "none"`): operations read them when their turn comes.
 */
export function mount(app: Elysia, boundary: Boundary, cors: Cors, route: Route): void {
  const { path, template, handlers, optionsHeaders, admit } = route;
  const allow = allowOf(handlers);
  const notAllowed: Handler = ({ request: { method } }) =>
    refuse("method-not-allowed", `${method} is not for this address; it takes ${allow}.`, {
      headers: { allow },
    });
  // Each method by name, also those that are refused: the router looks through the paths of one method before
  // those of any, and would take /customers/search for a customer's id.
  for (const method of METHODS) {
    const handle = handlers[method] ?? notAllowed;
    app.route(
      method,
      path,
      ({ request, params }) => boundary.answer(request, template, handle, parameterOf(params)),
      { parse: "none" },
    );
  }
  const options: Handler = (exchange) => {
    if (cors.isPreflight(exchange.request)) {
      return ok({ status: 204, headers: cors.preflightHeaders(allow), body: null });
    }
    const headers = answerHeaders({ allow, ...optionsHeaders });
    return admit(exchange) ?? ok({ status: 204, headers, body: null });
  };
  app.route("OPTIONS", path, ({ request }) => boundary.answer(request, template, options), { parse: "none" });
  app.all(path, ({ request }) => boundary.answer(request, template, notAllowed), { parse: "none" });
}

function allowOf(handlers: RouteHandlers): string {
  const methods = Object.keys(handlers).flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  return [...methods, "OPTIONS"].join(", ");
}

function parameterOf(params: unknown): string {
  const byName = (params ?? {}) as Record<string, unknown>;
  // There is one or none; a list of them would be made for every request.
  for (const name in byName) {
    const value = byName[name];
    return typeof value === "string" ? value : "";
  }
  return "";
}

import { Elysia } from "elysia";
import { refuse } from "./domain/problem.ts";
import { Boundary, type BoundaryParts } from "./http/boundary.ts";
import { customerRoutes } from "./http/customer-routes.ts";
import { mount } from "./http/routes.ts";
import { type ServiceRoutesParts, serviceRoutes } from "./http/service-routes.ts";

type AppParts = BoundaryParts & ServiceRoutesParts;

/** The service, listening on nothing yet. */
export function createApp(parts: AppParts): Elysia {
  const boundary = new Boundary(parts);
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
  for (const route of [...customerRoutes(parts), ...serviceRoutes(parts)]) {
    mount(app, boundary, parts.cors, route);
  }
  app.onError(({ request, code, error }) =>
    boundary.answer(request, "(none)", () => {
      if (code !== "NOT_FOUND") throw error;
      return refuse(
        "route-not-found",
        "Nothing is served at this address. Customers are at /customers/{id}.",
      );
    }),
  );
  return app;
}

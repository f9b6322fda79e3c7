import type { METHODS } from "../../domain/policy.ts";
import type { Access } from "../handler.ts";
import type { RoutePath } from "../request-context.ts";
import { type CustomerRoutesParts, customerHandlers } from "./customer-routes.ts";
import { type ServiceRoutesParts, serviceHandlers } from "./service-routes.ts";

/** One row of the table: who may call what with which method, and what answers. HEAD comes with GET. */
export type Route = { readonly method: (typeof METHODS)[number]; readonly path: RoutePath } & Access;

export type RoutesParts = CustomerRoutesParts &
  ServiceRoutesParts & {
    /** Then they name no caller. */
    readonly metricsArePublic: boolean;
  };

export type Audience = "everything" | "customers" | "admin";

const ADMIN_PATHS: readonly RoutePath[] = ["/metrics", "/healthz", "/readyz"];

/** The routes of one listener. OPTIONS and 405 follow from them: app.ts. */
export function routesFor(audience: Audience, parts: RoutesParts): Route[] {
  const all = routes(parts);
  if (audience === "admin") return all.filter(({ path }) => ADMIN_PATHS.includes(path));
  return audience === "customers" ? all.filter(({ path }) => path !== "/metrics") : all;
}

/** Everything that is served. */
function routes(parts: RoutesParts): Route[] {
  const customers = customerHandlers(parts);
  const service = serviceHandlers(parts);
  const monitors = parts.metricsArePublic ? "anyone" : "monitors";
  return [
    { method: "GET", path: "/customers", callers: "tenants", handle: customers.list },
    { method: "POST", path: "/customers", callers: "tenants", handle: customers.create },
    { method: "POST", path: "/customers/search", callers: "tenants", handle: customers.search },
    { method: "GET", path: "/customers/{id}", callers: "tenants", handle: customers.read },
    { method: "PUT", path: "/customers/{id}", callers: "tenants", handle: customers.replace },
    { method: "PATCH", path: "/customers/{id}", callers: "tenants", handle: customers.patch },
    { method: "DELETE", path: "/customers/{id}", callers: "tenants", handle: customers.remove },
    { method: "GET", path: "/metrics", callers: monitors, handle: service.metrics },
    { method: "GET", path: "/healthz", callers: "anyone", handle: service.health },
    { method: "GET", path: "/readyz", callers: "anyone", handle: service.readiness },
    { method: "GET", path: "/problems/{code}", callers: "anyone", handle: service.problemPage },
  ];
}

import { VERSION } from "../../version.ts";
import type { Access } from "../handler.ts";
import { type DescribedRoute, openApiDocument } from "../openapi/document.ts";
import type { RoutePath } from "../request-context.ts";
import { type CustomerRoutesParts, customerHandlers } from "./customer-routes.ts";
import { documentHandlers } from "./document-routes.ts";
import { type ServiceRoutesParts, serviceHandlers } from "./service-routes.ts";

/**
 * The table of routes: method, path, and the name of the operation, under which its handler
 * and its documentation are found. HEAD comes with GET, OPTIONS and 405 with every path: app.ts.
 */
const CUSTOMER_ROUTES = [
  { method: "GET", path: "/customers", operation: "list" },
  { method: "POST", path: "/customers", operation: "create" },
  { method: "POST", path: "/customers/search", operation: "search" },
  { method: "GET", path: "/customers/{id}", operation: "read" },
  { method: "PUT", path: "/customers/{id}", operation: "replace" },
  { method: "PATCH", path: "/customers/{id}", operation: "patch" },
  { method: "DELETE", path: "/customers/{id}", operation: "remove" },
] as const;

const METRICS_ROUTE = { method: "GET", path: "/metrics", operation: "metrics" } as const;

const PUBLIC_ROUTES = [
  { method: "GET", path: "/healthz", operation: "health" },
  { method: "GET", path: "/readyz", operation: "readiness" },
  { method: "GET", path: "/", operation: "index" },
  { method: "GET", path: "/docs", operation: "reference" },
  { method: "GET", path: "/docs/{file}", operation: "referenceFile" },
  { method: "GET", path: "/openapi.json", operation: "openapiJson" },
  { method: "GET", path: "/openapi.yaml", operation: "openapiYaml" },
  { method: "GET", path: "/problems", operation: "problemTypes" },
  { method: "GET", path: "/problems/{code}", operation: "problemType" },
] as const;

/** A row of the table with who may call it and what answers. */
export type Route = DescribedRoute & Access;

export type RoutesParts = CustomerRoutesParts &
  ServiceRoutesParts & {
    /** Then they name no caller. */
    readonly metricsArePublic: boolean;
  };

/** Whom a listener is for. */
export type Audience = "everything" | "customers" | "admin";

const ADMIN_PATHS: readonly RoutePath[] = ["/metrics", "/healthz", "/readyz"];

/** The rows that a listener serves, as its OpenAPI document describes them. */
export function describedRoutes(audience: Audience, metricsArePublic: boolean): DescribedRoute[] {
  const rows: DescribedRoute[] = [
    ...CUSTOMER_ROUTES.map((row) => ({ ...row, callers: "tenants" as const })),
    { ...METRICS_ROUTE, callers: metricsArePublic ? "anyone" : "monitors" },
    ...PUBLIC_ROUTES.map((row) => ({ ...row, callers: "anyone" as const })),
  ];
  return rows.filter(({ path }) => isFor(audience, path));
}

/** The routes of one listener. */
export function routesFor(audience: Audience, parts: RoutesParts): Route[] {
  const { publicUrl, metricsArePublic } = parts;
  const customers = customerHandlers(parts);
  const service = serviceHandlers(parts);
  const describe = () =>
    openApiDocument(describedRoutes(audience, metricsArePublic), { publicUrl, version: VERSION });
  const open = { ...service, ...documentHandlers(publicUrl, describe) };
  const all: Route[] = [
    ...CUSTOMER_ROUTES.map((row) => ({
      ...row,
      callers: "tenants" as const,
      handle: customers[row.operation],
    })),
    { ...METRICS_ROUTE, callers: metricsArePublic ? "anyone" : "monitors", handle: service.metrics },
    ...PUBLIC_ROUTES.map((row) => ({ ...row, callers: "anyone" as const, handle: open[row.operation] })),
  ];
  return all.filter(({ path }) => isFor(audience, path));
}

function isFor(audience: Audience, path: RoutePath): boolean {
  if (audience === "admin") return ADMIN_PATHS.includes(path);
  return audience === "everything" || path !== "/metrics";
}

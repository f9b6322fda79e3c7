import { VERSION } from "../../version.ts";
import type { Access } from "../handler.ts";
import { type DescribedRoute, openApiDocument } from "../openapi/document.ts";
import type { RoutePath } from "../request-context.ts";
import { type CustomerRoutesParts, customerHandlers } from "./customer-routes.ts";
import { documentHandlers } from "./document-routes.ts";
import { type ServiceRoutesParts, serviceHandlers } from "./service-routes.ts";

/**
 * The table of routes: method, path, who may call, and the name of the operation, under which its handler
 * and its documentation are found. HEAD comes with GET, OPTIONS and 405 with every path: app.ts.
 */
const ROUTES = [
  { method: "GET", path: "/customers", operation: "list", callers: "tenants" },
  { method: "POST", path: "/customers", operation: "create", callers: "tenants" },
  { method: "POST", path: "/customers/search", operation: "search", callers: "tenants" },
  { method: "GET", path: "/customers/{id}", operation: "read", callers: "tenants" },
  { method: "PUT", path: "/customers/{id}", operation: "replace", callers: "tenants" },
  { method: "PATCH", path: "/customers/{id}", operation: "patch", callers: "tenants" },
  { method: "DELETE", path: "/customers/{id}", operation: "remove", callers: "tenants" },
  { method: "GET", path: "/customers/{id}/history", operation: "history", callers: "tenants" },
  { method: "GET", path: "/metrics", operation: "metrics", callers: "monitors" },
  { method: "GET", path: "/healthz", operation: "health", callers: "anyone" },
  { method: "GET", path: "/readyz", operation: "readiness", callers: "anyone" },
  { method: "GET", path: "/", operation: "index", callers: "anyone" },
  { method: "GET", path: "/docs", operation: "reference", callers: "anyone" },
  { method: "GET", path: "/docs/{file}", operation: "referenceFile", callers: "anyone" },
  { method: "GET", path: "/openapi.json", operation: "openapiJson", callers: "anyone" },
  { method: "GET", path: "/openapi.yaml", operation: "openapiYaml", callers: "anyone" },
  { method: "GET", path: "/problems", operation: "problemTypes", callers: "anyone" },
  { method: "GET", path: "/problems/{code}", operation: "problemType", callers: "anyone" },
] as const satisfies readonly DescribedRoute[];

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
export function describedRoutes(audience: Audience, metricsArePublic: boolean) {
  return ROUTES.filter(({ path }) => isFor(audience, path)).map((row) =>
    row.callers === "monitors" && metricsArePublic ? { ...row, callers: "anyone" as const } : row,
  );
}

/** The routes of one listener. */
export function routesFor(audience: Audience, parts: RoutesParts): Route[] {
  const { publicUrl } = parts;
  const rows = describedRoutes(audience, parts.metricsArePublic);
  const customers = customerHandlers(parts);
  const describe = () => openApiDocument(rows, { publicUrl, version: VERSION });
  const others = { ...serviceHandlers(parts), ...documentHandlers(publicUrl, describe) };
  return rows.map((row) =>
    row.callers === "tenants"
      ? { ...row, handle: customers[row.operation] }
      : { ...row, handle: others[row.operation] },
  );
}

function isFor(audience: Audience, path: RoutePath): boolean {
  if (audience === "admin") return ADMIN_PATHS.includes(path);
  return audience === "everything" || path !== "/metrics";
}

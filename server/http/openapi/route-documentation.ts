import { AUDITED_FIELDS } from "../../domain/audit/audit-entry.ts";
import {
  CREATION_BODY,
  PAGE_LIMIT_MAX,
  PATCH_BODY,
  REPLACEMENT_BODY,
  SEARCH_BODY,
} from "../../domain/customer/customer.ts";
import { FIELD_REGISTRY } from "../../domain/customer/field-registry.ts";
import type { ProblemCode } from "../../domain/problem.ts";
import { PATCH_TYPES } from "../../operations/change-customer.ts";
import { JSON_TYPES } from "../../operations/checks.ts";
import { type JsonSchema, jsonSchema, mapValues } from "./json-schema.ts";
import {
  type QueryParameter,
  RESPONSE_HEADERS,
  type RequestHeader,
  type ResponseHeader,
} from "./parameters.ts";

/** What a client developer has to know of one route. Its path, method and callers stand in the table of routes. */
export type RouteDocumentation = {
  readonly operationId: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  readonly description?: string;
  readonly query?: readonly QueryParameter[];
  readonly headers?: readonly RequestHeader[];
  readonly body?: { readonly types: readonly string[]; readonly schema: SchemaName };
  /** The answers that are no problems, by status. */
  readonly replies: Readonly<Record<number, DocumentedReply>>;
  /** The refusals, besides those of check 2 and of failures, which follow from the callers of the route. */
  readonly problems: readonly ProblemCode[];
};

export type DocumentedReply = {
  readonly description: string;
  /** Media types, each with the schema of its body; none where there is no body. */
  readonly content?: Readonly<Record<string, SchemaName | "text">>;
  readonly headers: readonly ResponseHeader[];
};

export const TAGS = {
  Customers: "Read and write customers.",
  Operations: "Health and metrics.",
  Documents: "This description, and what problems mean.",
} as const;

const customer = mapValues(FIELD_REGISTRY, ({ schema }) => jsonSchema(schema));
const { id: _, ...changedFields } = customer;
const etag = RESPONSE_HEADERS.ETag.schema;

const NAMED_CHANGE = {
  type: "object",
  description: "An accepted write.",
  required: [
    ...["time", "client", "operation", "changed", "requestId", "etag", "previousEtag"],
    "withoutIfMatch",
  ],
  properties: {
    time: { type: "string", format: "date-time", maxLength: 24 },
    client: { type: "string", maxLength: 256 },
    operation: { type: "string", enum: ["create", "replace", "patch", "delete", "erase"] },
    changed: {
      type: "array",
      maxItems: AUDITED_FIELDS.length,
      items: { type: "string", enum: AUDITED_FIELDS },
      description: "The fields whose values changed, of those that the caller may read.",
    },
    requestId: { type: "string", maxLength: 64 },
    etag: { ...etag, type: ["string", "null"], description: "Null after a removal." },
    previousEtag: { ...etag, type: ["string", "null"], description: "Null of a creation." },
    withoutIfMatch: { type: "boolean" },
  },
};

/**
 * The schemas of bodies, besides those of problems. Those of answers are open, since a
 * minor version may add members; what a request must not have is refused.
 */
export const SCHEMAS = {
  Customer: {
    type: "object",
    description: "The fields that the request selects and the caller may read.",
    properties: { ...customer, id: { type: "string", format: "uuid", maxLength: 36 } },
    example: { id: "01935b6e-7c00-7a3e-8f00-3b1f5d2c9e41", name: "Ada King", email: "ada@example.com" },
  },
  CustomerPage: page({
    type: "object",
    required: ["etag", "customer"],
    properties: { etag, customer: { $ref: "#/components/schemas/Customer" } },
  }),
  NamedChange: NAMED_CHANGE,
  Change: {
    ...NAMED_CHANGE,
    required: [...NAMED_CHANGE.required, "values"],
    properties: {
      ...NAMED_CHANGE.properties,
      values: {
        type: ["object", "null"],
        properties: mapValues(changedFields, (schema) => ({
          type: "object",
          required: ["before", "after"],
          properties: { before: { anyOf: [schema, { type: "null" }] }, after: schema },
        })),
        description:
          "What they held before and after; null where the policy keeps no values, and where they were erased.",
      },
    },
  },
  History: page({ $ref: "#/components/schemas/Change" }),
  Creation: { ...jsonSchema(CREATION_BODY), example: { name: "Ada King", email: "ada@example.com" } },
  Replacement: { ...jsonSchema(REPLACEMENT_BODY), example: { name: "Ada King", email: "ada@new.example" } },
  MergePatch: { ...jsonSchema(PATCH_BODY), example: { email: "ada@new.example" } },
  Search: { ...jsonSchema(SEARCH_BODY), example: { email: "ada@example.com", limit: 10 } },
  Health: {
    type: "object",
    required: ["status"],
    properties: { status: { type: "string", enum: ["ok", "ready", "stopping"] } },
  },
  ProblemType: problemType(),
  ProblemTypes: {
    type: "object",
    required: ["problems"],
    properties: {
      problems: { type: "array", maxItems: 100, items: { $ref: "#/components/schemas/ProblemType" } },
    },
  },
  Index: {
    type: "object",
    required: ["name", "version", "links"],
    properties: {
      name: { type: "string", maxLength: 64 },
      version: { type: "string", maxLength: 64 },
      links: {
        type: "object",
        additionalProperties: { type: "string", format: "uri-reference", maxLength: 2048 },
      },
    },
  },
  OpenApi: { type: "object", description: "An OpenAPI 3.1 document." },
} as const satisfies Record<string, JsonSchema>;

type SchemaName = keyof typeof SCHEMAS;

function page(items: JsonSchema): JsonSchema {
  return {
    type: "object",
    required: ["items", "next"],
    properties: {
      items: { type: "array", maxItems: PAGE_LIMIT_MAX, items },
      next: {
        type: ["string", "null"],
        maxLength: 1024,
        description: "The cursor of the next page, or null after the last.",
      },
    },
  };
}

function problemType(): JsonSchema {
  const text = { type: "string", maxLength: 2048 };
  const properties = {
    type: { type: "string", format: "uri-reference", maxLength: 2048 },
    code: { type: "string", maxLength: 64 },
    title: text,
    status: { type: "integer", format: "int32", minimum: 400, maximum: 599 },
    meaning: text,
    action: text,
    example: { type: "object", description: "A whole problem document." },
  };
  return { type: "object", required: Object.keys(properties), properties };
}

const FIELD_PROBLEMS = [
  "unknown-parameter",
  "unknown-field",
  "too-many-fields",
  "empty-fields",
  "forbidden-field",
] as const;
const BODY_PROBLEMS = [
  "incomplete-body",
  "malformed-json",
  "payload-too-large",
  "unsupported-media-type",
  "invalid-body",
] as const;
const KEY_PROBLEMS = ["invalid-idempotency-key", "idempotency-key-reused"] as const;
const WRITE_PROBLEMS = [
  "precondition-required",
  ...FIELD_PROBLEMS,
  ...KEY_PROBLEMS,
  "customer-not-found",
  "precondition-failed",
] as const;
const WRITE_HEADERS = ["If-Match", "If-None-Match", "Prefer", "Idempotency-Key", "X-Request-Id"] as const;
const WRITTEN_HEADERS = ["ETag", "Idempotency-Replayed", "Precondition-Enforced-From", "Link"] as const;
const ONE_CUSTOMER = { "application/json": "Customer" } as const;
const ONE_PAGE = { "application/json": "CustomerPage" } as const;
const HEALTH = { "application/json": "Health" } as const;
const OF_PAGES = "Cross-Origin-Opener-Policy";

function reply(
  description: string,
  content: NonNullable<DocumentedReply["content"]>,
  headers: readonly ResponseHeader[] = [],
): DocumentedReply {
  return { description, content, headers };
}

const WRITTEN = {
  200: reply("Applied; the customer as it is now, since `Prefer` asked for it.", ONE_CUSTOMER, [
    ...WRITTEN_HEADERS,
    "Preference-Applied",
  ]),
  204: { description: "Applied. `ETag` is the new entity-tag.", headers: WRITTEN_HEADERS },
};

/** A document about the service itself. */
function document(
  operationId: string,
  summary: string,
  documented: DocumentedReply,
  ...problems: readonly ProblemCode[]
): RouteDocumentation {
  return {
    operationId,
    tag: "Documents",
    summary,
    replies: { 200: documented },
    problems: ["unknown-parameter", ...problems],
  };
}

export const ROUTE_DOCUMENTATION = {
  list: {
    operationId: "listCustomers",
    tag: "Customers",
    summary: "A page of customers",
    description: "In the order of creation, each customer once. Follow `next` until it is null.",
    query: ["fields", "limit", "cursor", "status"],
    headers: ["X-Request-Id"],
    replies: { 200: reply("A page.", ONE_PAGE, ["Link"]) },
    problems: [...FIELD_PROBLEMS, "invalid-parameter"],
  },
  create: {
    operationId: "createCustomer",
    tag: "Customers",
    summary: "Create a customer",
    query: ["fields"],
    headers: ["Idempotency-Key", "X-Request-Id"],
    body: { types: JSON_TYPES, schema: "Creation" },
    replies: { 201: reply("Created.", ONE_CUSTOMER, ["ETag", "Location", "Idempotency-Replayed"]) },
    problems: [...FIELD_PROBLEMS, ...KEY_PROBLEMS, ...BODY_PROBLEMS],
  },
  search: {
    operationId: "searchCustomers",
    tag: "Customers",
    summary: "A page of customers, with the filter in the body",
    description: "Keeps personal data out of addresses and their logs.",
    query: ["fields"],
    headers: ["X-Request-Id"],
    body: { types: JSON_TYPES, schema: "Search" },
    replies: { 200: reply("A page.", ONE_PAGE) },
    problems: [...FIELD_PROBLEMS, "invalid-parameter", ...BODY_PROBLEMS],
  },
  read: {
    operationId: "getCustomer",
    tag: "Customers",
    summary: "Read a customer",
    description: "Keep the `ETag`: a write must send it back in `If-Match`.",
    query: ["fields"],
    headers: ["If-Match", "If-None-Match", "Prefer", "X-Request-Id"],
    replies: {
      200: reply("The customer.", ONE_CUSTOMER, ["ETag"]),
      304: { description: "The copy is current.", headers: ["ETag"] },
    },
    problems: [...FIELD_PROBLEMS, "customer-not-found", "precondition-failed"],
  },
  replace: {
    operationId: "replaceCustomer",
    tag: "Customers",
    summary: "Replace name and email",
    description: "On 412 read again, decide whether the change is still right, and send it with the new tag.",
    query: ["fields"],
    headers: WRITE_HEADERS,
    body: { types: JSON_TYPES, schema: "Replacement" },
    replies: WRITTEN,
    problems: [...WRITE_PROBLEMS, ...BODY_PROBLEMS],
  },
  patch: {
    operationId: "patchCustomer",
    tag: "Customers",
    summary: "Change some fields",
    description: "A JSON Merge Patch (RFC 7396).",
    query: ["fields"],
    headers: WRITE_HEADERS,
    body: { types: PATCH_TYPES, schema: "MergePatch" },
    replies: WRITTEN,
    problems: [...WRITE_PROBLEMS, ...BODY_PROBLEMS],
  },
  remove: {
    operationId: "deleteCustomer",
    tag: "Customers",
    summary: "Delete a customer",
    query: ["fields"],
    headers: WRITE_HEADERS,
    replies: { 204: { description: "Deleted.", headers: WRITTEN_HEADERS.filter((name) => name !== "ETag") } },
    problems: [...WRITE_PROBLEMS, "incomplete-body", "payload-too-large"],
  },
  history: {
    operationId: "getCustomerHistory",
    tag: "Customers",
    summary: "Who changed a customer",
    description:
      "An entry for each accepted write, the newest first; also after the customer was deleted or erased.",
    query: ["limit", "cursor"],
    headers: ["X-Request-Id"],
    replies: { 200: reply("A page.", { "application/json": "History" }, ["Link"]) },
    problems: ["unknown-parameter", "invalid-parameter", "customer-not-found"],
  },
  metrics: {
    operationId: "getMetrics",
    tag: "Operations",
    summary: "Metrics in Prometheus' text format",
    replies: { 200: reply("The metrics.", { "text/plain": "text" }) },
    problems: ["unknown-parameter"],
  },
  health: {
    operationId: "getHealth",
    tag: "Operations",
    summary: "Whether the process answers",
    replies: { 200: reply("It does.", HEALTH) },
    problems: [],
  },
  readiness: {
    operationId: "getReadiness",
    tag: "Operations",
    summary: "Whether the service takes requests",
    description: "The store answers reads and takes writes, as of the last second.",
    replies: { 200: reply("It does.", HEALTH), 503: reply("It is about to stop.", HEALTH) },
    problems: ["store-unavailable"],
  },
  index: document(
    "getIndex",
    "What this is, with links",
    reply("The index.", { "application/json": "Index", "text/html": "text" }, [OF_PAGES]),
  ),
  openapiJson: document(
    "getOpenApiJson",
    "This description as JSON",
    reply("The description.", { "application/json": "OpenApi" }),
  ),
  openapiYaml: document(
    "getOpenApiYaml",
    "This description as YAML",
    reply("The description.", { "application/yaml": "text" }),
  ),
  reference: document(
    "getReference",
    "This description as a page to try it out",
    reply("The page.", { "text/html": "text" }, [OF_PAGES]),
  ),
  referenceFile: document(
    "getReferenceFile",
    "A script or style sheet of that page",
    reply("The file.", { "text/javascript": "text", "text/css": "text" }),
    "route-not-found",
  ),
  problemTypes: document(
    "listProblemTypes",
    "All problem types",
    reply("The problem types.", { "application/json": "ProblemTypes", "text/html": "text" }, [OF_PAGES]),
  ),
  problemType: document(
    "getProblemType",
    "What a problem type means and what to do",
    reply("The problem type.", { "application/json": "ProblemType", "text/html": "text" }, [OF_PAGES]),
    "route-not-found",
  ),
} satisfies Record<string, RouteDocumentation>;

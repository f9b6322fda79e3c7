import type { METHODS } from "../../domain/policy/policy.ts";
import { PROBLEMS, type ProblemCode } from "../../domain/problem.ts";
import type { Access } from "../handler.ts";
import { problemExample } from "../reply/problem-pages.ts";
import type { RoutePath } from "../request-context.ts";
import { mapValues } from "./json-schema.ts";
import {
  EVERY_RESPONSE,
  PATH_PARAMETERS,
  QUERY_PARAMETERS,
  REQUEST_HEADERS,
  RESPONSE_HEADERS,
  RESPONSE_TO_CALLER,
  RESPONSE_TO_TENANT,
  type ResponseHeader,
  SHOWN_RESPONSE,
} from "./parameters.ts";
import { problemHeaders, problemSchema, problemSchemaName } from "./problem-schemas.ts";
import {
  type DocumentedReply,
  ROUTE_DOCUMENTATION,
  type RouteDocumentation,
  SCHEMAS,
  TAGS,
} from "./route-documentation.ts";

const DESCRIPTION = `One resource, the customer. Every read carries a strong \`ETag\`. Every PUT, PATCH and DELETE must send it back in
\`If-Match\`: without it the answer is 428, with a stale one 412 with the current tag, and nothing is changed.

HEAD answers as GET, without a body. OPTIONS answers 204 with \`Allow\` (at \`/\` as \`/readyz\` does); other methods are 405. A minor version may add members to
bodies: ignore those that you do not know.`;

/** What the description needs of one row of the table of routes. */
export type DescribedRoute = {
  readonly method: (typeof METHODS)[number];
  readonly path: RoutePath;
  readonly callers: Access["callers"];
  /** The key of its documentation. */
  readonly operation: keyof typeof ROUTE_DOCUMENTATION;
};

/** The parts that differ between deployments. */
type DocumentParts = {
  /** The base of absolute addresses, without a slash at its end; "" for paths. */
  readonly publicUrl: string;
  readonly version: string;
};

/** The OpenAPI 3.1 description of these routes, assembled from the tables that the service itself works by. */
export function openApiDocument(
  routes: readonly DescribedRoute[],
  { publicUrl, version }: DocumentParts,
): object {
  const paths = Map.groupBy(routes, ({ path }) => path);
  return {
    openapi: "3.1.0",
    info: {
      title: "Customer resource API",
      summary: "Customers, safe under concurrent writers.",
      description: DESCRIPTION,
      version,
      license: { name: "MIT", identifier: "MIT" },
      // A contact's address must be absolute.
      contact: { name: "The operator of this service", ...(publicUrl === "" ? {} : { url: publicUrl }) },
    },
    servers: [{ url: publicUrl === "" ? "/" : publicUrl, description: "This service" }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ bearer: [] }],
    paths: Object.fromEntries(
      [...paths].map(([path, rows]) => [
        path,
        {
          ...pathParameters(path),
          ...Object.fromEntries(
            rows.map((route) => [route.method.toLowerCase(), describedOperation(route, publicUrl)]),
          ),
        },
      ]),
    ),
    components: {
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          description:
            "A token of `customers-server token create`, or a JWT of an issuer that the operator accepts, as RFC 6750 says.",
        },
      },
      headers: mapValues(RESPONSE_HEADERS, (header) => header),
      schemas: {
        ...SCHEMAS,
        ...Object.fromEntries(codes(routes).map((code) => [problemSchemaName(code), problemSchema(code)])),
      },
    },
  };
}

function pathParameters(path: string): object {
  const parameters = Object.entries(PATH_PARAMETERS)
    .filter(([name]) => path.includes(`{${name}}`))
    .map(([name, described]) => ({ name, in: "path", required: true, ...described }));
  return parameters.length === 0 ? {} : { parameters };
}

function codes(routes: readonly DescribedRoute[]): ProblemCode[] {
  return [...new Set(routes.flatMap(problemsOf))];
}

/** All refusals of a route: those of every request, those of check 2, and its own. */
export function problemsOf({
  callers,
  operation,
}: Pick<DescribedRoute, "callers" | "operation">): ProblemCode[] {
  const authenticated: readonly ProblemCode[] =
    callers === "anyone"
      ? []
      : [
          "unauthenticated",
          "forbidden-operation",
          "issuer-unavailable",
          "store-unavailable",
          "too-many-requests",
        ];
  const { problems }: RouteDocumentation = ROUTE_DOCUMENTATION[operation];
  return [...new Set<ProblemCode>(["malformed-request", ...authenticated, ...problems, "internal-error"])];
}

function describedOperation(route: DescribedRoute, publicUrl: string): object {
  const documentation: RouteDocumentation = ROUTE_DOCUMENTATION[route.operation];
  const { operationId, tag, summary, description, query = [], headers = [], body, replies } = documentation;
  const needsIfMatch = documentation.problems.includes("precondition-required");
  const problems = Map.groupBy(problemsOf(route), (code): number => PROBLEMS[code].status);
  const statuses = new Set([...Object.keys(replies).map(Number), ...problems.keys()].sort());
  return {
    operationId,
    tags: [tag],
    summary,
    description: description ?? `${summary}.`,
    ...(route.callers === "anyone" ? { security: [] } : {}),
    parameters: [
      ...query.map((name) => ({
        name,
        in: "query",
        ...(name === "fields" ? { style: "form", explode: false } : {}),
        ...QUERY_PARAMETERS[name],
      })),
      ...headers.map((name) => ({
        name,
        in: "header",
        required: name === "If-Match" && needsIfMatch,
        ...REQUEST_HEADERS[name],
      })),
    ],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: Object.fromEntries(body.types.map((type) => [type, { schema: reference(body.schema) }])),
          },
        }),
    responses: Object.fromEntries(
      [...statuses].map((status) => [
        status,
        response(route, replies[status], problems.get(status) ?? [], publicUrl),
      ]),
    ),
  };
}

function response(
  { callers }: DescribedRoute,
  reply: DocumentedReply | undefined,
  problems: readonly ProblemCode[],
  publicUrl: string,
): object {
  const names = new Set<ResponseHeader>([
    ...(reply?.headers ?? []),
    ...problems.flatMap(problemHeaders),
    ...EVERY_RESPONSE,
    ...(callers === "tenants" && reply !== undefined ? [] : SHOWN_RESPONSE),
    ...(callers === "anyone" ? [] : RESPONSE_TO_CALLER),
    ...(callers === "tenants" ? RESPONSE_TO_TENANT : []),
  ]);
  const content = {
    ...mapValues(reply?.content ?? {}, (schema) => ({
      schema: schema === "text" ? { type: "string", maxLength: 16_777_216 } : reference(schema),
    })),
    ...(problems.length === 0 ? {} : { "application/problem+json": problemContent(problems, publicUrl) }),
  };
  return {
    description: [
      ...(reply === undefined ? [] : [reply.description]),
      ...problems.map((code) => `\`${code}\`: ${PROBLEMS[code].meaning}`),
    ].join("\n\n"),
    headers: Object.fromEntries([...names].map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    ...(Object.keys(content).length === 0 ? {} : { content }),
  };
}

function problemContent(problems: readonly ProblemCode[], publicUrl: string): object {
  const schemas = problems.map((code) => reference(problemSchemaName(code)));
  const [only] = schemas;
  return {
    schema:
      schemas.length === 1
        ? only
        : {
            oneOf: schemas,
            discriminator: {
              propertyName: "code",
              mapping: Object.fromEntries(
                problems.map((code) => [code, `#/components/schemas/${problemSchemaName(code)}`]),
              ),
            },
          },
    examples: Object.fromEntries(problems.map((code) => [code, { value: problemExample(code, publicUrl) }])),
  };
}

function reference(schema: string): object {
  return { $ref: `#/components/schemas/${schema}` };
}

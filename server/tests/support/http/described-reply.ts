import Ajv, { type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { openApiDocument } from "../../../http/openapi/document.ts";
import { describedRoutes } from "../../../http/routes/routes.ts";
import type { Reply } from "../service/test-service.ts";

/** The parts of an OpenAPI document that the comparison looks at. */
type Response = { headers?: Record<string, unknown>; content?: Record<string, { schema: object }> };
type Operation = { operationId: string; responses: Record<string, Response> };
type Document = {
  info: { contact: object };
  servers: object[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Record<string, unknown>> };
};

export const ROUTES = describedRoutes("everything", false);
export const DOCUMENT = openApiDocument(ROUTES, { publicUrl: "", version: "0.0.0-test" }) as Document;

/** Headers of the connection and of the body, which an OpenAPI document does not name. */
const OF_THE_CONNECTION = new Set([
  "connection",
  "content-length",
  "content-type",
  "date",
  "transfer-encoding",
]);

const ajv = new Ajv({ strict: false, allErrors: true });
addFormats(ajv);
ajv.addFormat("idn-email", true).addFormat("int32", true).addFormat("uri-reference", true);
ajv.addSchema(closed(DOCUMENT), "openapi");
const validators = new Map<string, ValidateFunction>();

/** The schemas of answers are open to members of later versions; this version has no others than it describes. */
function closed(document: Document): object {
  return JSON.parse(JSON.stringify(document), (_, value) =>
    value?.type === "object" && value.properties !== undefined
      ? { additionalProperties: false, ...value }
      : value,
  );
}

/** What a reply shows of the description: one text for the body and one for each header. */
export type Sighting = `${string} ${number} ${string}`;

/**
 * Compares a reply with the description of its operation. OPTIONS, and refusals by check 1, belong to none.
 *
 * @returns what was seen
 * @throws Error where the reply has anything that is not described
 */
export function sightingsOf(
  method: string,
  target: string,
  { status, headers, text, json }: Reply,
): Sighting[] {
  const path = target.split("?", 1)[0] ?? "";
  const template = templateOf(path);
  const operation = template === null ? undefined : operationOf(method, template);
  if (template === null || operation === undefined) return [];
  const { operationId } = operation;
  const response = operation.responses[status];
  const fail = (what: string): never => {
    throw new Error(
      `openapi.json does not describe ${what} of ${method} ${template}: ${status} ${text.slice(0, 300)}`,
    );
  };
  if (response === undefined) return fail(`the status ${status}`);
  const described = Object.keys(response.headers ?? {}).map((name) => name.toLowerCase());
  const sent = [...headers.keys()].filter((name) => !OF_THE_CONNECTION.has(name));
  for (const name of sent) if (!described.includes(name)) fail(`the header ${name}`);

  const sightings = sent.map((name): Sighting => `${operationId} ${status} ${name}`);
  if (text === "") return [...sightings, `${operationId} ${status} (reply)`];
  const type = headers.get("content-type")?.split(";")[0] ?? "";
  if (response.content?.[type] === undefined) fail(`the media type ${type}`);
  if (json === undefined) return [...sightings, `${operationId} ${status} ${type}`];
  const pointer = [
    "paths",
    template,
    method === "HEAD" ? "get" : method.toLowerCase(),
    "responses",
    `${status}`,
    "content",
    type,
    "schema",
  ];
  const validate = validatorOf(
    `openapi#/${pointer.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/")}`,
  );
  if (!validate(json)) fail(`the body (${ajv.errorsText(validate.errors)})`);
  return [...sightings, `${operationId} ${status} ${type === "application/problem+json" ? json.code : type}`];
}

function operationOf(method: string, template: string): Operation | undefined {
  const { [template]: path } = DOCUMENT.paths;
  return path?.[method === "HEAD" ? "get" : method.toLowerCase()];
}

/** As the service routes it: a path of its own comes before one with a parameter. */
function templateOf(path: string): string | null {
  const templates = Object.keys(DOCUMENT.paths);
  if (templates.includes(path)) return path;
  const isLike = (template: string) =>
    new RegExp(`^${template.replace(/\{\w+\}/, "[^/]+")}$`).test(path) && template.includes("{");
  return templates.find(isLike) ?? null;
}

function validatorOf(reference: string): ValidateFunction {
  const known = validators.get(reference);
  if (known !== undefined) return known;
  const validate = ajv.compile({ $ref: reference });
  validators.set(reference, validate);
  return validate;
}

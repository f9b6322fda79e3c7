import { PROBLEM_EXTENSIONS, PROBLEMS, type ProblemCode } from "../../domain/problem.ts";
import { type JsonSchema, jsonSchema } from "./json-schema.ts";
import type { ResponseHeader } from "./parameters.ts";

/** Headers of the replies to some problems, besides those that every reply has. */
const HEADERS: Readonly<Partial<Record<ProblemCode, readonly ResponseHeader[]>>> = {
  unauthenticated: ["WWW-Authenticate"],
  "precondition-failed": ["ETag", "Preference-Applied"],
  "unsupported-media-type": ["Accept-Patch", "Accept-Encoding"],
  "issuer-unavailable": ["Retry-After"],
  "too-many-requests": ["Retry-After"],
  "store-unavailable": ["Retry-After"],
};

export function problemHeaders(code: ProblemCode): readonly ResponseHeader[] {
  return HEADERS[code] ?? [];
}

/** `precondition-failed` is `PreconditionFailedProblem`. */
export function problemSchemaName(code: ProblemCode): string {
  return `${code.replace(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Problem`;
}

/** The schema of one problem's documents (RFC 9457, section 3.1). */
export function problemSchema(code: ProblemCode): JsonSchema {
  const { status, title, meaning } = PROBLEMS[code];
  const own = isExtended(code) ? jsonSchema(PROBLEM_EXTENSIONS[code]) : {};
  const members = own["properties"] ?? {};
  const required = Array.isArray(own["required"]) ? own["required"] : [];
  return {
    type: "object",
    description: meaning,
    required: ["type", "title", "status", "detail", "instance", "code", ...required],
    properties: {
      type: { type: "string", format: "uri-reference", maxLength: 2048 },
      title: { type: "string", enum: [title] },
      status: { type: "integer", format: "int32", minimum: 400, maximum: 599, enum: [status] },
      detail: { type: "string", maxLength: 4096 },
      instance: { type: "string", maxLength: 64, pattern: "^urn:uuid:" },
      code: { type: "string", enum: [code] },
      ...members,
    },
  };
}

function isExtended(code: ProblemCode): code is keyof typeof PROBLEM_EXTENSIONS {
  return Object.hasOwn(PROBLEM_EXTENSIONS, code);
}

import { type Static, Type } from "@sinclair/typebox";
import { LISTED_CHANGES_MAX, type NamedChange } from "./customer/change.ts";
import { FIELD_NAMES } from "./customer/field-registry.ts";
import { LIMIT_NAMES } from "./policy/limits.ts";
import { DIAGNOSES } from "./precondition.ts";

/**
 * Every refusal that a client can meet, as one closed table, and the only
 * place that knows its status. A refusal is a value: operations return it,
 * and http/reply/problem-response.ts alone turns it into a document (RFC 9457).
 *
 * `meaning` says what happened and to what, `action` what to do next.
 */
export const PROBLEMS = {
  "malformed-request": {
    status: 400,
    title: "Malformed request",
    meaning:
      "The Host header holds no usable host name, the body announces a trailer, or a PUT or PATCH has `Content-Range`. Nothing was changed.",
    action:
      "Send one Host header with the name and port of the service, and whole bodies without the headers Trailer and Content-Range.",
  },
  "unknown-parameter": {
    status: 400,
    title: "Unknown query parameter",
    meaning: "The query has a parameter that this address does not know. Nothing was read.",
    action: "Correct the parameter's name; `didYouMean` holds the nearest known one.",
  },
  "invalid-parameter": {
    status: 400,
    title: "Invalid parameter",
    meaning: "A parameter is out of range, or is given more than once. Nothing was read.",
    action: "Correct the parameter as `detail` says.",
  },
  "invalid-idempotency-key": {
    status: 400,
    title: "Invalid Idempotency-Key",
    meaning:
      "The Idempotency-Key is not one value of 1 to 255 visible ASCII characters. Nothing was changed.",
    action: "Send one key, for instance a new UUID for each write, bare or in double quotes.",
  },
  "unknown-field": {
    status: 400,
    title: "Unknown field",
    meaning: "`fields` names a field that does not exist. Nothing was read.",
    action: "Choose from `selectableFields`.",
  },
  "too-many-fields": {
    status: 400,
    title: "Too many fields",
    meaning: "`fields` holds more names than `maxFields`. Nothing was read.",
    action: "Name each field once.",
  },
  "empty-fields": {
    status: 400,
    title: "Empty field name",
    meaning: "`fields` is empty or has an empty element, as in `name,,email`. Nothing was read.",
    action: "Leave `fields` out for the default set, or name at least one field.",
  },
  "incomplete-body": {
    status: 400,
    title: "Incomplete body",
    meaning: "The connection ended before the whole body arrived. Nothing was changed.",
    action: "Send the request again, with the same `If-Match` and `Idempotency-Key`.",
  },
  "malformed-json": {
    status: 400,
    title: "Malformed JSON",
    meaning:
      "The body is not one JSON text in UTF-8 without a byte order mark, names a property twice, or has more than 32 levels or 256 properties. Nothing was changed.",
    action: "Correct the body as `detail` says.",
  },
  unauthenticated: {
    status: 401,
    title: "Not authenticated",
    meaning: "The request carries no token, or one that is unknown, revoked or expired. Nothing was read.",
    action:
      "Send `Authorization: Bearer <token>` with a valid token; `token create` on the server makes one.",
  },
  "forbidden-operation": {
    status: 403,
    title: "Operation not allowed",
    meaning: "This token may not do this. Nothing was read.",
    action: "Use a token that may do it, or ask an operator to change the policy or to make such a token.",
  },
  "forbidden-field": {
    status: 403,
    title: "Field not allowed",
    meaning: "This token may not read a field that the request names. Nothing was read.",
    action: "Leave out the fields in `forbiddenFields`, or use a token that may read them.",
  },
  "route-not-found": {
    status: 404,
    title: "No such address",
    meaning: "The service has nothing at this address.",
    action: "Check the path. Customers are at `/customers/{id}`.",
  },
  "customer-not-found": {
    status: 404,
    title: "No such customer",
    meaning: "The token's tenant has no customer with this id.",
    action: "Check the id. The customer may have been deleted.",
  },
  "method-not-allowed": {
    status: 405,
    title: "Method not allowed",
    meaning: "The address exists, but it does not support this method.",
    action: "Use a method that the `Allow` header lists.",
  },
  "precondition-failed": {
    status: 412,
    title: "Precondition failed",
    meaning:
      "`If-Match` is not the customer's current entity-tag, or `If-None-Match` is. Nothing was changed.",
    action:
      "Read the customer again, decide whether your change is still right, and send it with the new entity-tag. `diagnosis` says what is wrong with the tag. With `Prefer: changes` the answer also says who changed the customer, to those who may see its history.",
  },
  "payload-too-large": {
    status: 413,
    title: "Body too large",
    meaning: "The body is longer than 64 KiB. Nothing was changed.",
    action: "Send only the properties that the operation accepts.",
  },
  "unsupported-media-type": {
    status: 415,
    title: "Unsupported media type",
    meaning:
      "The body's Content-Type or Content-Encoding is missing or not supported at this address. Nothing was changed.",
    action:
      "Send `Content-Type: application/json`, uncompressed. PATCH also accepts `application/merge-patch+json`.",
  },
  "invalid-body": {
    status: 422,
    title: "Invalid body",
    meaning: "The body is JSON, but not valid for this operation. Nothing was changed.",
    action: "Correct each property that `errors` points to.",
  },
  "idempotency-key-reused": {
    status: 422,
    title: "Idempotency-Key reused",
    meaning: "This Idempotency-Key belongs to a different request of the last 24 hours. Nothing was changed.",
    action: "Send a new key with a new request. Repeat a key only with the request that it came with.",
  },
  "precondition-required": {
    status: 428,
    title: "Precondition required",
    meaning:
      "PUT, PATCH and DELETE must name in `If-Match` the version that they change. Nothing was changed.",
    action: "Read the customer, then send its ETag, quotes included, in `If-Match`.",
  },
  "too-many-requests": {
    status: 429,
    title: "Too many requests",
    meaning:
      "The client or its tenant sends more than its limits allow, or its address too many wrong tokens. Nothing was read or changed.",
    action:
      "Send the same request again after the seconds in `Retry-After`, a wrong token not at all. `RateLimit` says how many more are allowed now.",
  },
  "internal-error": {
    status: 500,
    title: "Internal error",
    meaning:
      "The service failed unexpectedly, and logged the failure under the request id. A write may have been applied.",
    action:
      "Report the request id. Read the customer before you repeat a write, or repeat it with its Idempotency-Key.",
  },
  "issuer-unavailable": {
    status: 503,
    title: "Issuer unavailable",
    meaning:
      "The keys of the token's issuer were never fetched since the service started, so the token cannot be verified. Nothing was read.",
    action: "Try again after the time in `Retry-After`. If it goes on, ask the operator to look at the log.",
  },
  "store-unavailable": {
    status: 503,
    title: "Store unavailable",
    meaning:
      "The database cannot answer at the moment. No write was acknowledged, but one may have been applied.",
    action:
      "Try again after the time in `Retry-After`. Read the customer before you repeat a write, or repeat it with its Idempotency-Key.",
  },
} as const satisfies Record<string, ProblemText>;

type ProblemText = { status: number; title: string; meaning: string; action: string };

export type ProblemCode = keyof typeof PROBLEMS;

/** A fault of one property of a body. `pointer` is a JSON Pointer (RFC 6901); "" is the whole body. */
export type MemberFault = { readonly pointer: string; readonly detail: string };

const fieldNames = Type.Array(Type.Union(FIELD_NAMES.map((name) => Type.Literal(name))));
const parameter = Type.String();

/** The further members of some problems' documents (RFC 9457, section 3.2). */
export const PROBLEM_EXTENSIONS = {
  "unknown-parameter": Type.Object({ parameter, didYouMean: Type.Optional(Type.Array(Type.String())) }),
  "invalid-parameter": Type.Object({ parameter }),
  "unknown-field": Type.Object({
    unknownFields: Type.Array(Type.String()),
    selectableFields: fieldNames,
    didYouMean: Type.Optional(fieldNames),
  }),
  "too-many-fields": Type.Object({ maxFields: Type.Integer() }),
  "forbidden-field": Type.Object({ forbiddenFields: fieldNames }),
  "precondition-failed": Type.Object({
    receivedIfMatch: Type.Optional(Type.String()),
    receivedIfNoneMatch: Type.Optional(Type.String()),
    diagnosis: Type.Union(DIAGNOSES.map((diagnosis) => Type.Literal(diagnosis))),
    changes: Type.Optional(
      Type.Array(Type.Unsafe<NamedChange>(Type.Ref("NamedChange")), { maxItems: LISTED_CHANGES_MAX }),
    ),
    moreChanges: Type.Optional(Type.Boolean()),
  }),
  "too-many-requests": Type.Object({
    violatedLimits: Type.Array(Type.Union(LIMIT_NAMES.map((name) => Type.Literal(name)))),
  }),
  "invalid-body": Type.Object({
    /** `pointer` is a JSON Pointer (RFC 6901); "" is the whole body. */
    errors: Type.Array(Type.Object({ pointer: Type.String(), detail: Type.String() })),
  }),
} as const;

export type ProblemExtensions = {
  readonly [Code in keyof typeof PROBLEM_EXTENSIONS]: Static<(typeof PROBLEM_EXTENSIONS)[Code]>;
};

export type Problem = {
  readonly code: ProblemCode;
  /**
   * What is wrong with this request and what to do, for people. Holds no value that the caller may not read.
   */
  readonly detail: string;
  readonly extensions?: ProblemExtensions[keyof ProblemExtensions];
  /** Further headers, such as Allow or the current ETag. */
  readonly headers?: Readonly<Record<string, string>>;
};

export type Refusal = { readonly ok: false; readonly problem: Problem };
export type Result<T> = { readonly ok: true; readonly value: T } | Refusal;

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

type Headed = Pick<Problem, "headers">;

/** A problem that has further members cannot be refused without them. */
export function refuse<Code extends ProblemCode>(
  code: Code,
  detail: string,
  ...[more]: Code extends keyof ProblemExtensions
    ? [Headed & { readonly extensions: ProblemExtensions[Code] }]
    : [Headed?]
): Refusal {
  return { ok: false, problem: { code, detail, ...more } };
}

/** Continues with a value, or passes the refusal on. */
export function flatMap<T, U>(result: Result<T>, next: (value: T) => Result<U>): Result<U> {
  return result.ok ? next(result.value) : result;
}

export function isProblemCode(text: string): text is ProblemCode {
  return Object.hasOwn(PROBLEMS, text);
}

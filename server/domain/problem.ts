/**
 * Every refusal that a client can meet, as one closed table. A refusal is a value: operations return it,
 * http/problem-response.ts alone turns it into a document (RFC 9457).
 */
export const PROBLEMS = {
  "malformed-request": {
    status: 400,
    title: "Malformed request",
    meaning: "The Host header is missing a usable host name, so the address of the request is unclear.",
    action: "Send a Host header with the name and port of the service.",
  },
  "unknown-parameter": {
    status: 400,
    title: "Unknown query parameter",
    meaning: "The query string has a parameter that this route does not know. Nothing was read.",
    action: "Correct the parameter's name; `didYouMean` names the nearest known one.",
  },
  "invalid-parameter": {
    status: 400,
    title: "Invalid parameter",
    meaning: "A parameter has a value outside its range, or is given more than once.",
    action: "Correct the value as `detail` says.",
  },
  "invalid-idempotency-key": {
    status: 400,
    title: "Invalid Idempotency-Key",
    meaning: "An Idempotency-Key is one value of 1 to 255 visible ASCII characters.",
    action: "Send one key, for instance a fresh UUID for each customer that you want to create.",
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
    meaning: "`fields` holds more names than a request may have.",
    action: "Name each field once.",
  },
  "empty-fields": {
    status: 400,
    title: "Empty field name",
    meaning: "`fields` is empty or has an empty element, as in `name,,email`.",
    action: "Leave `fields` out for the default set, or name at least one field.",
  },
  "incomplete-body": {
    status: 400,
    title: "Incomplete body",
    meaning: "The connection ended before the body was whole. Nothing was changed.",
    action: "Send the request again, with the same `If-Match` or `Idempotency-Key`.",
  },
  "malformed-json": {
    status: 400,
    title: "Malformed JSON",
    meaning: "The body is not one JSON text in UTF-8 without a byte order mark, or names a member twice.",
    action: "Correct the body as `detail` says. Nothing was changed.",
  },
  unauthenticated: {
    status: 401,
    title: "Not authenticated",
    meaning: "The request carries no valid token: none at all, or one that is unknown, revoked or expired.",
    action: "Send `Authorization: Bearer <token>` with a token made by `token create`.",
  },
  "forbidden-operation": {
    status: 403,
    title: "Operation not allowed",
    meaning: "The role of this token may not do this.",
    action: "Use a token whose role has the operation, or have the policy changed.",
  },
  "forbidden-field": {
    status: 403,
    title: "Field not allowed",
    meaning: "The role of this token may not read a field that the request names.",
    action: "Leave the field out, or use a token whose role may read it.",
  },
  "route-not-found": {
    status: 404,
    title: "No such route",
    meaning: "Nothing is served at this address.",
    action: "Check the path; customers are at /customers/{id}.",
  },
  "customer-not-found": {
    status: 404,
    title: "No such customer",
    meaning: "No customer of the token's tenant has this id.",
    action: "Check the id; it may have been deleted.",
  },
  "method-not-allowed": {
    status: 405,
    title: "Method not allowed",
    meaning: "The address exists, but not for this method.",
    action: "Use a method that the `Allow` header lists.",
  },
  "precondition-failed": {
    status: 412,
    title: "Precondition failed",
    meaning: "`If-Match` is not the customer's current entity-tag. Nothing was changed.",
    action:
      "Read the customer again, decide whether your change still holds, and send it with the new entity-tag.",
  },
  "payload-too-large": {
    status: 413,
    title: "Body too large",
    meaning: "A body may have at most 64 KiB.",
    action: "Send only the members that the operation takes.",
  },
  "unsupported-media-type": {
    status: 415,
    title: "Unsupported media type",
    meaning: "The body's Content-Type (or Content-Encoding) is missing or not one that this route reads.",
    action:
      "Send `Content-Type: application/json`, uncompressed; PATCH also takes application/merge-patch+json.",
  },
  "invalid-body": {
    status: 422,
    title: "Invalid body",
    meaning: "The body is JSON, but not what the operation takes.",
    action: "Correct each member that `errors` points to.",
  },
  "idempotency-key-reused": {
    status: 422,
    title: "Idempotency-Key reused",
    meaning: "This key was used within the last 24 hours for a different body.",
    action: "Send a new key for a new customer; repeat a key only with the body that it came with.",
  },
  "precondition-required": {
    status: 428,
    title: "Precondition required",
    meaning: "PUT, PATCH and DELETE must say in `If-Match` which version they change. Nothing was changed.",
    action: "Read the customer, then send its ETag, quotes included, in `If-Match`.",
  },
  "internal-error": {
    status: 500,
    title: "Internal error",
    meaning: "The service failed in a way that it did not foresee. It is logged under the request id.",
    action: "Report the request id. Before repeating a write, read the customer.",
  },
  "store-unavailable": {
    status: 503,
    title: "Store unavailable",
    meaning: "The database can't answer at the moment. No write was acknowledged.",
    action: "Try again after the time in `Retry-After`.",
  },
} as const satisfies Record<string, ProblemText>;

type ProblemText = { status: number; title: string; meaning: string; action: string };

export type ProblemCode = keyof typeof PROBLEMS;

/** A fault of one member of a body. `pointer` is a JSON Pointer (RFC 6901); "" is the whole body. */
export type MemberFault = { readonly pointer: string; readonly detail: string };

export type Problem = {
  readonly code: ProblemCode;
  /** What is wrong with this request and what to do, for a person. Holds no value that the caller may not read. */
  readonly detail: string;
  /** Further members of the document (RFC 9457, section 3.2). */
  readonly extensions?: Readonly<Record<string, unknown>>;
  /** Further headers, such as Allow or the current ETag. */
  readonly headers?: Readonly<Record<string, string>>;
};

export type Refusal = { readonly ok: false; readonly problem: Problem };
export type Result<T> = { readonly ok: true; readonly value: T } | Refusal;

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function refuse(
  code: ProblemCode,
  detail: string,
  more: Pick<Problem, "extensions" | "headers"> = {},
): Refusal {
  return { ok: false, problem: { code, detail, ...more } };
}

/** Goes on with a value, or passes the refusal on. */
export function flatMap<T, U>(result: Result<T>, next: (value: T) => Result<U>): Result<U> {
  return result.ok ? next(result.value) : result;
}

export function isProblemCode(text: string): text is ProblemCode {
  return Object.hasOwn(PROBLEMS, text);
}

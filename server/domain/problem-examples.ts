import type { ProblemCode, ProblemExtensions } from "./problem.ts";

type Example<Code> = { readonly detail: string } & (Code extends keyof ProblemExtensions
  ? ProblemExtensions[Code]
  : unknown);

/** What a document of each problem says beside its type, title, status, instance and code: one example each. */
export const PROBLEM_EXAMPLES: { readonly [Code in ProblemCode]: Example<Code> } = {
  "malformed-request": { detail: "The body announces a trailer. Send it without the Trailer header." },
  "unknown-parameter": {
    detail: "The query has an unknown parameter `field`. Did you mean `fields`?",
    parameter: "field",
    didYouMean: ["fields"],
  },
  "invalid-parameter": { detail: "`limit` must be an integer from 1 to 500.", parameter: "limit" },
  "invalid-idempotency-key": {
    detail:
      "Idempotency-Key is not one value of 1 to 255 visible ASCII characters. Send one key, for instance a new UUID for each write.",
  },
  "unknown-field": {
    detail: "`fields` names unknown fields: mail. Choose from id, name, email, status.",
    unknownFields: ["mail"],
    selectableFields: ["id", "name", "email", "status"],
    didYouMean: ["email"],
  },
  "too-many-fields": {
    detail: "`fields` has 17 names; at most 16 are allowed. Name each field once.",
    maxFields: 16,
  },
  "empty-fields": {
    detail:
      "`fields` has an empty element. Leave `fields` out for the default set, or name at least one field.",
  },
  "incomplete-body": { detail: "The connection ended before the body was whole." },
  "malformed-json": { detail: "The body is not one JSON text." },
  unauthenticated: { detail: "The token is unknown, revoked or expired. Send a valid one." },
  "forbidden-operation": {
    detail: "This token may not delete customers. Use one with the operation `delete`.",
  },
  "forbidden-field": {
    detail: "This token may not read email. Leave it out of the request.",
    forbiddenFields: ["email"],
  },
  "route-not-found": { detail: "Nothing is served at this address. Customers are at /customers/{id}." },
  "customer-not-found": {
    detail: "There is no customer with this id. Check the id; the customer may have been deleted.",
  },
  "method-not-allowed": { detail: "PUT is not for this address; it takes GET, HEAD, POST, OPTIONS." },
  "precondition-failed": {
    detail:
      "The customer has changed since the version that If-Match names. Read it again, decide whether your change is still right, and send it with the new entity-tag.",
    receivedIfMatch: '"3q2-7wAAAb1fE9zQ"',
    diagnosis: "stale",
  },
  "payload-too-large": { detail: "A body may have at most 65536 bytes." },
  "unsupported-media-type": {
    detail: "The body has no Content-Type; send Content-Type: application/json.",
  },
  "invalid-body": {
    detail: "`email` must not have an empty label in its domain.",
    errors: [{ pointer: "/email", detail: "must not have an empty label in its domain" }],
  },
  "idempotency-key-reused": {
    detail:
      "This Idempotency-Key belongs to a different request of the last 24 hours. Send a new key with a new request.",
  },
  "precondition-required": {
    detail:
      "PUT needs If-Match with the customer's current entity-tag. Read the customer and send its ETag header back, quotes included.",
  },
  "too-many-requests": {
    detail:
      "The request exceeds the limit for writes of this client (1 a second, 10 at once). Send it again after 1 s.",
    violatedLimits: ["client-writes"],
  },
  "internal-error": { detail: "The service failed. Report the request id." },
  "issuer-unavailable": {
    detail: "The keys that verify this token could not be fetched from its issuer yet. Try again.",
  },
  "store-unavailable": {
    detail:
      "The database can't answer now. Try again; after a write read the customer first, since it was not acknowledged.",
  },
};

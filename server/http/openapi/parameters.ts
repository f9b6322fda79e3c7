import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from "../../domain/customer/customer.ts";
import { FIELD_NAMES, STATUSES } from "../../domain/customer/field-registry.ts";
import { FIELDS_MAX } from "../../domain/projection.ts";
import type { JsonSchema } from "./json-schema.ts";

type Described = { readonly description: string; readonly schema: JsonSchema; readonly example?: unknown };

/** An entity-tag of this service: 12 bytes as base64url, in double quotes. */
const ENTITY_TAG = { type: "string", pattern: '^"[A-Za-z0-9_-]{16}"$', minLength: 18, maxLength: 18 };
const EXAMPLE_TAG = '"3q2-7wAAAb1fE9zQ"';
const CUSTOMER_ID = { type: "string", format: "uuid", maxLength: 36 };
const TEXT = { type: "string", maxLength: 8192 };
const CURSOR = { type: "string", maxLength: 1024, pattern: "^[A-Za-z0-9_.-]+$" };

/** The parameters of paths and queries. */
export const QUERY_PARAMETERS = {
  fields: {
    description: `The fields to show, separated by commas, at most ${FIELDS_MAX}. Without it: id, name and email, less what the caller may not read.`,
    schema: { type: "array", maxItems: FIELDS_MAX, items: { type: "string", enum: FIELD_NAMES } },
    example: ["name", "email"],
  },
  limit: {
    description: "The maximum number of items on the page.",
    schema: {
      type: "integer",
      format: "int32",
      minimum: 1,
      maximum: PAGE_LIMIT_MAX,
      default: PAGE_LIMIT_DEFAULT,
    },
  },
  cursor: { description: "`next` of the page before. Without it: the first page.", schema: CURSOR },
  status: { description: "Only customers in this status.", schema: { type: "string", enum: STATUSES } },
} as const satisfies Record<string, Described>;

export const PATH_PARAMETERS = {
  id: { description: "The id of the customer, matched without regard to case.", schema: CUSTOMER_ID },
  code: {
    description: "`code` of a problem document.",
    schema: { type: "string", maxLength: 64, pattern: "^[a-z-]+$" },
    example: "precondition-failed",
  },
  file: {
    description: "The name of the file.",
    schema: { type: "string", maxLength: 64, pattern: "^[a-z.-]+$" },
    example: "swagger-ui.css",
  },
} as const satisfies Record<string, Described>;

/** The request headers that are read, besides Authorization, Content-Type and Accept. */
export const REQUEST_HEADERS = {
  "If-Match": {
    description:
      "The `ETag` of the last read, exactly as received, quotes included. Any other value is 412; a write without it is 428.",
    schema: TEXT,
    example: EXAMPLE_TAG,
  },
  "If-None-Match": {
    description:
      "On a read: entity-tags of copies; where one is current the answer is 304. On a write: the current tag or `*` is 412.",
    schema: TEXT,
  },
  Prefer: {
    description:
      "`return=representation` asks for the customer in the answer (RFC 7240). `changes` asks a 412 to say who changed the customer since the version in `If-Match`; it needs the operation `history`.",
    schema: TEXT,
    example: "return=representation",
  },
  "Idempotency-Key": {
    description:
      "Makes the write safe to repeat: for 24 hours the same request under the same key has the first outcome again.",
    schema: { type: "string", minLength: 1, maxLength: 512, pattern: "^[\\x21-\\x7e]+$" },
    example: "8f14e45f-ceea-467f-a9b2-1c0d3f6d7b21",
  },
  "X-Request-Id": {
    description: "Appears in the log and in the answer. Without it the service draws one.",
    schema: { type: "string", maxLength: 64, pattern: "^[A-Za-z0-9._-]{1,64}$" },
  },
} as const satisfies Record<string, Described>;

/** The headers of answers, besides those of the connection. */
export const RESPONSE_HEADERS = {
  ETag: {
    description:
      "The strong entity-tag of the customer. It changes with every accepted write, and is the same for every selection of fields.",
    schema: ENTITY_TAG,
    example: EXAMPLE_TAG,
  },
  "Cache-Control": { description: "Who may keep the answer, and for how long.", schema: TEXT },
  Vary: { description: "The request headers that the answer depends on.", schema: TEXT },
  Location: { description: "The address of the new customer.", schema: TEXT },
  Link: {
    description: "The next page (`next`), or why the write will be refused one day (`deprecation`).",
    schema: TEXT,
  },
  "Idempotency-Replayed": {
    description: "The outcome is that of an earlier request under the same Idempotency-Key.",
    schema: { type: "string", enum: ["true"] },
  },
  "Preference-Applied": {
    description: "The preference that the answer follows.",
    schema: { type: "string", enum: ["return=representation", "changes"] },
  },
  "Precondition-Enforced-From": {
    description: "The write had no If-Match and was applied. From this day on (UTC) such a write is refused.",
    schema: { type: "string", format: "date", maxLength: 10 },
  },
  "WWW-Authenticate": { description: "How to authenticate (RFC 6750).", schema: TEXT },
  "Retry-After": {
    description: "The number of seconds after which to try again.",
    schema: { type: "string", maxLength: 10, pattern: "^[0-9]+$" },
  },
  "RateLimit-Policy": {
    description:
      "The limits that the request was held to, where the operator of the service sets any: `q` / `w` requests a second on average, rounded down, `w` in whole seconds (draft-ietf-httpapi-ratelimit-headers).",
    schema: TEXT,
    example: '"client-requests";q=200;w=2',
  },
  RateLimit: {
    description:
      "What is left of each of them: `r` more requests now, and all that may be sent at once after `t` seconds without a request; where `r` is 0, the next one after `t` seconds.",
    schema: TEXT,
    example: '"client-requests";r=199;t=1',
  },
  "Token-Expires": {
    description:
      "When the token of the request ends, as an HTTP-date (RFC 9110, section 5.6.7). Sent in the last quarter of its lifetime, at most 14 days before. Ask an operator for another token.",
    schema: { type: "string", maxLength: 29 },
    example: "Wed, 31 Mar 2027 12:00:00 GMT",
  },
  "Accept-Patch": { description: "The media types of a PATCH (RFC 5789).", schema: TEXT },
  "Accept-Encoding": { description: "The content codings of a request (RFC 9110).", schema: TEXT },
  "Content-Security-Policy": { description: "What a browser may load to show it.", schema: TEXT },
  "Referrer-Policy": {
    description: "Always `no-referrer`.",
    schema: { type: "string", enum: ["no-referrer"] },
  },
  "Cross-Origin-Opener-Policy": {
    description: "Always `same-origin`.",
    schema: { type: "string", enum: ["same-origin"] },
  },
  "X-Request-Id": { description: "The id of the request in the log.", schema: TEXT },
  "X-Content-Type-Options": {
    description: "Always `nosniff`.",
    schema: { type: "string", enum: ["nosniff"] },
  },
  "Access-Control-Allow-Origin": {
    description: "The origin of the page that asks, where the operator of the service allows it.",
    schema: TEXT,
  },
  "Access-Control-Expose-Headers": { description: "The headers that such a page may read.", schema: TEXT },
} as const satisfies Record<string, Described>;

/** What every answer has, or may have with CORS. */
export const EVERY_RESPONSE = [
  "X-Request-Id",
  "X-Content-Type-Options",
  "Cache-Control",
  "Vary",
  "Access-Control-Allow-Origin",
  "Access-Control-Expose-Headers",
] as const satisfies readonly ResponseHeader[];

/** What those besides have that a browser may show: all but customers themselves. */
export const SHOWN_RESPONSE = [
  "Content-Security-Policy",
  "Referrer-Policy",
] as const satisfies readonly ResponseHeader[];

/** What the answer to a caller with a token may have besides. */
export const RESPONSE_TO_CALLER = ["Token-Expires"] as const satisfies readonly ResponseHeader[];

/** What the answer to a request for customers may have besides. */
export const RESPONSE_TO_TENANT = [
  "RateLimit-Policy",
  "RateLimit",
] as const satisfies readonly ResponseHeader[];

export type QueryParameter = keyof typeof QUERY_PARAMETERS;
export type RequestHeader = keyof typeof REQUEST_HEADERS;
export type ResponseHeader = keyof typeof RESPONSE_HEADERS;

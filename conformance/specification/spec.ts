/**
 * The sentences of the specification that rules stand on, verbatim, by a key that names the place. The whole text
 * stands in customer-resource-api.md; a test holds that every sentence is found there.
 */
export const spec = {
  "1.1": "The service exposes a customer resource addressed by an identifier.",
  "1.2":
    "Reads return the representation and an `ETag` response header holding the version token of that resource.",
  "1.3":
    "A write is accepted only if that token equals the current token. Stale writes are rejected and never silently overwrite newer state.",
  "1.4": "Only the selected fields are returned (a projection). Fields not selected are omitted.",
  "1.5":
    "on a rejected write it re-reads, merges or re-applies its change, and retries with the fresh token.",
  "2.1 Id": "GUID/UUID string | Resource identifier, assigned by the service, not changeable by update.",
  "2.1 Name": "| Name | string | Writable. |",
  "2.1 Email": "| Email | string | Writable. |",
  "2.1 Status": "enumeration (CustomerStatus)",
  "2.1 CreatedAt": "It is not in the selectable field registry, so it cannot be requested through `fields`.",
  "2.1 RowVersion": "Internal version marker. It is the source of the ETag and is not a body field.",
  "2.2 names": "The field registry names used by `fields` are the lowercase words id, name, email, status.",
  "2.2 case": "Matching of registry names is case-insensitive.",
  "2.2 unknown": "The registry is server-owned and explicit. A name outside it is unknown.",
  "2.3 Name": "| Name | string | yes |",
  "2.3 Email": "| Email | string | yes |",
  "2.4.1": "Carried in the `ETag` response header and sent back in the `If-Match` request header.",
  "2.4.2":
    "It is an HTTP entity-tag: an opaque string wrapped in double quotes. The quotes are part of the value and must be kept.",
  "2.4.3":
    "The token is derived from a server-controlled version (a row version, update counter or explicit version column).",
  "2.4.4": "It is not derived from the serialized JSON body.",
  "2.4.5":
    "Strong tokens are required for concurrency control. A weak token (prefixed with W/) means semantic equivalence only and is not used for write preconditions.",
  "2.4.6":
    "The token changes on every accepted write, and whenever any change happens that could make a stale client update incorrect.",
  "2.4.7":
    "With `fields`, the token still identifies the resource's update-relevant version. It does not depend on which fields were returned.",
  "3 GET": "| current token T1 | GET | resource exists | T1 | Response carries `ETag` T1. |",
  "3 accepted":
    "| current token T1 | PUT with `If-Match` | header value equals T1 | new token T2 | Update applied; response carries `ETag` T2. |",
  "3 stale":
    "| current token T1 | PUT with `If-Match` | header value differs from T1 | T1 | Rejected with 412; response carries `ETag` T1; nothing is changed. |",
  "3 missing":
    "| current token T1 | PUT without a usable `If-Match` | header absent, or empty/whitespace | T1 | Rejected with 428; nothing is changed. |",
  "3 same rule": "PATCH and DELETE follow the same precondition rule as PUT.",
  "4.1 fields": "| Query parameter `fields` | Optional. Comma-separated list of registry names. |",
  "4.1 200": "Header `ETag: <token>`. Body: JSON object with the selected fields only.",
  "4.1 404": "| 404 response | Customer does not exist. |",
  "4.1 400": "| 400 response | `fields` contains an unknown name. |",
  "4.1 rule 1": "When `fields` is present, the body has exactly the requested fields and no others.",
  "4.1 rule 2":
    "A field that is not requested is omitted, never returned as null. Absence means not requested.",
  "4.1 rule 3": "When `fields` is absent, a default field set is applied.",
  "4.1 rule 4": "Order of fields in the body is not guaranteed.",
  "4.1 rule 5": "Unknown names are rejected before any data is read (fail fast).",
  "4.1 rule 6":
    "Tenant constraints are applied before shaping, and `fields` can never bypass authorization policy.",
  "4.1 rule 8": "Responses vary by requested field set, caller and tenant. Any cache must key on these.",
  "4.1 rule 9":
    "The field list may be normalized (defaults applied, maximum count enforced, canonical order) before caching and query planning.",
  "4.2 one value": "Exactly one entity-tag value: the quoted token from the last read.",
  "4.2 body": "JSON object with Name (string) and Email (string).",
  "4.2 204":
    "Update applied. Header `ETag: <new token>`. No body. (A 200 with a body is also allowed for successful writes.)",
  "4.2 412": "Token mismatch. Header `ETag: <current token>`. Optionally a problem-details body.",
  "4.2 428": "| 428 response | `If-Match` absent or blank. |",
  "4.2 order 1": "`If-Match` present and non-blank, otherwise 428.",
  "4.2 order 2": "Customer exists, otherwise 404.",
  "4.2 order 3": "`If-Match` equals the current token, otherwise 412.",
  "4.2 order 4": "Apply the change, derive the new token, return it.",
  "4.2 trim": "The header value is trimmed of surrounding whitespace.",
  "4.2 exact": "Comparison is exact, case-sensitive string equality, including the quotes.",
  "4.2 list": "A list of several values is not supported. The sample accepts a single value only.",
  "4.2 atomic":
    "The check and the update are one atomic step: the update applies only where the stored version still equals the version that was compared.",
  "4.3 same":
    "`If-Match` is required, with the same semantics, status codes (428 and 412) and response `ETag` behaviour as PUT.",
  "4.3 PATCH": "PATCH is not exempt from the rule because it is partial.",
  "5.2":
    "A caller may only obtain fields that the policy exposes for its role and tenant. Fields that carry personal data are gated by this policy. Tenant restrictions apply before any shaping.",
  "5.3": "A requested field that the caller is forbidden to read is a validation failure.",
  "5.5": "ETags must not leak sensitive data. Raw hashes of sensitive payloads are not used as tokens.",
  "5.6": "The service uses client-supplied tokens only for an equality check.",
  "7 400": "| 400 | `fields` contains an unknown name | Rejected before data access. |",
  "7 404": "| 404 | Customer id does not exist (GET, PUT) | |",
  "7 412":
    "`ETag` header with the current token. Optional problem-details body (RFC 7807 style) with a clear error code.",
  "7 428": "| 428 Precondition Required | `If-Match` missing or blank on a write | Nothing is applied. |",
  "7 rule 1":
    "A generic 409 without guidance is not used for stale writes. The outcomes are deterministic: 428 or 412.",
  "7 rule 2": "Strict mode is the rule.",
  "7 rule 3":
    "On 412 the client must re-fetch with GET, decide whether to merge or re-apply its changes, and retry with the new token.",
  "7 rule 4":
    "Telemetry: a counter `http_precondition_required_total` counts 428 responses. A counter `http_precondition_failed_total` counts 412 responses.",
  "7 rule 7": "Status code for conflicting or invalid field combinations in `fields`: not shown.",
  "8.1": "A maximum number of fields per request exists as a normalization rule.",
  "8.2": "`If-Match` accepts one entity-tag value per request.",
  "9.1":
    "Resource versioning is the ETag described in section 2.4. It is the only versioning mechanism that is fixed here.",
} as const satisfies Record<string, string>;

export type SpecKey = keyof typeof spec;

export const sentenceOf = (key: SpecKey): string => outsideTable(spec[key]);

/** A line as it may be shown outside its list or table: cells are joined by a colon. */
export function outsideTable(line: string): string {
  return line
    .replace(/^[-|] | \|$/g, "")
    .split(/ ?\| ?/)
    .filter((cell) => cell.trim() !== "")
    .join(": ");
}

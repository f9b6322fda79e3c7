import { Type } from "@sinclair/typebox";
import { type CustomerStatus, FIELD_REGISTRY, type FieldName } from "./field-registry.ts";

/** The fields of a projection, no others. */
export type CustomerFields = Partial<Record<FieldName, string>>;

export type Replacement = { readonly name: string; readonly email: string };
export type NewCustomer = Replacement & { readonly status: CustomerStatus };
/** What a merge patch sets; a field that it does not name stays as it is. */
export type CustomerChanges = Partial<NewCustomer>;

const { id, name, email, status } = FIELD_REGISTRY;
const closed = { additionalProperties: false };

/** PUT. `id` is tolerated when it equals the path's, so that a client can send back what it read. */
export const REPLACEMENT_BODY = Type.Object(
  { id: Type.Optional(id.schema), name: name.schema, email: email.schema },
  closed,
);

/** POST /customers. */
export const CREATION_BODY = Type.Object(
  { name: name.schema, email: email.schema, status: Type.Optional(status.schema) },
  closed,
);

/**
 * PATCH: a merge patch (RFC 7396). A null would remove a field; every field is required, so it is a fault.
 */
export const PATCH_BODY = Type.Object(
  {
    id: Type.Optional(id.schema),
    name: Type.Optional(name.schema),
    email: Type.Optional(email.schema),
    status: Type.Optional(status.schema),
  },
  closed,
);

/** The maximum number of items on a page, and the number without `limit`. */
export const PAGE_LIMIT_MAX = 500;
export const PAGE_LIMIT_DEFAULT = 50;

const FIELD_LISTS_MAX = 64;

/** POST /customers/search. `fields` is a list as in the query, or an array of names. */
export const SEARCH_BODY = Type.Object(
  {
    email: Type.Optional(email.schema),
    status: Type.Optional(status.schema),
    fields: Type.Optional(
      Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: FIELD_LISTS_MAX })], {
        fault: `must be a comma-separated list of field names, or an array of at most ${FIELD_LISTS_MAX}`,
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: PAGE_LIMIT_MAX,
        fault: `must be an integer from 1 to ${PAGE_LIMIT_MAX}`,
      }),
    ),
    /** Null is the first page, so that a paging loop sends `next` as it received it. */
    cursor: Type.Optional(Type.Union([Type.String(), Type.Null()], { fault: "must be a string or null" })),
  },
  closed,
);

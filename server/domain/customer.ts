import { Type } from "@sinclair/typebox";
import { type CustomerStatus, FIELD_REGISTRY, type FieldName } from "./field-registry.ts";

/** A stored projection: exactly the fields that were asked for. */
export type CustomerFields = Partial<Record<FieldName, string>>;

export type Replacement = { readonly name: string; readonly email: string };
export type NewCustomer = Replacement & { readonly status: CustomerStatus };
/** What a merge patch sets; a field that it does not name stays. */
export type CustomerChanges = Partial<NewCustomer>;

const { id, name, email, status } = FIELD_REGISTRY;
const closed = { additionalProperties: false };

/** PUT. `id` is tolerated when it is the path's, so that what was read can be sent back. */
export const REPLACEMENT_BODY = Type.Object(
  { id: Type.Optional(id.schema), name: name.schema, email: email.schema },
  closed,
);

/** POST /customers. */
export const CREATION_BODY = Type.Object(
  { name: name.schema, email: email.schema, status: Type.Optional(status.schema) },
  closed,
);

/** PATCH: a merge patch (RFC 7396). A null would remove a field, and each is required: so it is a fault. */
export const PATCH_BODY = Type.Object(
  {
    id: Type.Optional(id.schema),
    name: Type.Optional(name.schema),
    email: Type.Optional(email.schema),
    status: Type.Optional(status.schema),
  },
  closed,
);

/** The most items on a page, and how many without `limit`. */
export const PAGE_LIMIT_MAX = 500;
export const PAGE_LIMIT_DEFAULT = 50;

/** POST /customers/search. `fields` is a list as in the query, or an array of names. */
export const SEARCH_BODY = Type.Object(
  {
    email: Type.Optional(email.schema),
    status: Type.Optional(status.schema),
    fields: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 64 })])),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_LIMIT_MAX })),
    cursor: Type.Optional(Type.String()),
  },
  closed,
);

/**
 * The form of an email address that searches compare: Unicode's default lower case, without regard to language. Accents
 * and compatibility forms stay apart.
 */
export function foldEmail(email: string): string {
  return email.toLowerCase();
}

/** A name as it is stored: without the blanks around it. */
export function storedName(text: string): string {
  return text.trim();
}

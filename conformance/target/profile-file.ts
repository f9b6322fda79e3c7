/** The schema of the profile's TOML file. Every key is optional; README.md describes each. */
import { type Static, Type } from "@sinclair/typebox";
import { HeaderTable } from "./caller-header.ts";

export const FIELDS = ["id", "name", "email", "status"] as const;
export type Field = (typeof FIELDS)[number];

const closed = { additionalProperties: false } as const;
const FieldName = Type.Union(FIELDS.map((field) => Type.Literal(field)));

export const ProfileFile = Type.Object(
  {
    "base-url": Type.Optional(Type.String()),
    "timeout-ms": Type.Optional(Type.Integer({ minimum: 100, maximum: 600_000 })),
    headers: Type.Optional(HeaderTable),
    "header-command": Type.Optional(Type.String()),
    limited: Type.Optional(
      Type.Object({ headers: Type.Optional(HeaderTable), denied: Type.Optional(FieldName) }, closed),
    ),
    "other-tenant": Type.Optional(Type.Object({ headers: Type.Optional(HeaderTable) }, closed)),
    customers: Type.Optional(
      Type.Object(
        {
          ids: Type.Optional(Type.Array(Type.String())),
          path: Type.Optional(Type.String({ pattern: "^/" })),
          body: Type.Optional(Type.String()),
          headers: Type.Optional(HeaderTable),
          command: Type.Optional(Type.String()),
        },
        closed,
      ),
    ),
    json: Type.Optional(Type.Partial(Type.Record(FieldName, Type.String()), closed)),
    put: Type.Optional(Type.Object({ body: Type.Optional(Type.String()) }, closed)),
    patch: Type.Optional(
      Type.Object(
        {
          offered: Type.Optional(Type.Boolean()),
          "media-type": Type.Optional(Type.String()),
          body: Type.Optional(Type.String()),
          statuses: Type.Optional(Type.Array(Type.Integer({ minimum: 200, maximum: 299 }))),
        },
        closed,
      ),
    ),
    delete: Type.Optional(
      Type.Object(
        {
          offered: Type.Optional(Type.Boolean()),
          statuses: Type.Optional(Type.Array(Type.Integer({ minimum: 200, maximum: 299 }))),
        },
        closed,
      ),
    ),
    metrics: Type.Optional(
      Type.Object(
        {
          urls: Type.Optional(Type.Array(Type.String())),
          headers: Type.Optional(HeaderTable),
          none: Type.Optional(Type.Boolean()),
          "lag-ms": Type.Optional(Type.Integer({ minimum: 0, maximum: 120_000 })),
        },
        closed,
      ),
    ),
    tls: Type.Optional(
      Type.Object(
        {
          "ca-file": Type.Optional(Type.String()),
          "cert-file": Type.Optional(Type.String()),
          "key-file": Type.Optional(Type.String()),
          insecure: Type.Optional(Type.Boolean()),
        },
        closed,
      ),
    ),
    proxy: Type.Optional(Type.String()),
    pace: Type.Optional(
      Type.Object(
        {
          rate: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
          budget: Type.Optional(Type.Integer({ minimum: 1 })),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type ProfileFile = Static<typeof ProfileFile>;

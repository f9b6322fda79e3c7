/** The schema of the profile's TOML file. Every key is optional; README.md describes each. */
import { type Static, type TProperties, Type } from "@sinclair/typebox";
import { HeaderTable } from "./caller-header.ts";

export const FIELDS = ["id", "name", "email", "status"] as const;
export type Field = (typeof FIELDS)[number];

const closed = { additionalProperties: false } as const;
const table = <T extends TProperties>(properties: T) => Type.Optional(Type.Object(properties, closed));
const text = Type.Optional(Type.String());
const texts = Type.Optional(Type.Array(Type.String()));
const flag = Type.Optional(Type.Boolean());
const headers = Type.Optional(HeaderTable);
const statuses = Type.Optional(Type.Array(Type.Integer({ minimum: 200, maximum: 299 })));
const FieldName = Type.Union(FIELDS.map((field) => Type.Literal(field)));

export const ProfileFile = Type.Object(
  {
    "base-url": text,
    "timeout-ms": Type.Optional(Type.Integer({ minimum: 100, maximum: 600_000 })),
    headers,
    "header-command": text,
    limited: table({ headers, denied: Type.Optional(FieldName) }),
    "other-tenant": table({ headers }),
    customers: table({
      ids: texts,
      path: Type.Optional(Type.String({ pattern: "^/" })),
      body: text,
      headers,
      command: text,
    }),
    json: Type.Optional(Type.Partial(Type.Record(FieldName, Type.String()), closed)),
    put: table({ body: text }),
    patch: table({ offered: flag, "media-type": text, body: text, statuses }),
    delete: table({ offered: flag, statuses }),
    metrics: table({
      urls: texts,
      headers,
      none: flag,
      "lag-ms": Type.Optional(Type.Integer({ minimum: 0, maximum: 120_000 })),
    }),
    tls: table({ "ca-file": text, "cert-file": text, "key-file": text, insecure: flag }),
    proxy: text,
    pace: table({
      rate: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
      budget: Type.Optional(Type.Integer({ minimum: 1 })),
    }),
  },
  closed,
);
export type ProfileFile = Static<typeof ProfileFile>;

import { KindGuard, type TSchema } from "@sinclair/typebox";

/** A JSON Schema (draft 2020-12), as OpenAPI 3.1 uses it. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/**
 * What the formats of the field registry mean in the words of JSON Schema. They are looser than the formats:
 * control characters, for instance, are refused all the same. Lengths count code points, as the registry does.
 */
const FORMATS: Readonly<Record<string, JsonSchema>> = {
  "customer-name": { minLength: 1, maxLength: 200, pattern: "\\S" },
  "customer-email": { minLength: 3, maxLength: 254, format: "idn-email" },
};

/** The limit of a text that no schema limits: nothing longer fits into a body or an address. */
const TEXT_LENGTH_MAX = 65_536;
const ITEMS_MAX = 500;

/** The same schema without what only TypeBox understands, and with a limit on everything that can grow. */
export function jsonSchema(schema: TSchema): JsonSchema {
  if (KindGuard.IsRef(schema)) return { $ref: `#/components/schemas/${schema.$ref}` };
  if (KindGuard.IsUnion(schema)) {
    const { anyOf } = schema;
    if (anyOf.every(KindGuard.IsLiteral)) return { type: "string", enum: anyOf.map((word) => word.const) };
    return { anyOf: anyOf.map(jsonSchema) };
  }
  if (KindGuard.IsString(schema)) {
    return { type: "string", maxLength: TEXT_LENGTH_MAX, ...FORMATS[schema.format ?? ""] };
  }
  if (KindGuard.IsInteger(schema)) {
    const { minimum = 0, maximum = 2 ** 31 - 1 } = schema;
    return { type: "integer", format: "int32", minimum, maximum };
  }
  if (KindGuard.IsArray(schema)) {
    const { maxItems = ITEMS_MAX, items } = schema;
    return { type: "array", maxItems, items: jsonSchema(items) };
  }
  if (KindGuard.IsObject(schema)) {
    const { required, properties, additionalProperties } = schema;
    return {
      type: "object",
      ...(required === undefined ? {} : { required }),
      properties: mapValues(properties, jsonSchema),
      ...(additionalProperties === undefined ? {} : { additionalProperties }),
    };
  }
  return { type: schema["type"] };
}

export function mapValues<Value, Mapped>(
  record: Readonly<Record<string, Value>>,
  map: (value: Value, key: string) => Mapped,
): Record<string, Mapped> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]));
}

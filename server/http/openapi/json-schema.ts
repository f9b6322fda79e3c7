import { Kind, type TSchema } from "@sinclair/typebox";

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
  const words = literals(schema);
  if (words.length > 0) return { type: "string", enum: words };
  if (schema[Kind] === "Union") return { anyOf: (schema["anyOf"] as TSchema[]).map(jsonSchema) };
  const { type, format, minimum, maximum, maxItems, items, properties, required } = schema;
  switch (type) {
    case "string":
      return { type, maxLength: TEXT_LENGTH_MAX, ...FORMATS[format ?? ""] };
    case "integer":
      return { type, format: "int32", minimum: minimum ?? 0, maximum: maximum ?? 2 ** 31 - 1 };
    case "array":
      return { type, maxItems: maxItems ?? ITEMS_MAX, items: jsonSchema(items) };
    case "object":
      return {
        type,
        ...(required === undefined ? {} : { required }),
        properties: mapValues(properties as Record<string, TSchema>, jsonSchema),
        additionalProperties: false,
      };
    default:
      return { type };
  }
}

function literals(schema: TSchema): unknown[] {
  const options: TSchema[] = schema["anyOf"] ?? [];
  return options.every((option) => option[Kind] === "Literal")
    ? options.map((option) => option["const"])
    : [];
}

export function mapValues<Value, Mapped>(
  record: Readonly<Record<string, Value>>,
  map: (value: Value, key: string) => Mapped,
): Record<string, Mapped> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]));
}

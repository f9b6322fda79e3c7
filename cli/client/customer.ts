/** A customer as the server showed it, and how its members are found whatever their casing. */
import { formatJson, isJsonObject, type Json, JsonNumber, type JsonObject, parseJson } from "./json.ts";
import type { CompleteReply } from "./wire/reply.ts";

export class Customer {
  /** The entity-tag as it came in ETag or in a list; undefined where none came. */
  readonly etag: string | undefined;
  /** The members exactly as the server wrote them: names, order and the digits of numbers. */
  readonly value: JsonObject;
  /** The server's own text of it, where it came alone. */
  readonly text: string;

  constructor(etag: string | undefined, value: JsonObject, text = formatJson(value)) {
    this.etag = etag;
    this.value = value;
    this.text = text;
  }

  /**
   * As a plain object; the fields of the specification under their lower-case names, whatever the casing.
   */
  get data(): CustomerData {
    const members = [...this.value].map(([name, value]) => {
      const known = REGISTRY.find((field) => field === name.toLowerCase());
      return [known ?? name, JSON.parse(formatJson(value))];
    });
    return Object.fromEntries(members);
  }
}

/** A field that was not asked for, or that the credentials may not read, is absent. */
export type CustomerData = {
  id?: string;
  name?: string;
  email?: string;
  status?: string;
  [more: string]: unknown;
};

/** The body of a reply as a customer; undefined where it is not a JSON object. */
export function parseCustomer(text: string, etag: string | undefined): Customer | undefined {
  const value = parseJsonOrUndefined(text);
  return isJsonObject(value) ? new Customer(etag, value, text) : undefined;
}

/**
 * The body of a reply to a write, where it is the customer and not a note about it, such as `{"ok":true}`.
 */
export function shownCustomer({ text, fields }: CompleteReply): Customer | undefined {
  const body = parseCustomer(text, fields.get("etag"));
  return body && REGISTRY.some((field) => memberNamed(body.value, field)) ? body : undefined;
}

export function parseJsonOrUndefined(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/**
 * The member that a field name means: the same name, else the only one that differs by case (a deployment
 * may write `Name`, and registry names match without regard to case).
 */
export function memberNamed(value: JsonObject, field: string): { name: string; value: Json } | undefined {
  const exact = value.get(field);
  if (exact !== undefined) return { name: field, value: exact };
  const lower = field.toLowerCase();
  for (const [name, member] of value) if (name.toLowerCase() === lower) return { name, value: member };
  return undefined;
}

/**
 * The id that a representation shows, where it is that of another customer: a cache or a proxy mixes up
 * replies. Ids are GUIDs (specification 2.1), compared without regard to case, dashes and braces. An id of
 * another form, in the request or the reply, is a name of the deployment's own making, from which nothing
 * follows.
 */
export function idOfAnother(value: JsonObject, id: string): string | undefined {
  const shown = plainText(memberNamed(value, "id")?.value ?? "");
  const [asked, answered] = [id, shown].map((text) => text.toLowerCase().replaceAll(/[-{}]/g, ""));
  return asked !== answered && isGuid(asked) && isGuid(answered) ? shown : undefined;
}

function isGuid(bare = ""): boolean {
  return /^[0-9a-f]{32}$/.test(bare);
}

/** The customer with these fields alone; undefined where one of them is not there. */
export function withFieldsOnly(
  customer: Customer,
  fields: readonly string[] | undefined,
): Customer | undefined {
  if (fields === undefined) return customer;
  const picked = fields.map((field) => memberNamed(customer.value, field));
  return picked.every((member) => member !== undefined)
    ? new Customer(customer.etag, new Map(picked.map(({ name, value }) => [name, value])))
    : undefined;
}

/** The customer without these fields, which only this client wanted to see. */
export function withoutFields(customer: Customer, fields: readonly string[]): Customer {
  const { etag, value } = customer;
  if (fields.length === 0) return customer;
  return new Customer(etag, new Map([...value].filter(([name]) => !fields.includes(name.toLowerCase()))));
}

/** A value as a person or a shell sees it: a string bare, anything else as JSON. */
export function plainText(value: Json): string {
  if (typeof value === "string") return value;
  return value instanceof JsonNumber ? value.source : formatJson(value);
}

/** The fields of the specification (2.2), which match without regard to case; a server may have more. */
export const REGISTRY: readonly string[] = ["id", "name", "email", "status"];

/** Values in the spelling of a server that has shown none of its members. */
export function spelledUnseen(values: JsonObject, casing: "lower" | "pascal"): JsonObject {
  const none: JsonObject = new Map();
  return new Map([...values].map(([field, value]) => [memberName(none, field, casing), value]));
}

/**
 * How this server spells a field: as in its representation, else in the casing of the other members. `NAME`
 * means the registry's field; the spelling of any other field is kept, because only its author knows it.
 */
export function memberName(value: JsonObject, field: string, casing: "lower" | "pascal"): string {
  const member = memberNamed(value, field);
  if (member !== undefined) return member.name;
  const names = [...value.keys()];
  const pascal = names.length > 0 ? names.every((name) => /^[A-Z]/.test(name)) : casing === "pascal";
  const known = REGISTRY.find((name) => name === field.toLowerCase()) ?? field;
  return pascal ? known.charAt(0).toUpperCase() + known.slice(1) : known;
}

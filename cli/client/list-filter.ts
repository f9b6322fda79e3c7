/** Filters of a list. The specification shows no list, and a deployment may ignore a parameter that it does not know. Pure. */
import { type Customer, memberNamed, plainText } from "./customer.ts";
import type { ListQuery } from "./wire/request.ts";

const FILTERS = ["status", "email"] as const;
type Filter = (typeof FILTERS)[number];

/** `shown`: a customer has another value; else it can't be seen which it has. */
export type Unfiltered = { kind: "unfiltered"; field: Filter; shown: boolean };

/** The filters of the query whose fields are not among these. */
export function filtersBeside(query: ListQuery, fields: readonly string[]): readonly Filter[] {
  const named = fields.map((field) => field.toLowerCase());
  return FILTERS.filter((field) => query[field] !== undefined && !named.includes(field));
}

/** Undefined where all of the customers match. Case is left to the server. */
export function unfiltered(query: ListQuery, customers: readonly Customer[]): Unfiltered | undefined {
  for (const field of filtersBeside(query, [])) {
    const values = customers.map(({ value }) => memberNamed(value, field)?.value);
    if (values.includes(undefined)) return { kind: "unfiltered", field, shown: false };
    const wanted = query[field]?.toLowerCase();
    if (!values.every((value = "") => plainText(value).toLowerCase() === wanted))
      return { kind: "unfiltered", field, shown: true };
  }
  return undefined;
}

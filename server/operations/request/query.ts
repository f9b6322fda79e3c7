import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from "../../domain/customer/customer.ts";
import { type CustomerStatus, isStatus, STATUSES } from "../../domain/customer/field-registry.ts";
import { ok, type Result, refuse } from "../../domain/problem.ts";
import { nearest } from "../../domain/text/nearest.ts";

/** Refuses unknown parameters: a mistyped `?field=name` must not pass for a full read. */
export function readQuery(search: string, known: readonly string[]): Result<URLSearchParams> {
  const query = new URLSearchParams(search);
  for (const name of query.keys()) {
    if (known.includes(name)) continue;
    const near = nearest(name, known);
    const shown = name.slice(0, 64).toWellFormed();
    return refuse(
      "unknown-parameter",
      `The query has an unknown parameter \`${shown}\`. ${near === null ? choice(known) : `Did you mean \`${near}\`?`}`,
      { extensions: { parameter: shown, ...(near === null ? {} : { didYouMean: [near] }) } },
    );
  }
  return ok(query);
}

function choice(known: readonly string[]): string {
  return known.length === 0 ? "This address takes none." : `Choose from ${known.join(", ")}.`;
}

/** A parameter that may be given once. @returns its value, or null when it is absent */
export function singleValue(query: URLSearchParams, name: string): Result<string | null> {
  const values = query.getAll(name);
  if (values.length > 1) return invalidParameter(name, "is given more than once; send it once");
  return ok(values[0] ?? null);
}

/** @returns the maximum number of items on a page: 1..500 */
export function parseLimit(text: string | null): Result<number> {
  if (text === null) return ok(PAGE_LIMIT_DEFAULT);
  const limit = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= PAGE_LIMIT_MAX) return ok(limit);
  return invalidParameter("limit", `must be an integer from 1 to ${PAGE_LIMIT_MAX}`);
}

export function parseStatus(text: string | null): Result<CustomerStatus | null> {
  if (text === null || isStatus(text)) return ok(text);
  return invalidParameter("status", `must be one of ${STATUSES.join(", ")}`);
}

export function invalidParameter(name: string, fault: string): Result<never> {
  return refuse("invalid-parameter", `\`${name}\` ${fault}.`, { extensions: { parameter: name } });
}

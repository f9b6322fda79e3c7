import type { QueryCase, Verdict } from "./arbitrary-requests.ts";

export type Method = "GET" | "HEAD" | "PUT" | "PATCH" | "DELETE" | "POST";
export type ModelCustomer = {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly status: string;
  readonly tag: string;
};
/** A caller of the model; `role` is null where the token is none of the service's. */
export type ModelCaller = {
  readonly role: string | null;
  readonly tenant: string;
  readonly read: readonly string[];
  readonly operations: readonly string[];
};

const OPERATION = {
  GET: "get",
  HEAD: "get",
  PUT: "replace",
  PATCH: "patch",
  DELETE: "delete",
  POST: "create",
} as const satisfies Record<Method, string>;
const BODY_REFUSALS: Readonly<Record<number, string>> = {
  400: "malformed-json",
  413: "payload-too-large",
  415: "unsupported-media-type",
  422: "invalid-body",
};
export const STATUS: Readonly<Record<string, number>> = {
  unauthenticated: 401,
  "forbidden-operation": 403,
  "precondition-required": 428,
  "unknown-parameter": 400,
  "invalid-parameter": 400,
  "unknown-field": 400,
  "too-many-fields": 400,
  "empty-fields": 400,
  "forbidden-field": 403,
  "customer-not-found": 404,
  "precondition-failed": 412,
  "malformed-json": 400,
  "payload-too-large": 413,
  "unsupported-media-type": 415,
  "invalid-body": 422,
  "idempotency-key-reused": 422,
};

export type Sent = {
  readonly caller: ModelCaller;
  readonly method: Method;
  readonly ifMatch: readonly string[];
  /** Whether If-None-Match names the current tag. */
  readonly noneMatches: boolean;
  readonly query: QueryCase;
  /** What the caller's tenant has under the id; undefined where the route has no id. */
  readonly customer: ModelCustomer | null | undefined;
  readonly verdict: Verdict;
};

const WRITES: readonly Method[] = ["PUT", "PATCH", "DELETE"];

/** Checks 2 to 6. @returns the code of the refusal, or null */
export function earlyRefusal({ caller, method, ifMatch, query }: Sent): string | null {
  if (caller.role === null) return "unauthenticated";
  if (!caller.operations.includes(OPERATION[method])) return "forbidden-operation";
  if (WRITES.includes(method) && tokenOf(ifMatch) === "") return "precondition-required";
  if (typeof query.fields === "string") return query.fields;
  if (query.fields?.some((field) => !caller.read.includes(field))) return "forbidden-field";
  return null;
}

/** Checks 7 to 9: the specification, 4.2 and 4.3. @returns the code of the refusal, or null: applied */
export function lateRefusal({ method, ifMatch, noneMatches, customer, verdict }: Sent): string | null {
  const token = tokenOf(ifMatch);
  if (customer === null) return "customer-not-found";
  if (customer !== undefined && token !== "" && token !== customer.tag) return "precondition-failed";
  if (WRITES.includes(method) && noneMatches) return "precondition-failed";
  if (typeof verdict === "number") return BODY_REFUSALS[verdict] ?? "?";
  return null;
}

function tokenOf(ifMatch: readonly string[]): string {
  return ifMatch.join(", ").replace(/^[ \t]+|[ \t]+$/g, "");
}

/**
 * The body of a customer for this caller: the keys that were asked for, or the default ones, and no others.
 */
export function projected(
  customer: ModelCustomer,
  { read }: ModelCaller,
  { fields }: QueryCase,
): Record<string, string> {
  const names = Array.isArray(fields)
    ? fields
    : ["id", "name", "email"].filter((name) => read.includes(name));
  return Object.fromEntries(names.map((name) => [name, customer[name as keyof ModelCustomer]]));
}

/** All that the service should hold: each tenant's customers in the order of creation. */
export class CustomerModel {
  readonly #tenants = new Map<string, Map<string, ModelCustomer>>();
  /** Every tag that was ever answered, oldest first. */
  readonly tags: string[] = [];
  /** Every id that some tenant has or had. */
  readonly ids = new Set<string>();

  of(tenant: string): ReadonlyMap<string, ModelCustomer> {
    return this.#tenant(tenant);
  }

  put(tenant: string, customer: ModelCustomer): void {
    this.#tenant(tenant).set(customer.id, customer);
    this.tags.push(customer.tag);
    this.ids.add(customer.id);
  }

  remove(tenant: string, id: string): void {
    this.#tenant(tenant).delete(id);
  }

  #tenant(tenant: string): Map<string, ModelCustomer> {
    let customers = this.#tenants.get(tenant);
    if (customers === undefined) {
      customers = new Map();
      this.#tenants.set(tenant, customers);
    }
    return customers;
  }
}

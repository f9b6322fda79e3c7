import type { CustomerFields } from "./customer/customer.ts";
import type { Projection } from "./projection.ts";

/** Those of these fields that the projection shows. */
export function pick(fields: CustomerFields, projection: Projection): CustomerFields {
  const picked: CustomerFields = {};
  for (const name of projection.fields) {
    const value = fields[name];
    if (value !== undefined) picked[name] = value;
  }
  return picked;
}

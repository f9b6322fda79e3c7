import type { WriteOrigin } from "../../domain/audit/audit-entry.ts";

/** The tenant of the admin token and of the samples that the first start makes. */
export const FIRST_TENANT = "default";

/** Who makes the samples: the service itself, without a request. */
export const FIRST_START: WriteOrigin = {
  client: "first-start",
  tokenPrefix: "",
  requestId: "",
  operation: "create",
  isWithoutIfMatch: false,
  keepsValues: false,
};

/** Customers to try things on. */
export const SAMPLES = [
  { name: "Ada Lovelace", email: "ada@example.com", status: "active" },
  { name: "Grace Hopper", email: "grace@example.com", status: "active" },
  { name: "Zoë Ångström", email: "zoe@example.com", status: "suspended" },
] as const;

/** Whose the admin token of the first start is, and the samples. */
export const FIRST_TENANT = "default";

/** Customers to try things on. */
export const SAMPLES = [
  { name: "Ada Lovelace", email: "ada@example.com", status: "active" },
  { name: "Grace Hopper", email: "grace@example.com", status: "active" },
  { name: "Zoë Ångström", email: "zoe@example.com", status: "suspended" },
] as const;

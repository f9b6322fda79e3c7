import type { FieldName } from "./field-registry.ts";

/** What a role may be allowed to do. `metrics` stands alone, since its tokens belong to no tenant. */
export const OPERATIONS = ["get", "list", "create", "replace", "patch", "delete", "metrics"] as const;
export type Operation = (typeof OPERATIONS)[number];

export type Rights = {
  readonly read: ReadonlySet<FieldName>;
  readonly operations: ReadonlySet<Operation>;
};

export const NO_RIGHTS: Rights = { read: new Set(), operations: new Set() };

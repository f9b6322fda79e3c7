import { FIELD_NAMES, type FieldName } from "../customer/field-registry.ts";
import { type Scope, storedScope } from "./scope.ts";

/** What a role may be allowed to do. `metrics` stands alone, since its tokens belong to no tenant. */
export const OPERATIONS = [
  "get",
  "list",
  "create",
  "replace",
  "patch",
  "delete",
  "history",
  "metrics",
] as const;
export type Operation = (typeof OPERATIONS)[number];

export type Rights = {
  readonly read: ReadonlySet<FieldName>;
  readonly operations: ReadonlySet<Operation>;
};

export const NO_RIGHTS: Rights = { read: new Set(), operations: new Set() };

/** Of these names, in the order of their registry, so that equal scopes are the same text. */
export function scopeOf(
  fields: readonly FieldName[] | null,
  operations: readonly Operation[] | null,
): Scope | undefined {
  return storedScope(
    fields === null ? null : FIELD_NAMES.filter((name) => fields.includes(name)).join(),
    operations === null ? null : OPERATIONS.filter((name) => operations.includes(name)).join(),
  );
}

/**
 * Kept with the rights of the role, so that a token's rights are the same object until the policy is replaced:
 * what is parsed under them is kept with them. A role has at most as many as there are subsets of its rights.
 */
const narrowed = new WeakMap<Rights, Map<string, Rights>>();

/** What both the role and the scope allow. */
export function narrow(rights: Rights, scope: Scope | undefined): Rights {
  if (scope === undefined) return rights;
  const { fields, operations } = scope;
  const known = narrowed.get(rights) ?? new Map<string, Rights>();
  const key = `${fields} ${operations}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const both = { read: within(rights.read, fields), operations: within(rights.operations, operations) };
  narrowed.set(rights, known.set(key, both));
  return both;
}

function within<Name extends string>(held: ReadonlySet<Name>, names: string | null): ReadonlySet<Name> {
  return names === null ? held : held.intersection(new Set<string>(names.split(",")));
}

/**
 * What one token may do at most, whatever its role may: names of fields and of operations,
 * separated by commas, as a store keeps them. Null does not limit. A name that this version does not know allows nothing.
 */
export type Scope = { readonly fields: string | null; readonly operations: string | null };

/** @returns the scope of these two columns */
export function storedScope(fields: string | null, operations: string | null): Scope | undefined {
  return fields === null && operations === null ? undefined : { fields, operations };
}

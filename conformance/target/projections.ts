/** Every set of two fields or more, in orders of all kinds. */
import type { Field } from "./profile-file.ts";

export const COMBINATIONS: readonly (readonly Field[])[] = [
  ["id", "name"],
  ["name", "email"],
  ["email", "status"],
  ["status", "id"],
  ["name", "status"],
  ["id", "email"],
  ["id", "name", "email"],
  ["status", "email", "name"],
  ["name", "status", "id"],
  ["email", "id", "status"],
  ["id", "name", "email", "status"],
  ["status", "name", "id", "email"],
];

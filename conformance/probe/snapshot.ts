/** A customer as a read shows it, and how two of them compare. */
import type { Seen } from "../http/wire.ts";
import type { State } from "../report/schema.ts";
import { FIELDS, type Field } from "../target/profile-file.ts";
import type { Values } from "../target/values.ts";

export const METHODS = ["PUT", "PATCH", "DELETE"] as const;
export type Method = (typeof METHODS)[number];

export type Snapshot = {
  readonly seen: Seen;
  readonly tag: string;
  readonly fields: Partial<Record<Field, unknown>>;
};

export function stateOf(seen: Seen): State {
  return {
    status: seen.status,
    tag: seen.tag ?? null,
    fields: seen.object === undefined ? null : { ...seen.object },
  };
}

/** No probe ever writes Status, and jobs of the deployment may: only a change that shows a deletion counts. */
export function sameFields(a: Snapshot, b: Snapshot): boolean {
  return (
    UPDATED_FIELDS.every((field) => Bun.deepEquals(a.fields[field], b.fields[field])) &&
    isDeleted(a) === isDeleted(b)
  );
}

const UPDATED_FIELDS = ["id", "name", "email"] as const;

function isDeleted({ fields }: Snapshot): boolean {
  return /delet|remov|archiv/i.test(String(fields.status ?? ""));
}

/** What differs between two reads, in words. */
export function difference(a: Snapshot, b: Snapshot): string {
  const parts = FIELDS.filter((field) => !Bun.deepEquals(a.fields[field], b.fields[field])).map((field) =>
    change(field, a.fields[field], b.fields[field]),
  );
  if (a.tag !== b.tag) parts.push(`the ETag ${a.tag} became ${b.tag}`);
  return parts.join("; ") || "nothing";
}

/** One change of a member, which a read need not show. */
export function change(name: string, from: unknown, to: unknown): string {
  if (from === undefined) return `${name}, not shown before, is ${JSON.stringify(to)}`;
  if (to === undefined) return `${name} ${JSON.stringify(from)} is no longer shown`;
  return `${name} ${JSON.stringify(from)} became ${JSON.stringify(to)}`;
}

/** The fields that a PUT or PATCH writes. */
export const WRITABLE = ["name", "email"] as const;

/** What a PUT sends to leave name and email as they are. */
export const storedValues = ({ fields }: Snapshot): Values => ({
  name: String(fields.name),
  email: String(fields.email),
});

/** The first field that was written and is not shown. */
export const notShown = (fields: Snapshot["fields"], written: Partial<Values>) =>
  WRITABLE.find((field) => written[field] !== undefined && !shows(fields[field], String(written[field])));

/** Whether a value reads back as written. Deployments may trim it or fold its case: the specification fixes the type alone. */
export function shows(read: unknown, written: string): boolean {
  return typeof read === "string" && read.trim().toLowerCase() === written.trim().toLowerCase();
}

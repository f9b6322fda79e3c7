/** JSON member names of a deployment: casing is open, so each is found in a body and never assumed. */
import { percentDecoded } from "./percent-decoded.ts";
import { FIELDS, type Field } from "./profile-file.ts";

export type Names = Readonly<Record<Field, string>>;

/** `created_at`, `CreatedAt` and `created-at` are one name in different casings. */
export function plain(name: string): string {
  return name.toLowerCase().replace(/[_\-\s]/g, "");
}

/** The members of a body that stand for registry fields; what is absent is guessed in the casing of the others. */
export function namesIn(object: Readonly<Record<string, unknown>>, given: Partial<Names>): Names {
  const members = Object.keys(object);
  const found = new Map<Field, string>();
  for (const field of FIELDS) {
    const member =
      given[field] ?? members.find((name) => name === field) ?? members.find((name) => plain(name) === field);
    if (member !== undefined) found.set(field, member);
  }
  const like = [...found.values()][0] ?? "name";
  const guess = (field: Field): string =>
    like === like.toUpperCase()
      ? field.toUpperCase()
      : /^[A-Z]/.test(like)
        ? field.charAt(0).toUpperCase() + field.slice(1)
        : field;
  return Object.fromEntries(FIELDS.map((field) => [field, found.get(field) ?? guess(field)])) as Names;
}

const CASINGS: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name.charAt(0).toLowerCase() + name.slice(1),
  (name) => name.charAt(0).toUpperCase() + name.slice(1),
  (name) => name.toUpperCase(),
];

/** The names as they are, then in the casings that frameworks know: bodies may want another than answers have. */
export const inAllCasings = (names: Names): Names[] =>
  CASINGS.map((casing) => ({
    id: casing(names.id),
    name: casing(names.name),
    email: casing(names.email),
    status: casing(names.status),
  }));

/** The registry fields of a body by their registry names; others are left out. */
export function registryFields(
  object: Readonly<Record<string, unknown>>,
  names: Names,
): Partial<Record<Field, unknown>> {
  return Object.fromEntries(
    FIELDS.filter((field) => Object.hasOwn(object, names[field])).map((field) => [
      field,
      object[names[field]],
    ]),
  );
}

/** A GUID without what its textual forms add to it: `urn:uuid:`, braces, dashes, case. */
export const bareGuid = (id: unknown): string =>
  String(id)
    .toLowerCase()
    .replace(/^urn:uuid:|[{}()-]/g, "");

/** A GUID in its usual form, with dashes and in small letters; undefined where it is none. */
export function usualGuid(id: string): string | undefined {
  const parts = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/.exec(bareGuid(id));
  return parts === null || !/^[0-9a-f]+$/.test(bareGuid(id)) ? undefined : parts.slice(1).join("-");
}

/**
 * The id of a customer in the answer to a create: in the body under any casing, else the end of Location. Of two textual
 * forms of one GUID the one in Location is that of the address.
 */
export function idInAnswer(
  object: Readonly<Record<string, unknown>> | undefined,
  text: string,
  location: string | undefined,
): string | undefined {
  const inside = (value: unknown, depth: number): string | undefined => {
    if (typeof value !== "object" || value === null || depth > 2) return undefined;
    const entries = Object.entries(value);
    const own = entries.find(([name]) => /^(customer)?(id|uuid|guid)$/.test(plain(name)))?.[1];
    if (typeof own === "string" || typeof own === "number") return String(own);
    for (const [, child] of entries) {
      const found = inside(child, depth + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const inBody = inside(object, 0);
  const end = location?.split(/[?#]/)[0]?.replace(/\/+$/, "").split("/").at(-1);
  const last = end === undefined || end === "" ? undefined : percentDecoded(end);
  if (last !== undefined && (inBody === undefined || bareGuid(last) === bareGuid(inBody))) return last;
  if (inBody !== undefined) return inBody;
  return /^"?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"?\s*$/.exec(text)?.[1];
}

/** The id in the object of a JSON text that holds this email, wherever in it. */
export function idBeside(text: string, email: string): string | undefined {
  const search = (value: unknown): string | undefined => {
    if (typeof value !== "object" || value === null) return undefined;
    for (const child of Object.values(value)) {
      const found = search(child);
      if (found !== undefined) return found;
    }
    if (!Object.values(value).includes(email)) return undefined;
    const id = Object.entries(value).find(([name]) => plain(name) === "id")?.[1];
    return typeof id === "string" || typeof id === "number" ? String(id) : undefined;
  };
  try {
    return search(JSON.parse(text));
  } catch {
    return undefined;
  }
}

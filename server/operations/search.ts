import { PAGE_LIMIT_DEFAULT, SEARCH_BODY } from "../domain/customer/customer.ts";
import { foldEmail } from "../domain/customer/email.ts";
import { FIELD_NAMES, type FieldName } from "../domain/customer/field-registry.ts";
import { trimBlanks } from "../domain/precondition.ts";
import { flatMap, ok, type Result } from "../domain/problem.ts";
import type { Authority, Call } from "./call.ts";
import { JSON_TYPES, projectionOfLists, requireOperation, requireReadable } from "./checks.ts";
import { type CustomerPage, type PageStore, readPage } from "./page.ts";
import { BodySchema } from "./request/body-schema.ts";
import { invalidParameter, readQuery } from "./request/query.ts";

const searchBody = new BodySchema(SEARCH_BODY);

/**
 * POST /customers/search: like list, with the filter in the
 * body. Personal data stays out of URLs and their logs.
 */
export async function search(store: PageStore, call: Call): Promise<Result<CustomerPage>> {
  const early = checkQuery(call, call.authority);
  if (!early.ok) return early;
  const json = await call.readJson(JSON_TYPES);
  const authority = await call.lookAgain();
  if (!authority.ok) return authority;
  const queried = checkQuery(call, authority.value);
  if (!queried.ok) return queried;
  const body = flatMap(json, searchBody.read);
  if (!body.ok) {
    // Check 6 comes before check 9 for the fields that a refused body names, too.
    const readable = json.ok ? requireReadable(namedFields(json.value), authority.value.rights) : json;
    return readable.ok ? body : readable;
  }
  const { fields, limit, status, email, cursor } = body.value;
  if (queried.value.length > 0 && fields !== undefined) {
    return invalidParameter("fields", "is in the query and in the body; send it once");
  }
  return readPage(store, authority.value, {
    // An empty array is an empty list, as `fields=` is.
    fields: fields === undefined ? queried.value : [[fields].flat().join(",")],
    limit: limit ?? PAGE_LIMIT_DEFAULT,
    status: status ?? null,
    email: email === undefined ? null : foldEmail(email),
    cursor: cursor ?? null,
  });
}

/** The fields that a body of any shape filters by or asks for. */
function namedFields(body: unknown): FieldName[] {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return [];
  const asked = "fields" in body ? [body.fields].flat().filter((text) => typeof text === "string") : [];
  const names = asked.flatMap((list) => list.split(",")).map((name) => trimBlanks(name).toLowerCase());
  return FIELD_NAMES.filter((name) => Object.hasOwn(body, name) || names.includes(name));
}

/** Checks 3, 5 and 6 of what precedes the body. @returns the values of `fields` in the query */
function checkQuery(call: Call, authority: Authority): Result<readonly string[]> {
  const permitted = requireOperation(authority, "list");
  if (!permitted.ok) return permitted;
  const query = readQuery(call.search, ["fields"]);
  if (!query.ok) return query;
  const lists = query.value.getAll("fields");
  const projection = projectionOfLists(lists, authority.rights);
  if (!projection.ok) return projection;
  return ok(lists);
}

/** GET: which fields (4.1), then the customer, then the two together. */

import { headerLines, type Reply, type Request } from "./http-socket.ts";
import type { Caller, Customer, Seams } from "./seams.ts";
import { trimBlanks, turn } from "./seams.ts";
import type { Deployment, Shown } from "./sound-options.ts";

/** What reading needs of the service around it. */
type Shelf = {
  deployment: Deployment;
  seams: Seams;
  refuse: (status: number, code: string) => Reply;
  find: (id: string, caller: Caller, request: Request) => Customer | Reply;
};

function selection(
  { deployment, seams, refuse }: Shelf,
  request: Request,
  caller: Caller,
): Reply | { fields: Shown } {
  const names = seams.fieldNames(request.query);
  if (names === undefined) return { fields: "default" };
  if (names.length === 1 && names[0] === "") {
    return deployment.fieldsEmpty === 400 ? refuse(400, "empty-fields") : { fields: "default" };
  }
  if (names.length > deployment.fieldsMax) return refuse(400, "too-many-fields");
  const fields = new Set<Exclude<Shown, "default">[number]>();
  for (const name of names) {
    const field = seams.known(name, names);
    if (field === undefined) return refuse(400, "unknown-field");
    if (fields.has(field) && deployment.fieldsRepeated === 400) return refuse(400, "repeated-field");
    fields.add(field);
  }
  for (const name of names) {
    const field = seams.known(name, names);
    if (field !== undefined && !seams.mayRead(caller, field, name, request)) {
      return refuse(deployment.forbiddenStatus, "forbidden-field");
    }
  }
  return { fields: [...fields] };
}

export function represent(
  shelf: Shelf,
  customer: Customer,
  fields: Shown,
  caller: Caller,
  request: Request,
): Reply {
  const { deployment, seams } = shelf;
  const defaults = [
    ...deployment.defaultFields,
    ...(deployment.defaultShowsCreatedAt ? (["createdAt"] as const) : []),
  ].filter((field) => seams.mayRead(caller, field, "", request));
  const tag = seams.shownTag(customer, fields, caller, request);
  return {
    status: 200,
    headers: [
      ...etag(deployment, tag),
      ["Content-Type", "application/json; charset=utf-8"],
      // 4.1.8: a cache must key on the caller too. Nothing forbids a proxy to transform.
      ["Cache-Control", deployment.cacheControl],
      ["Vary", deployment.credential.header],
    ],
    body: JSON.stringify(seams.shape(customer, fields === "default" ? defaults : fields, caller, request)),
  };
}

export function etag(deployment: Deployment, tag: string | undefined): [string, string][] {
  return tag === undefined ? [] : [[deployment.etagHeaderName, tag]];
}

export async function read(shelf: Shelf, request: Request, caller: Caller, id: string): Promise<Reply> {
  await turn();
  let fields: Shown = "default";
  let customer: Customer | undefined;
  for (const check of shelf.seams.readOrder(request)) {
    if (check === "fields") {
      const selected = selection(shelf, request, caller);
      if ("status" in selected) return selected;
      fields = selected.fields;
    } else {
      const found = shelf.find(id, caller, request);
      if ("headers" in found) return found;
      customer = found;
    }
  }
  if (customer === undefined) throw new Error("readOrder must look the customer up");
  const reply = represent(shelf, customer, fields, caller, request);
  if (!shelf.deployment.conditionalReads) return reply;
  const wanted = tagsIn(request, "if-match").filter((tag) => tag !== "");
  if (wanted.length > 0 && !wanted.includes("*") && !wanted.includes(customer.tag))
    return shelf.refuse(412, "precondition-failed");
  const held = tagsIn(request, "if-none-match");
  const confirmed = held.some((tag) => tag === "*" || tag.replace(/^W\//, "") === customer.tag);
  return confirmed ? { status: 304, headers: etag(shelf.deployment, customer.tag) } : reply;
}

/** Members of a list; a comma inside quotes is part of an entity-tag (RFC 9110 8.8.3). */
const tagsIn = (request: Request, name: string): string[] =>
  [
    ...headerLines(request, name)
      .join(",")
      .matchAll(/(?:"[^"]*"|[^,])+/g),
  ].map(([member]) => trimBlanks(member));

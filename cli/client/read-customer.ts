/** Readings of one customer: as it is now, or why not. */
import { type Customer, idOfAnother, memberNamed, parseCustomer, withoutFields } from "./customer.ts";
import { type ReadRefusal, refusalOf } from "./refusal.ts";
import type { Deadline } from "./wire/deadline.ts";
import { readWithRetry } from "./wire/read-retry.ts";
import { type Reply, requestIdOf, type Transport } from "./wire/reply.ts";
import { readCustomer } from "./wire/request.ts";

export type Ports = { transport: Transport; deadline: Deadline };

export type Reading = { kind: "read"; customer: Customer; requestId: string | undefined } | ReadRefusal;
type NotModified = { kind: "not-modified" };

const NO_SUCH_FIELD = ["no-such-field"];

/** undefined: the server's default set. */
type Fields = readonly string[] | undefined;

export type ReadOptions = {
  fields?: Fields;
  /** See readWithRetry. */
  persistent?: boolean;
};

export function readCurrent(
  { transport, deadline }: Ports,
  id: string,
  { fields, persistent }: ReadOptions = {},
): Promise<Reading> {
  return proven<never>(fields, async (asked) =>
    readingOf(await readWithRetry(transport, readCustomer(id, asked), deadline, persistent), id),
  );
}

/** @param ifNoneMatch the tags that are known already; undefined for an unconditional reading. */
export function readUnless(
  { transport, deadline }: Ports,
  id: string,
  ifNoneMatch: string | undefined,
  fields: Fields,
): Promise<Reading | NotModified> {
  return proven<NotModified>(fields, async (asked) => {
    const reply = await readWithRetry(transport, readCustomer(id, asked, ifNoneMatch), deadline);
    const unmodified = reply.kind === "complete" && reply.status === 304 && ifNoneMatch !== undefined;
    return unmodified ? { kind: "not-modified" } : readingOf(reply, id);
  });
}

/**
 * A reading is believed where it shows the id: another service, or a page on the way, may answer with a JSON
 * object too. So the id is asked for, and left out again where nobody asked for it. Credentials that may not
 * read the id do without this proof. A 404 is believed where a customer service refuses an unknown field before
 * it looks for the customer (specification 4.1, rule 5): under a wrong base URL everything is 404.
 */
async function proven<Other extends NotModified>(
  fields: Fields,
  read: (fields: Fields) => Promise<Reading | Other>,
): Promise<Reading | Other> {
  const asked = fields?.some(isId) === false ? ["id", ...fields] : fields;
  const reading = await read(asked);
  if (isHidden(reading) && asked !== fields) return read(fields);
  if (reading.kind === "not-found") {
    const probe = await read(NO_SUCH_FIELD);
    if (isHidden(probe)) return reading;
    return probe.kind === "not-found" ? { ...reading, kind: "not-a-service" } : probe;
  }
  if (reading.kind !== "read") return reading;
  if (memberNamed(reading.customer.value, "id") === undefined) {
    // The default set of a deployment need not have it (specification 4.1).
    const proof = asked === undefined ? await read(["id"]) : reading;
    if (proof.kind === "read" && memberNamed(proof.customer.value, "id") === undefined)
      return { kind: "mistaken", shown: undefined };
    return proof.kind === "read" || isHidden(proof) ? reading : proof;
  }
  return asked === fields ? reading : { ...reading, customer: withoutFields(reading.customer, ["id"]) };
}

/** By which status a field is refused that the caller may not read is left open (specification 7, rule 6). */
function isHidden({ kind }: { kind: string }): boolean {
  return kind === "forbidden" || kind === "invalid";
}

function isId(name: string): boolean {
  return name.toLowerCase() === "id";
}

function readingOf(reply: Reply, id: string): Reading {
  const customer =
    reply.kind === "complete" && reply.status === 200
      ? parseCustomer(reply.text, reply.fields.get("etag"))
      : undefined;
  if (customer === undefined) return refusalOf(reply, "reading");
  // The values of another customer would be written over those of the one that was meant.
  const shown = idOfAnother(customer.value, id);
  return shown === undefined
    ? { kind: "read", customer, requestId: requestIdOf(reply) }
    : { kind: "mistaken", shown };
}

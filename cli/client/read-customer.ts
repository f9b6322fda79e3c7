/** Readings of one customer: as it is now, or why not. */
import { type Customer, idOfAnother, parseCustomer } from "./customer.ts";
import { type ReadRefusal, refusalOf } from "./refusal.ts";
import type { Deadline } from "./wire/deadline.ts";
import { readWithRetry } from "./wire/read-retry.ts";
import { type Reply, requestIdOf, type Transport } from "./wire/reply.ts";
import { readCustomer } from "./wire/request.ts";

export type Ports = { transport: Transport; deadline: Deadline };

export type Reading = { kind: "read"; customer: Customer; requestId: string | undefined } | ReadRefusal;

export type ReadOptions = {
  /** undefined: the server's default set. */
  fields?: readonly string[] | undefined;
  /** See readWithRetry. */
  persistent?: boolean;
};

export async function readCurrent(
  { transport, deadline }: Ports,
  id: string,
  { fields, persistent = false }: ReadOptions = {},
): Promise<Reading> {
  const request = readCustomer(id, fields);
  return readingOf(await readWithRetry(transport, request, deadline, persistent), id);
}

/** @param ifNoneMatch the tags that are known already; undefined for an unconditional reading. */
export async function readUnless(
  { transport, deadline }: Ports,
  id: string,
  ifNoneMatch: string | undefined,
  fields: readonly string[] | undefined,
): Promise<Reading | { kind: "not-modified" }> {
  const reply = await readWithRetry(transport, readCustomer(id, fields, ifNoneMatch), deadline);
  const unmodified = reply.kind === "complete" && reply.status === 304 && ifNoneMatch !== undefined;
  return unmodified ? { kind: "not-modified" } : readingOf(reply, id);
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

/**
 * Customers with every field that these credentials may read. What a server shows when nothing is named is
 * its own choice (specification 4.1, rule 3): ours leaves out status. An export without it would lose data,
 * and an editor could not change it. What is not in the registry can't be named at all, so neither reading
 * is enough.
 */

import { Customer, memberNamed, REGISTRY } from "./customer.ts";
import type { JsonObject } from "./json.ts";
import { eachPage } from "./pages.ts";
import { type Ports, type Reading, readCurrent } from "./read-customer.ts";
import type { ListQuery } from "./wire/request.ts";

/**
 * Both readings must be of one version; under constant writes the last reading of the default set is given.
 */
const READINGS_MAX = 5;

/** The default set, with what is missing of the registry after it. @param persistent see readWithRetry. */
export async function readWhole(ports: Ports, id: string, persistent = false): Promise<Reading> {
  for (let round = 1; ; round += 1) {
    const reading = await readCurrent(ports, id, { persistent });
    if (reading.kind !== "read") return reading;
    const { customer } = reading;
    const more: Customer[] = [];
    await accepted(missingFields(customer.value), async (fields) => {
      const rest = await readCurrent(ports, id, { fields, persistent });
      if (rest.kind !== "read") return false;
      more.push(rest.customer);
      return true;
    });
    if (more.every(({ etag }) => etag === customer.etag)) {
      if (more.length === 0) return reading;
      const members = [customer, ...more].flatMap(({ value }) => [...value]);
      return { ...reading, customer: new Customer(customer.etag, new Map(members)) };
    }
    if (round === READINGS_MAX) return reading;
  }
}

type ListFields = {
  /** To be asked for; undefined where the default set is to be taken. */
  fields: readonly string[] | undefined;
  /** Fields that are readable and yet not to be had in one list with what the default set shows. */
  leftOut: readonly string[];
};

/** The fields to ask a list for, so that nothing readable is missing. */
export async function wholeFields(ports: () => Ports, query: ListQuery): Promise<ListFields> {
  const isReadable = async (fields: readonly string[]) =>
    (await firstOf(ports, { ...query, fields })) !== undefined;
  const first = await firstOf(ports, query);
  if (first === undefined) return { fields: undefined, leftOut: [] };
  const shown = [...first.value.keys()];
  const missing = missingFields(first.value);
  const more = await accepted(missing, (names) => isReadable([...shown, ...names]));
  if (more.length > 0) return { fields: [...shown, ...more], leftOut: [] };
  const inRegistry = shown.every((name) => REGISTRY.includes(name.toLowerCase()));
  return { fields: undefined, leftOut: inRegistry ? [] : await accepted(missing, isReadable) };
}

async function firstOf(ports: () => Ports, query: ListQuery): Promise<Customer | undefined> {
  for await (const page of eachPage(ports, { ...query, limit: 1 })) {
    return page.kind === "page" ? page.items[0] : undefined;
  }
  return undefined;
}

function missingFields(value: JsonObject): string[] {
  return REGISTRY.filter((field) => memberNamed(value, field) === undefined);
}

/**
 * All of the names, else those that are accepted one by one: a role may read one of them and not the other.
 */
async function accepted(
  names: readonly string[],
  isAccepted: (names: readonly string[]) => Promise<boolean>,
): Promise<readonly string[]> {
  if (names.length === 0 || (await isAccepted(names))) return names;
  if (names.length === 1) return [];
  const single: string[] = [];
  for (const name of names) if (await isAccepted([name])) single.push(name);
  return single;
}

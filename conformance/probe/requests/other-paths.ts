/**
 * The address of a customer, spelled otherwise. Whether a router takes it for the same is open (4.1 shows one spelling
 * alone), and so is the status: but what a caller may not see must not come there either.
 */

import type { Customer } from "../../fixtures/ground.ts";
import type { Attempt } from "../attempt.ts";
import { sameFields } from "../snapshot.ts";

const COLLECTION = "/customers/";

/** A short run tries the two that frameworks take for the same most often. */
export function otherPathsOf(t: Attempt, customer: Customer = t.kit.main): Customer[] {
  const all = otherPaths(customer);
  return t.leavesOut("all but two other spellings of the address") ? all.slice(0, 2) : all;
}

/** A router that decodes and folds takes more; each is carried out by the same code. */
const TAKEN_MAX = 3;

/** The first of the other spellings that lead to a customer: a read at each shows the main customer. */
export async function takenPaths(t: Attempt, customer = t.kit.main): Promise<Customer[]> {
  const places = await takenPlaces(t);
  return otherPaths(customer).filter((_, place) => places.includes(place));
}

/** Where they stand in the list of `otherPaths`. */
export async function takenPlaces(t: Attempt): Promise<readonly number[]> {
  const tried = otherPathsOf(t);
  const { deployment, main } = t.kit;
  return await deployment.spellings(async () => {
    const now = await t.state(main, "read before");
    const places: number[] = [];
    for (const [place, to] of tried.entries()) {
      const seen = await t.get(to, { query: deployment.stateQuery, purpose: "is it the same customer" });
      const shown = t.snapshotIn(seen);
      if (shown !== undefined && sameFields(now, shown)) places.push(place);
    }
    return places.slice(0, TAKEN_MAX);
  });
}

export function otherPaths(customer: Customer): Customer[] {
  const at = customer.url.lastIndexOf("/") + 1;
  const base = customer.url.slice(0, at);
  const root = base.slice(0, -COLLECTION.length);
  const id = customer.url.slice(at);
  const first = `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`;
  const paths = [
    `${id}/`,
    id.toUpperCase(),
    `/${id}`,
    first,
    id.replaceAll("-", ""),
    `%7B${id}%7D`,
    `${id};v=1`,
    `${id}.json`,
    `${id}%20`,
  ].filter((path) => path !== id);
  const urls = [
    ...paths.map((path) => base + path),
    ...["/Customers/", "//customers/"].map((path) => root + path + id),
    `${root}/customers(${id})`,
  ];
  return [...new Set(urls)].map((url) => ({ ...customer, url }));
}

/** The last segments of an address, as a finding shows them. */
export function pathEnd({ url }: Customer): string {
  return url.slice(url.toLowerCase().lastIndexOf("/customers"));
}

const LISTS = ["", "?limit=200", "?fields=id,name,email,status"];

/** The specification shows no list of customers. Where there is one, it is no way past the policy. */
export const lists = ({ kit: { main, profile } }: Attempt): Customer[] =>
  LISTS.map((query) => ({ ...main, url: `${profile.baseUrl}${COLLECTION.slice(0, -1)}${query}` }));

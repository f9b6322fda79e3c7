import { changedValues } from "../domain/audit/kept-values.ts";
import { parseCustomerId } from "../domain/customer-id.ts";
import { foldEmail } from "../domain/email.ts";
import { VALUES_PAGE } from "./person-store.ts";
import type { Storage } from "./storage.ts";

/** A customer that may be the person who was asked for. */
export type FoundCustomer = {
  readonly tenant: string;
  readonly id: string;
  /** `deleted`: the audit trail has its rows. `erased`: so was it, and nothing of it is left but those rows. */
  readonly state: "stored" | "deleted" | "erased";
  /** `earlier-email`: not its email now, but one that the audit trail keeps of it. */
  readonly foundBy: "id" | "email" | "earlier-email";
  /** Beside how many rows of the audit trail values of it are kept. */
  readonly values: number;
  readonly keptReplies: number;
};

type Stores = Pick<Storage, "persons" | "audit">;

/**
 * A customer whose email was another one once may be someone else, so an operator has to name its id.
 *
 * @returns whether an export and an erasure take it
 */
export function isMeant({ state, foundBy }: FoundCustomer): boolean {
  return foundBy !== "earlier-email" || state !== "stored";
}

/**
 * Looks in each tenant for the customers with an email, or with an id. Values that the audit trail keeps are read
 * one by one, since they have no index.
 *
 * @param who an email, in any case, or the id of a customer
 */
export async function findPerson(
  stores: Stores,
  tenants: readonly string[],
  who: string,
): Promise<FoundCustomer[]> {
  const id = parseCustomerId(who);
  const found: FoundCustomer[] = [];
  for (const tenant of tenants) {
    if (id !== null) found.push(...(await look(stores, tenant, id, "id")));
    else found.push(...(await findByEmail(stores, tenant, foldEmail(who))));
  }
  return found;
}

async function findByEmail(stores: Stores, tenant: string, folded: string): Promise<FoundCustomer[]> {
  const { persons } = stores;
  const now = await persons.withEmail(tenant, folded);
  const found: FoundCustomer[] = [];
  for (const id of now) found.push(...(await look(stores, tenant, id, "email")));
  const earlier = (await hadEmail(stores, tenant, folded)).filter((id) => !now.includes(id));
  for (const id of earlier) found.push(...(await look(stores, tenant, id, "earlier-email")));
  return found;
}

async function hadEmail({ persons }: Stores, tenant: string, folded: string): Promise<string[]> {
  const ids = new Set<string>();
  for (let after: string | null = null; ; ) {
    const page = await persons.values(tenant, after);
    for (const { customerId, content } of page) {
      const { email } = changedValues({ salt: "", content });
      const isOne = [email?.before, email?.after].some(
        (value) => value != null && foldEmail(value) === folded,
      );
      if (isOne) ids.add(customerId);
    }
    if (page.length < VALUES_PAGE) return [...ids];
    after = page.at(-1)?.position ?? null;
  }
}

/** @returns the customer, or nothing where the tenant never had it */
async function look(
  { persons, audit }: Stores,
  tenant: string,
  id: string,
  foundBy: FoundCustomer["foundBy"],
): Promise<FoundCustomer[]> {
  const isStored = (await persons.record(tenant, id)) !== null;
  const values = await persons.countValues(tenant, id);
  const keptReplies = (await persons.keptReplies(tenant, id)).length;
  const found = { tenant, id, foundBy, values, keptReplies };
  if (isStored) return [{ ...found, state: "stored" }];
  if (values === 0 && (await audit.isErased(tenant, id))) return [{ ...found, state: "erased" }];
  const { items } = await audit.history({ tenant, customerId: id, before: null, limit: 1 });
  return items.length === 0 ? [] : [{ ...found, state: "deleted" }];
}

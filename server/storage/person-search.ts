import { changedValues } from "../domain/audit/kept-values.ts";
import { parseCustomerId } from "../domain/customer/customer-id.ts";
import { foldEmail } from "../domain/customer/email.ts";
import { historyPages } from "./audit/history-pages.ts";
import { VALUES_PAGE } from "./person-store.ts";
import type { Storage } from "./storage.ts";

/** A customer that may be the person who was asked for. */
export type FoundCustomer = {
  readonly tenant: string;
  readonly id: string;
  /** `deleted`: the audit trail has its rows. `erased`: so was it, and nothing of it is left but those rows. */
  readonly state: "stored" | "deleted" | "erased";
  /** `last-email`: its last one, of a customer who was deleted. `earlier-email`: one that it had before another one. */
  readonly foundBy: "id" | "email" | "last-email" | "earlier-email";
  /** Whether the audit trail keeps another email of it too, which may have been another person's. */
  readonly hasOtherEmail: boolean;
  /** Beside how many rows of the audit trail values of it are kept. */
  readonly values: number;
  readonly keptReplies: number;
};

type Stores = Pick<Storage, "persons" | "audit">;

/**
 * A customer who had the email before another one may be someone else, so an operator has to name its id.
 *
 * @returns whether an export and an erasure take it
 */
export function isSelected({ foundBy }: FoundCustomer): boolean {
  return foundBy !== "earlier-email";
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
    if (id !== null) found.push(...(await look(stores, tenant, id, null)));
    else found.push(...(await findByEmail(stores, tenant, foldEmail(who))));
  }
  return found;
}

async function findByEmail(stores: Stores, tenant: string, folded: string): Promise<FoundCustomer[]> {
  const ids = new Set([
    ...(await stores.persons.withEmail(tenant, folded)),
    ...(await hadEmail(stores, tenant, folded)),
  ]);
  const found: FoundCustomer[] = [];
  for (const id of ids) found.push(...(await look(stores, tenant, id, folded)));
  return found;
}

async function hadEmail({ persons }: Stores, tenant: string, folded: string): Promise<string[]> {
  const ids = new Set<string>();
  for (let after: string | null = null; ; ) {
    const page = await persons.values(tenant, after);
    for (const { customerId, content } of page) {
      const { email } = changedValues({ content }, { tenant, customerId });
      const isOne = [email?.before, email?.after].some(
        (value) => value != null && foldEmail(value) === folded,
      );
      if (isOne) ids.add(customerId);
    }
    if (page.length < VALUES_PAGE) return [...ids];
    after = page.at(-1)?.position ?? null;
  }
}

/**
 * @param asked the folded email that is looked for; null where it is the id
 * @returns the customer, or nothing where the tenant never had it
 */
async function look(
  { persons, audit }: Stores,
  tenant: string,
  id: string,
  asked: string | null,
): Promise<FoundCustomer[]> {
  const record = await persons.record(tenant, id);
  const values = await persons.countValues(tenant, id);
  const keptReplies = await persons.countKeptReplies(tenant, id);
  const now = record === null ? null : foldEmail(record.email);
  const { last, hasOther } = await keptEmails(audit, tenant, id, asked ?? now);
  const isLast = (now ?? last) === asked;
  const foundByEmail = !isLast ? "earlier-email" : record === null ? "last-email" : "email";
  const foundBy = asked === null ? "id" : foundByEmail;
  const found = { tenant, id, foundBy, hasOtherEmail: hasOther, values, keptReplies } as const;
  if (record !== null) return [{ ...found, state: "stored" }];
  if (values === 0 && (await audit.isErased(tenant, id))) return [{ ...found, state: "erased" }];
  const { items } = await audit.history({
    tenant,
    customerId: id,
    before: null,
    limit: 1,
    withValues: false,
  });
  return items.length === 0 ? [] : [{ ...found, state: "deleted" }];
}

/**
 * @param known the folded email that the others are compared with; null: the newest one that is kept
 * @returns the last email of a customer, folded, null where it is not kept; and whether another one than `known` is
 */
async function keptEmails(
  audit: Stores["audit"],
  tenant: string,
  id: string,
  known: string | null,
): Promise<{ readonly last: string | null; readonly hasOther: boolean }> {
  let last: string | null | undefined;
  let compared = known;
  for await (const page of historyPages(audit, tenant, id)) {
    for (const entry of page) {
      const { changed, values } = entry;
      if (!changed.includes("email")) continue;
      const email = values === null ? undefined : changedValues(values, entry).email;
      const emails = [email?.after, email?.before].flatMap((text) => (text == null ? [] : [foldEmail(text)]));
      if (last === undefined) last = emails[0] ?? null;
      compared ??= last;
      if (emails.some((one) => one !== compared)) return { last, hasOther: true };
    }
  }
  return { last: last ?? null, hasOther: false };
}

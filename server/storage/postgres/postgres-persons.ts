import { CommandRefused } from "../../domain/command-refused.ts";
import type { CustomerFields, NewCustomer } from "../../domain/customer/customer.ts";
import type { RowVersion } from "../../domain/entity-tag.ts";
import {
  type Erased,
  PERSON_ERASE,
  type PersonStore,
  REPLIES_PAGE,
  replyPosition,
  VALUES_PAGE,
} from "../person-store.ts";
import type { LaneConnection } from "./connection/lane.ts";
import type { Lanes } from "./connection/lanes.ts";
import { IS_ERASED_TEXT } from "./rows/audit-sql.ts";

/** $1 tenant, $2 customer. */
const COUNT_REPLIES_TEXT =
  "SELECT count(*) AS n FROM kept_fields WHERE tenant = $1::text AND customer_id = $2::uuid";
/** $1 tenant, $2 customer. */
const COUNT_VALUES_TEXT =
  "SELECT count(*) AS n FROM audit_values WHERE tenant = $1::text AND customer_id = $2::uuid";
const MAY_ERASE_TEXT =
  "SELECT current_user AS role, has_table_privilege('audit_values', 'DELETE') AS may_delete";

/** What PostgreSQL holds of persons, on a connection for what is slow. */
export function postgresPersons(lanes: Lanes) {
  return {
    async tenants() {
      const rows = await lanes.run<{ tenant: string }>("SELECT tenant FROM tenants ORDER BY tenant", []);
      return rows.map(({ tenant }) => tenant);
    },

    async withEmail(tenant, folded) {
      const text =
        "SELECT id::text AS id FROM customers WHERE tenant = $1::text AND email_folded = $2::text ORDER BY id";
      return (await lanes.run<{ id: string }>(text, [tenant, folded])).map(({ id }) => id);
    },

    async record(tenant, id) {
      type Row = NewCustomer & { id: string; row_version: RowVersion; created_at: string };
      const text = `SELECT id::text AS id, name, email, status, row_version, created_at FROM customers
        WHERE tenant = $1::text AND id = $2::uuid`;
      const [row] = await lanes.run<Row>(text, [tenant, id]);
      if (row === undefined) return null;
      const { row_version: rowVersion, created_at, ...fields } = row;
      return { ...fields, rowVersion, createdAtMs: Number(created_at) };
    },

    async keptReplies(tenant, id, after) {
      type Row = { token_id: string; key: string; expires_at: string; fields: string };
      const text = `SELECT f.token_id, f.key, k.expires_at, f.fields FROM kept_fields f
        JOIN idempotency_keys k ON k.token_id = f.token_id AND k.key = f.key
        WHERE f.tenant = $1::text AND f.customer_id = $2::uuid AND (f.token_id, f.key) > ($3::text, $4::text)
        ORDER BY f.token_id, f.key LIMIT $5::int`;
      const params = [tenant, id, ...replyPosition(after), String(REPLIES_PAGE)];
      const rows = await lanes.run<Row>(text, params);
      return rows.map(({ token_id, key, expires_at, fields }) => ({
        expiresAtMs: Number(expires_at),
        fields: JSON.parse(fields) as CustomerFields,
        position: JSON.stringify([token_id, key]),
      }));
    },

    async countKeptReplies(tenant, id) {
      const [row] = await lanes.run<{ n: string }>(COUNT_REPLIES_TEXT, [tenant, id]);
      return Number(row?.n ?? 0);
    },

    async values(tenant, after) {
      const [customer = BEFORE_ALL, row = "0"] = after?.split(" ") ?? [];
      type Row = { customer_id: string; id: string; content: string };
      const text = `SELECT customer_id::text AS customer_id, id, content FROM audit_values
        WHERE tenant = $1::text AND (customer_id, id) > ($2::uuid, $3::bigint) ORDER BY customer_id, id LIMIT $4::int`;
      const rows = await lanes.run<Row>(text, [tenant, customer, row, String(VALUES_PAGE)]);
      return rows.map(({ customer_id, id, content }) => ({
        customerId: customer_id,
        content,
        position: `${customer_id} ${id}`,
      }));
    },

    countValues: async (tenant, id) =>
      Number((await lanes.run<{ n: string }>(COUNT_VALUES_TEXT, [tenant, id]))[0]?.n),

    async erase(tenant, id) {
      // Safe to repeat: it then finds the customer erased.
      const erased = await lanes.transact((transaction) => eraseCustomer(transaction, tenant, id));
      if ("roleWithoutRight" in erased) throw rightIsMissing(erased.roleWithoutRight);
      const { hasValues, ...counts } = erased;
      const text = `DELETE FROM audit_values WHERE tenant = $1::text AND customer_id = $2::uuid AND id IN (
        SELECT id FROM audit_values WHERE tenant = $1::text AND customer_id = $2::uuid ORDER BY id LIMIT $3::int)
        RETURNING 1`;
      let values = 0;
      for (let last = hasValues ? VALUES_PAGE : 0; last === VALUES_PAGE; values += last) {
        last = (await lanes.run(text, [tenant, id, String(VALUES_PAGE)])).length;
      }
      return { ...counts, values };
    },

    async requireErasureRight() {
      const [found] = await lanes.run<ErasureRight>(MAY_ERASE_TEXT, []);
      if (found?.may_delete === false) throw rightIsMissing(found.role);
    },

    emptyLog: () => true,
  } satisfies PersonStore;
}

const BEFORE_ALL = "00000000-0000-0000-0000-000000000000";

type ErasureRight = { readonly role: string; readonly may_delete: boolean };

function rightIsMissing(role: string): CommandRefused {
  return new CommandRefused(
    `The role ${role} may not delete values that the audit trail keeps. Run what \`customers-server grants --role ${role} --erasure\` prints, as the owner's role, or name the owner's role in DATABASE_URL.`,
  );
}

/**
 * Changes nothing where there are values that the role may not delete: no write can keep further ones then. The fields
 * of kept replies go with their customer, and so were deleted before where it is not there.
 */
async function eraseCustomer(
  transaction: LaneConnection,
  tenant: string,
  id: string,
): Promise<
  (Omit<Erased, "values"> & { readonly hasValues: boolean }) | { readonly roleWithoutRight: string }
> {
  // From then on no write changes it until the transaction ends.
  const lock = "SELECT 1 FROM customers WHERE tenant = $1::text AND id = $2::uuid FOR UPDATE";
  await transaction.run(lock, [tenant, id]);
  const [count] = await transaction.run<{ n: string }>(COUNT_VALUES_TEXT, [tenant, id]);
  const hasValues = Number(count?.n) > 0;
  // A role that may not delete values erases customers of whom none are kept.
  const [right] = hasValues ? await transaction.run<ErasureRight>(MAY_ERASE_TEXT, []) : [];
  if (right?.may_delete === false) return { roleWithoutRight: right.role };
  const [replies] = await transaction.run<{ n: string }>(COUNT_REPLIES_TEXT, [tenant, id]);
  const remove = "DELETE FROM customers WHERE tenant = $1::text AND id = $2::uuid RETURNING row_version";
  const [row] = await transaction.run<{ row_version: RowVersion }>(remove, [tenant, id]);
  const wasStored = row !== undefined;
  if (wasStored || (await transaction.run(IS_ERASED_TEXT, [tenant, id])).length === 0) {
    const { client, operation } = PERSON_ERASE;
    await transaction.run(
      `INSERT INTO audit (tenant, customer_id, time, client, token_prefix, request_id, operation,
        version_before, version_after, changed, without_if_match, with_key)
      VALUES ($1::text, $2::uuid, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $3::text, '', '', $4::text,
        $5::text, NULL, '', 0, 0)`,
      [tenant, id, client, operation, row?.row_version ?? null],
    );
  }
  return { wasStored, keptReplies: wasStored ? Number(replies?.n ?? 0) : 0, hasValues };
}

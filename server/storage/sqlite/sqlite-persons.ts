import type { CustomerFields } from "../../domain/customer/customer.ts";
import {
  type CustomerRecord,
  type PersonStore,
  REPLIES_PAGE,
  replyPosition,
  VALUES_PAGE,
} from "../person-store.ts";
import type { WriteQueue } from "./commit/write-queue.ts";
import { connect } from "./files/sqlite-database.ts";
import { MEMORY } from "./files/sqlite-url.ts";
import type { SharedRead } from "./read/read-transaction.ts";

/** How long a checkpoint waits for readers: it holds the write lock meanwhile, and so holds up the writes of a service. */
const CHECKPOINT_WAIT_MS = 50;
/** Between two of them, for those writes. */
const CHECKPOINT_PAUSE_MS = 200;

/** Those of one customer of a tenant. All values of the tenant are looked at: erasure trusts no link between rows. */
const KEPT_VALUES = `audit_values v JOIN audit a ON a.tenant = v.tenant AND a.number = v.number
  WHERE v.tenant = ? AND a.customer_id = ?`;

/** What SQLite holds of persons. Deleted content is overwritten: see `secure_delete` in files/sqlite-database.ts. */
export function sqlitePersons(path: string, read: SharedRead, write: WriteQueue, lockWaitMs: number) {
  return {
    tenants() {
      const sql = "SELECT tenant FROM tenants ORDER BY tenant";
      return read.all<{ tenant: string }>(sql).map(({ tenant }) => tenant);
    },

    withEmail(tenant, folded) {
      const sql = "SELECT id FROM customers WHERE tenant = ? AND email_folded = ? ORDER BY id";
      return read.all<{ id: string }>(sql, tenant, folded).map(({ id }) => id);
    },

    record(tenant, id) {
      const sql = `SELECT id, name, email, status, row_version AS rowVersion, created_at AS createdAtMs FROM customers
        WHERE tenant = ? AND id = ?`;
      return read.get<CustomerRecord>(sql, tenant, id);
    },

    keptReplies(tenant, id, after) {
      type Row = { token_id: string; key: string; expiresAtMs: number; fields: string };
      const sql = `SELECT token_id, key, expires_at AS expiresAtMs, json_extract(outcome, '$.fields') AS fields FROM idempotency_keys
        WHERE tenant = ? AND customer_id = ? AND (token_id, key) > (?, ?) ORDER BY token_id, key LIMIT ?`;
      const rows = read.all<Row>(sql, tenant, id, ...replyPosition(after), REPLIES_PAGE);
      return rows.map(({ token_id, key, expiresAtMs, fields }) => ({
        expiresAtMs,
        fields: JSON.parse(fields) as CustomerFields,
        position: JSON.stringify([token_id, key]),
      }));
    },

    countKeptReplies(tenant, id) {
      const sql = "SELECT count(*) AS n FROM idempotency_keys WHERE tenant = ? AND customer_id = ?";
      return read.get<{ n: number }>(sql, tenant, id)?.n ?? 0;
    },

    values(tenant, after) {
      type Row = { number: number; customerId: string; content: string };
      const sql = `SELECT v.number, a.customer_id AS customerId, v.content FROM audit_values v
        JOIN audit a ON a.tenant = v.tenant AND a.number = v.number
        WHERE v.tenant = ? AND v.number > ? ORDER BY v.number LIMIT ?`;
      const rows = read.all<Row>(sql, tenant, Number(after ?? 0), VALUES_PAGE);
      return rows.map(({ number, ...values }) => ({ ...values, position: String(number) }));
    },

    countValues(tenant, id) {
      const sql = `SELECT count(*) AS n FROM ${KEPT_VALUES}`;
      return read.get<{ n: number }>(sql, tenant, id)?.n ?? 0;
    },

    async erase(tenant, id) {
      const erased = await write.run("eraseCustomer", { tenant, id });
      const sql = `SELECT v.number FROM ${KEPT_VALUES} AND v.number > ? ORDER BY v.number LIMIT ?`;
      let values = 0;
      for (let [after, isMore] = [0, true]; isMore; ) {
        const rows = read.all<{ number: number }>(sql, tenant, id, after, VALUES_PAGE);
        const numbers = rows.map(({ number }) => number);
        if (numbers.length > 0) values += await write.run("eraseValues", { tenant, numbers });
        after = numbers.at(-1) ?? after;
        isMore = numbers.length === VALUES_PAGE;
      }
      return { ...erased, values };
    },

    requireErasureRight() {},

    async emptyLog() {
      if (path === MEMORY) return true;
      read.end();
      const db = connect(path, { lockWaitMs });
      try {
        db.run(`PRAGMA busy_timeout = ${CHECKPOINT_WAIT_MS}`);
        const giveUpAt = performance.now() + lockWaitMs;
        const checkpoint = db.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)");
        while (checkpoint.get()?.busy !== 0) {
          if (performance.now() >= giveUpAt) return false;
          await Bun.sleep(CHECKPOINT_PAUSE_MS);
        }
        return true;
      } finally {
        db.close();
      }
    },
  } satisfies PersonStore;
}

const HEX_DIGITS = "0123456789ABCDEF";
const BASE64URL_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** SQL for a BLOB of 12 bytes as 16 base64url characters: three hexadecimal digits are two of those. */
function base64url(blob: string): string {
  const hexDigit = (at: number): string => `(instr('${HEX_DIGITS}', substr(hex(${blob}), ${at}, 1)) - 1)`;
  const digit = (value: string): string => `substr('${BASE64URL_DIGITS}', (${value}) + 1, 1)`;
  const pairs = Array.from({ length: 8 }, (_, index) => {
    const [a, b, c] = [1, 2, 3].map((offset) => hexDigit(index * 3 + offset));
    return `${digit(`(${a} << 2) | (${b} >> 2)`)} || ${digit(`((${b} & 3) << 4) | ${c}`)}`;
  });
  return pairs.join(" || ");
}

/**
 * The schema, a step each, in order; `PRAGMA user_version` is the number of steps that a database has. A step
 * that has been released is never changed: the next one corrects it.
 */
export const MIGRATIONS: readonly string[] = [
  `
  -- Clustered by tenant and id: a read is one descent, a page is one run of neighbours.
  CREATE TABLE customers (
    tenant      TEXT NOT NULL,
    id          TEXT NOT NULL CHECK (length(id) = 36),
    name        TEXT NOT NULL,
    email       TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('active', 'suspended', 'closed')),
    row_version BLOB NOT NULL CHECK (length(row_version) = 12),
    created_at  INTEGER NOT NULL, -- ms since 1970
    PRIMARY KEY (tenant, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX customers_by_status ON customers (tenant, status, id);
  CREATE INDEX customers_by_email ON customers (tenant, email, id);

  CREATE TABLE tokens (
    digest      BLOB PRIMARY KEY CHECK (length(digest) = 32), -- SHA-256 of the token
    prefix      TEXT NOT NULL,
    client      TEXT NOT NULL,
    role        TEXT NOT NULL,
    tenant      TEXT,             -- null: a token for metrics, which belong to no tenant
    created_at  INTEGER NOT NULL, -- ms since 1970, as all times here
    expires_at  INTEGER,
    last_used_at INTEGER,         -- to the hour
    revoked_at  INTEGER
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE idempotency_keys (
    tenant      TEXT NOT NULL,
    client      TEXT NOT NULL,
    key         TEXT NOT NULL,
    digest      BLOB NOT NULL,
    customer_id TEXT NOT NULL,
    row_version BLOB NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, client, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

  -- One row: the key that seals paging cursors, so that they outlive a restart and tell nothing.
  CREATE TABLE cursor_key (
    only_row    INTEGER PRIMARY KEY CHECK (only_row = 1),
    key         BLOB NOT NULL CHECK (length(key) = 32)
  ) STRICT;
  INSERT INTO cursor_key VALUES (1, randomblob(32));
  `,
  // Row versions become the text that entity-tags carry. Every tag that a client holds stays good.
  `
  CREATE TABLE new_customers (
    tenant      TEXT NOT NULL,
    id          TEXT NOT NULL CHECK (length(id) = 36),
    name        TEXT NOT NULL,
    email       TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('active', 'suspended', 'closed')),
    row_version TEXT NOT NULL CHECK (length(row_version) = 16), -- base64url
    created_at  INTEGER NOT NULL, -- ms since 1970
    PRIMARY KEY (tenant, id)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO new_customers
    SELECT tenant, id, name, email, status, ${base64url("row_version")}, created_at FROM customers;
  DROP TABLE customers;
  ALTER TABLE new_customers RENAME TO customers;
  CREATE INDEX customers_by_status ON customers (tenant, status, id);
  CREATE INDEX customers_by_email ON customers (tenant, email, id);

  CREATE TABLE new_idempotency_keys (
    tenant      TEXT NOT NULL,
    client      TEXT NOT NULL,
    key         TEXT NOT NULL,
    digest      BLOB NOT NULL,
    customer_id TEXT NOT NULL,
    row_version TEXT NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, client, key)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO new_idempotency_keys
    SELECT tenant, client, key, digest, customer_id, ${base64url("row_version")}, expires_at FROM idempotency_keys;
  DROP TABLE idempotency_keys;
  ALTER TABLE new_idempotency_keys RENAME TO idempotency_keys;
  CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
  `,
];

/** Kept in `PRAGMA user_version`. No earlier schema was ever released, so nothing leads from one to this. */
export const SCHEMA_VERSION = 4;

/** The schema of a new database. */
export const SCHEMA = `
  -- Clustered by tenant and id: a read is one descent, a page is one run of neighbours.
  CREATE TABLE customers (
    tenant       TEXT NOT NULL,
    id           TEXT NOT NULL CHECK (length(id) = 36),
    name         TEXT NOT NULL,
    email        TEXT NOT NULL,
    email_folded TEXT NOT NULL, -- foldEmail(email), which searches compare
    status       TEXT NOT NULL CHECK (status IN ('active', 'suspended', 'closed')),
    row_version  TEXT NOT NULL CHECK (length(row_version) = 16), -- base64url
    created_at   INTEGER NOT NULL, -- ms since 1970, as all times here
    PRIMARY KEY (tenant, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX customers_by_status ON customers (tenant, status, id);
  CREATE INDEX customers_by_email ON customers (tenant, email_folded, id);

  -- The greatest id that a tenant ever had. The greatest id in customers would fall when the newest is deleted, and
  -- a reader who has paged to the end would miss the next customer.
  CREATE TABLE tenants (
    tenant       TEXT PRIMARY KEY,
    newest_id    TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE tokens (
    digest       BLOB PRIMARY KEY CHECK (length(digest) = 32), -- SHA-256 of the token
    prefix       TEXT NOT NULL,
    client       TEXT NOT NULL,
    role         TEXT NOT NULL,
    tenant       TEXT,             -- null: a token for metrics, which belong to no tenant
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,          -- to the hour
    revoked_at   INTEGER
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE idempotency_keys (
    token_id     TEXT NOT NULL,
    key          TEXT NOT NULL,
    digest       BLOB NOT NULL,    -- of the request
    outcome      TEXT NOT NULL,    -- JSON, as the write answered it
    expires_at   INTEGER NOT NULL,
    -- Whose fields the outcome holds, both null where it holds none: a deleted customer leaves none here.
    tenant       TEXT,
    customer_id  TEXT,
    PRIMARY KEY (token_id, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
  CREATE INDEX idempotency_keys_by_customer ON idempotency_keys (tenant, customer_id) WHERE tenant IS NOT NULL;

  -- One row: the key that seals paging cursors, so that they outlive a restart and reveal nothing.
  CREATE TABLE cursor_key (
    only_row     INTEGER PRIMARY KEY CHECK (only_row = 1),
    key          BLOB NOT NULL CHECK (length(key) = 32)
  ) STRICT;
  INSERT INTO cursor_key VALUES (1, randomblob(32));
`;

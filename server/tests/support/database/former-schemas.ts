/**
 * Schemas exactly as earlier versions made them: a database of each must be carried over. These texts are
 * copies, so that nobody changes by accident where the steps of a migration start.
 */

/** SQLite, `PRAGMA user_version = 4`. */
export const SQLITE_SCHEMA_4 = `
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

/** PostgreSQL, schema_version 1 in `meta`; a statement each. */
export const POSTGRES_SCHEMA_1 = [
  // A schema of our own, so that the database may hold others.
  `CREATE SCHEMA customers`,

  `CREATE TABLE customers (
    tenant       text COLLATE "C" NOT NULL,
    id           uuid NOT NULL,
    name         text NOT NULL,
    email        text NOT NULL,
    email_folded text COLLATE "C" NOT NULL, -- foldEmail(email), which searches compare
    status       text COLLATE "C" NOT NULL CHECK (status IN ('active', 'suspended', 'closed')),
    row_version  text COLLATE "C" NOT NULL CHECK (length(row_version) = 16), -- base64url, drawn by the service
    created_at   bigint NOT NULL, -- ms since 1970, as all times here
    PRIMARY KEY (tenant, id)
  ) WITH (fillfactor = 80)`, // an update stays on its page, and no index changes
  `CREATE INDEX customers_by_status ON customers (tenant, status, id)`,
  `CREATE INDEX customers_by_email ON customers (tenant, email_folded, id)`,

  // The greatest id that a tenant ever had, and the one before the last statement that made customers.
  `CREATE TABLE tenants (
    tenant       text COLLATE "C" PRIMARY KEY,
    newest_id    uuid NOT NULL,
    previous_id  uuid
  ) WITH (fillfactor = 10)`,

  `CREATE TABLE tokens (
    digest       bytea PRIMARY KEY CHECK (length(digest) = 32), -- SHA-256 of the token
    prefix       text COLLATE "C" NOT NULL,
    client       text COLLATE "C" NOT NULL,
    role         text COLLATE "C" NOT NULL,
    tenant       text COLLATE "C",  -- null: a token for metrics, which belong to no tenant
    created_at   bigint NOT NULL,
    expires_at   bigint,
    last_used_at bigint,            -- to the hour
    revoked_at   bigint
  )`,

  `CREATE TABLE idempotency_keys (
    token_id     text COLLATE "C" NOT NULL,
    key          text COLLATE "C" NOT NULL,
    digest       bytea NOT NULL,    -- of the request
    outcome      text NOT NULL,     -- JSON, as the write answered it
    expires_at   bigint NOT NULL,
    PRIMARY KEY (token_id, key)
  )`,
  `CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at)`,

  // The fields of an outcome. They go with their customer, and no statement can forget it: one that deleted
  // from both tables would not see what another session committed while it waited for the customer.
  `CREATE TABLE kept_fields (
    token_id     text COLLATE "C" NOT NULL,
    key          text COLLATE "C" NOT NULL,
    tenant       text COLLATE "C" NOT NULL,
    customer_id  uuid NOT NULL,
    fields       text NOT NULL,     -- JSON
    PRIMARY KEY (token_id, key),
    FOREIGN KEY (token_id, key) REFERENCES idempotency_keys ON DELETE CASCADE,
    FOREIGN KEY (tenant, customer_id) REFERENCES customers ON DELETE CASCADE
  )`,
  `CREATE INDEX kept_fields_by_customer ON kept_fields (tenant, customer_id)`,

  // One row. cursor_key seals paging cursors, so that they outlive a restart and reveal nothing.
  `CREATE TABLE meta (
    only_row       int PRIMARY KEY CHECK (only_row = 1),
    application    text NOT NULL,
    schema_version int NOT NULL,
    min_version    int NOT NULL,
    cursor_key     bytea NOT NULL CHECK (length(cursor_key) = 32)
  )`,

  // The id that is so many steps after another, in the order of ids: it moves the last 48 random
  // bits on, and where they overflow, begins the next millisecond (RFC 9562, section 6.2, method 2).
  `CREATE FUNCTION id_after(id uuid, steps bigint) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT (CASE WHEN tail < 281474976710656
      THEN left(id::text, 24) || lpad(to_hex(tail), 12, '0')
      ELSE regexp_replace(lpad(to_hex(ms + 1), 12, '0'), '^(.{8})(.{4})$', '\\1-\\2') || '-7000-8000-' || lpad(to_hex(tail - 281474976710656), 12, '0')
    END)::uuid
    FROM (SELECT
      ('x' || right(id::text, 12))::bit(48)::bigint + steps AS tail,
      ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint AS ms) AS parts
  $$`,
];

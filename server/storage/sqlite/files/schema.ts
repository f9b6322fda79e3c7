/** Kept in `PRAGMA user_version`. */
export const SCHEMA_VERSION = 6;

/** The schema from which the steps start. Nothing leads to it: none before it was ever released. */
export const FIRST_SCHEMA_VERSION = 4;

/** What a new database starts from as well, so that both ways lead to the same schema. Never changed any more. */
const FIRST_SCHEMA = `
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

  -- One row: the key that encrypts paging cursors, so that they outlive a restart and reveal nothing.
  CREATE TABLE cursor_key (
    only_row     INTEGER PRIMARY KEY CHECK (only_row = 1),
    key          BLOB NOT NULL CHECK (length(key) = 32)
  ) STRICT;
  INSERT INTO cursor_key VALUES (1, randomblob(32));
`;

const NEVER_CHANGES = `CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;`;

/** Links the rows of each customer, which came without links: inside a transaction. */
export const LINK_AUDIT_ROWS = `
  DROP TRIGGER audit_never_changes;
  UPDATE audit SET previous = linked.previous
    FROM (SELECT tenant, number, lag(number, 1, 0) OVER (PARTITION BY tenant, customer_id ORDER BY number) AS previous
      FROM audit) AS linked
    WHERE audit.tenant = linked.tenant AND audit.number = linked.number AND linked.previous > 0;
  UPDATE customers SET last_change = newest.number
    FROM (SELECT tenant, customer_id, max(number) AS number FROM audit GROUP BY tenant, customer_id) AS newest
    WHERE customers.tenant = newest.tenant AND customers.id = newest.customer_id;
  ${NEVER_CHANGES}
`;

/** What leads from one schema to the next, by the version that it makes. Each is run once, in one transaction. */
const STEPS: Readonly<Record<number, string>> = {
  5: `
  -- Names, separated by commas, that narrow the rights of the role; null: they don't.
  ALTER TABLE tokens ADD COLUMN scope_fields TEXT;
  ALTER TABLE tokens ADD COLUMN scope_operations TEXT;
  -- The network of the last use, as 192.0.2.0/24.
  ALTER TABLE tokens ADD COLUMN last_used_from TEXT;
  -- The prefix of the token that this one was rotated into last.
  ALTER TABLE tokens ADD COLUMN replaced_by TEXT;
  -- Whose idempotency keys it uses: those of the first token of a rotation; null: its own.
  ALTER TABLE tokens ADD COLUMN token_id TEXT;

  -- The audit trail: one row for each accepted write, in its transaction. Each tenant has a chain of its own.
  CREATE TABLE audit (
    tenant           TEXT NOT NULL,
    number           INTEGER NOT NULL CHECK (number > 0), -- the place in the tenant's chain: from 1, without gaps
    time             INTEGER NOT NULL,
    client           TEXT NOT NULL,
    token_prefix     TEXT NOT NULL,    -- the part of the token that is shown
    request_id       TEXT NOT NULL,
    operation        TEXT NOT NULL CHECK (operation IN ('create', 'replace', 'patch', 'delete', 'erase')),
    customer_id      TEXT NOT NULL,
    version_before   TEXT,             -- null of a creation
    version_after    TEXT,             -- null of a removal
    changed          TEXT NOT NULL,    -- names of the fields whose values changed, separated by commas
    without_if_match INTEGER NOT NULL, -- 1 or 0
    with_key         INTEGER NOT NULL, -- 1 or 0: whether it came under an Idempotency-Key
    values_digest    BLOB CHECK (length(values_digest) = 32), -- of the salt and content in audit_values; null: none were kept
    hash             BLOB NOT NULL CHECK (length(hash) = 32), -- of this row and the hash of the one before it
    PRIMARY KEY (tenant, number)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX audit_by_customer ON audit (tenant, customer_id, number);
  CREATE INDEX audit_erasures ON audit (tenant, customer_id) WHERE operation = 'erase';

  -- The values of the fields that a write changed, where the policy wants them kept. They go with their row, or when
  -- their customer is erased.
  CREATE TABLE audit_values (
    tenant           TEXT NOT NULL,
    number           INTEGER NOT NULL,
    salt             BLOB NOT NULL CHECK (length(salt) = 16),
    content          TEXT NOT NULL,    -- JSON
    PRIMARY KEY (tenant, number),
    FOREIGN KEY (tenant, number) REFERENCES audit ON DELETE CASCADE
  ) STRICT, WITHOUT ROWID;

  -- Where a tenant's chain begins: the last row that retention deleted.
  CREATE TABLE audit_anchors (
    tenant           TEXT PRIMARY KEY,
    number           INTEGER NOT NULL CHECK (number > 0),
    hash             BLOB NOT NULL CHECK (length(hash) = 32),
    time             INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  ${NEVER_CHANGES}
  -- A row that replaces another one deletes it without a trigger.
  CREATE TRIGGER audit_appends BEFORE INSERT ON audit
  WHEN NEW.number <> 1 + coalesce((SELECT max(number) FROM audit WHERE tenant = NEW.tenant),
    (SELECT number FROM audit_anchors WHERE tenant = NEW.tenant), 0)
  BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
  CREATE TRIGGER audit_keeps_its_rows BEFORE DELETE ON audit
  WHEN OLD.number > coalesce((SELECT number FROM audit_anchors WHERE tenant = OLD.tenant), 0)
  BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
  CREATE TRIGGER audit_values_never_change BEFORE UPDATE ON audit_values
  BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
  CREATE TRIGGER audit_values_append BEFORE INSERT ON audit_values
  WHEN EXISTS (SELECT 1 FROM audit_values WHERE tenant = NEW.tenant AND number = NEW.number)
  BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
  CREATE TRIGGER audit_values_keep BEFORE DELETE ON audit_values
  WHEN EXISTS (SELECT 1 FROM audit a WHERE a.tenant = OLD.tenant AND a.number = OLD.number AND NOT EXISTS (
    SELECT 1 FROM audit e WHERE e.tenant = a.tenant AND e.customer_id = a.customer_id AND e.operation = 'erase'))
  BEGIN SELECT RAISE(ABORT, 'the audit trail keeps the values of a customer who was not erased'); END;
  -- An anchor is a row that is still there. In a copy it comes before the rows.
  CREATE TRIGGER audit_anchors_begin BEFORE INSERT ON audit_anchors
  WHEN EXISTS (SELECT 1 FROM audit_anchors WHERE tenant = NEW.tenant AND number >= NEW.number)
    OR (EXISTS (SELECT 1 FROM audit WHERE tenant = NEW.tenant)
      AND NOT EXISTS (SELECT 1 FROM audit WHERE tenant = NEW.tenant AND number = NEW.number AND hash = NEW.hash AND time = NEW.time))
  BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
  CREATE TRIGGER audit_anchors_go_forward BEFORE UPDATE ON audit_anchors
  WHEN NEW.tenant <> OLD.tenant OR NEW.number <= OLD.number
    OR NOT EXISTS (SELECT 1 FROM audit WHERE tenant = NEW.tenant AND number = NEW.number AND hash = NEW.hash AND time = NEW.time)
  BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
  CREATE TRIGGER audit_anchors_stay BEFORE DELETE ON audit_anchors
  BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;

  -- How often versions of clients wrote with and without If-Match, by day. About 20 versions of a client on a day.
  CREATE TABLE write_counts (
    tenant           TEXT NOT NULL,
    client           TEXT NOT NULL,
    day              TEXT NOT NULL,    -- UTC, such as 2026-11-28
    client_version   TEXT NOT NULL,    -- '' without one
    method           TEXT NOT NULL CHECK (method IN ('PUT', 'PATCH', 'DELETE')),
    with_if_match    INTEGER NOT NULL,
    allowed          INTEGER NOT NULL, -- without If-Match, applied
    refused          INTEGER NOT NULL, -- without If-Match, 428
    first_at         INTEGER NOT NULL,
    last_with_at     INTEGER,
    first_without_at INTEGER,
    last_without_at  INTEGER,
    PRIMARY KEY (tenant, client, day, client_version, method)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX write_counts_by_day ON write_counts (day);
  `,
  6: `
  -- Each row of the trail names the row before it of its customer, and the customer its last one. Rows that removed a
  -- customer have an index. An index of all rows by customer made each write change one more page.
  ALTER TABLE customers ADD COLUMN last_change INTEGER NOT NULL DEFAULT 0; -- the number of a row in audit; 0: it has none
  ALTER TABLE audit ADD COLUMN previous INTEGER NOT NULL DEFAULT 0;        -- the same; retention may have deleted the row
  ${LINK_AUDIT_ROWS}
  CREATE INDEX audit_removals ON audit (tenant, customer_id, number) WHERE version_after IS NULL;
  DROP INDEX audit_by_customer;
  `,
};

/** @param from the version of a database's schema; null for a new one @returns what makes it this version's */
export function schemaSteps(from: number | null): readonly string[] {
  const steps = Object.entries(STEPS)
    .filter(([version]) => Number(version) > (from ?? FIRST_SCHEMA_VERSION))
    .map(([, step]) => step);
  return from === null ? [FIRST_SCHEMA, ...steps] : steps;
}

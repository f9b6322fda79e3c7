/** Kept in `meta`. */
export const POSTGRES_SCHEMA_VERSION = 2;

/** The schema from which the steps start. */
const FIRST_SCHEMA_VERSION = 1;

/**
 * The oldest program that may run on this schema, by the schema that it knows. One that
 * knows schema 1 would let a token do all that its role may, past its scope, and write past the audit trail.
 */
export const MIN_VERSION = 2;

/** Marks the tables as those of this service. */
export const APPLICATION = "customers-server";

/** The same, while a copy into this database is not complete: no service starts on a part. */
export const COPYING = "customers-server copy";

/**
 * What a new database starts from, a statement each, so that a new one and one that was carried over
 * have the same schema. Never changed any more. Text that is compared or ordered has the
 * collation "C": the order of bytes, which is SQLite's and changes with no version of a library.
 * No sequence: one on a promoted asynchronous standby gave 68 of 100 values a second time.
 */
const FIRST_SCHEMA: readonly string[] = [
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

  // One row. cursor_key encrypts paging cursors, so that they outlive a restart and reveal nothing.
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

/** What leads from one schema to the next, by the version that it makes: statements that are run once. */
const STEPS: Readonly<Record<number, readonly string[]>> = {
  2: [
    `ALTER TABLE tokens
      -- Names, separated by commas, that narrow the rights of the role; null: they don't.
      ADD COLUMN scope_fields text COLLATE "C",
      ADD COLUMN scope_operations text COLLATE "C",
      -- The network of the last use, as 192.0.2.0/24.
      ADD COLUMN last_used_from text COLLATE "C",
      -- The prefix of the token that this one was rotated into last.
      ADD COLUMN replaced_by text COLLATE "C",
      -- Whose idempotency keys it uses: those of the first token of a rotation; null: its own.
      ADD COLUMN token_id text COLLATE "C"`,

    // The audit trail: one row for each accepted write, in its transaction. Several services write one tenant at once,
    // so a row comes without a place in the tenant's chain, and gets one later, when it is sealed: no write waits for
    // another's. The identity tells the order of a customer's rows, since a write draws it while it holds the customer.
    // What a fail-over loses of it, it loses with its row.
    `CREATE TABLE audit (
      tenant           text COLLATE "C" NOT NULL,
      customer_id      uuid NOT NULL,
      id               bigint GENERATED BY DEFAULT AS IDENTITY,
      number           bigint CHECK (number > 0), -- the place in the tenant's chain: from 1, without gaps; null until sealed
      time             bigint NOT NULL, -- by the clock of the database
      client           text COLLATE "C" NOT NULL,
      token_prefix     text COLLATE "C" NOT NULL, -- the part of the token that is shown
      request_id       text COLLATE "C" NOT NULL,
      operation        text COLLATE "C" NOT NULL CHECK (operation IN ('create', 'replace', 'patch', 'delete', 'erase')),
      version_before   text COLLATE "C",          -- null of a creation
      version_after    text COLLATE "C",          -- null of a removal
      changed          text COLLATE "C" NOT NULL, -- names of the fields whose values changed, separated by commas
      without_if_match smallint NOT NULL,         -- 1 or 0
      with_key         smallint NOT NULL,         -- 1 or 0: whether it came under an Idempotency-Key
      values_digest    bytea CHECK (length(values_digest) = 32), -- of the salt and content in audit_values; null: none were kept
      hash             bytea CHECK (length(hash) = 32), -- of this row and the hash of the one before it; null until sealed
      PRIMARY KEY (tenant, customer_id, id),
      CHECK ((number IS NULL) = (hash IS NULL))
    )`,
    `CREATE UNIQUE INDEX audit_by_number ON audit (tenant, number) WHERE number IS NOT NULL`,
    `CREATE INDEX audit_unsealed ON audit (id) WHERE number IS NULL`,
    `CREATE INDEX audit_erasures ON audit (tenant, customer_id) WHERE operation = 'erase'`,

    // The values of the fields that a write changed, where the policy wants them kept. They go with their row, as the
    // owner of this table, or when their customer is erased, by a role that may delete from it.
    `CREATE TABLE audit_values (
      tenant           text COLLATE "C" NOT NULL,
      customer_id      uuid NOT NULL,
      id               bigint NOT NULL,
      salt             bytea NOT NULL CHECK (length(salt) = 16),
      content          text NOT NULL, -- JSON
      PRIMARY KEY (tenant, customer_id, id),
      FOREIGN KEY (tenant, customer_id, id) REFERENCES audit ON DELETE CASCADE
    )`,

    // Where a tenant's chain begins: the last row that retention deleted.
    `CREATE TABLE audit_anchors (
      tenant           text COLLATE "C" PRIMARY KEY,
      number           bigint NOT NULL CHECK (number > 0),
      hash             bytea NOT NULL CHECK (length(hash) = 32),
      time             bigint NOT NULL
    )`,

    `CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'the audit trail is append-only';
    END $$`,
    `CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit FOR EACH ROW
      WHEN (NOT (OLD.number IS NULL AND NEW.number IS NOT NULL
        AND (OLD.tenant, OLD.customer_id, OLD.id, OLD.time, OLD.client, OLD.token_prefix, OLD.request_id, OLD.operation,
          OLD.changed, OLD.without_if_match, OLD.with_key)
        = (NEW.tenant, NEW.customer_id, NEW.id, NEW.time, NEW.client, NEW.token_prefix, NEW.request_id, NEW.operation,
          NEW.changed, NEW.without_if_match, NEW.with_key)
        AND OLD.version_before IS NOT DISTINCT FROM NEW.version_before
        AND OLD.version_after IS NOT DISTINCT FROM NEW.version_after
        AND OLD.values_digest IS NOT DISTINCT FROM NEW.values_digest))
      EXECUTE FUNCTION refuse_audit_change()`,
    `CREATE FUNCTION keep_audit_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF OLD.number <= (SELECT number FROM customers.audit_anchors WHERE tenant = OLD.tenant) THEN
        RETURN OLD;
      END IF;
      RAISE EXCEPTION 'the audit trail is append-only';
    END $$`,
    `CREATE TRIGGER audit_keeps_its_rows BEFORE DELETE ON audit FOR EACH ROW EXECUTE FUNCTION keep_audit_row()`,
    `CREATE TRIGGER audit_values_never_change BEFORE UPDATE ON audit_values FOR EACH ROW
      EXECUTE FUNCTION refuse_audit_change()`,
    `CREATE FUNCTION keep_audit_values() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NOT EXISTS (SELECT FROM customers.audit a
          WHERE (a.tenant, a.customer_id, a.id) = (OLD.tenant, OLD.customer_id, OLD.id))
        OR EXISTS (SELECT FROM customers.audit e
          WHERE e.tenant = OLD.tenant AND e.customer_id = OLD.customer_id AND e.operation = 'erase') THEN
        RETURN OLD;
      END IF;
      RAISE EXCEPTION 'the audit trail keeps the values of a customer who was not erased';
    END $$`,
    `CREATE TRIGGER audit_values_keep BEFORE DELETE ON audit_values FOR EACH ROW EXECUTE FUNCTION keep_audit_values()`,
    // An anchor is a row that is still there. In a copy, which is marked in meta, it comes before the rows. Where there is
    // an anchor already, an insertion becomes an update, or fails. One query, so that it sees another service's anchor and
    // the rows that went with it, or neither.
    `CREATE FUNCTION keep_audit_anchor() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF EXISTS (SELECT FROM customers.audit
          WHERE (tenant, number, hash, time) = (NEW.tenant, NEW.number, NEW.hash, NEW.time))
        OR (TG_OP = 'INSERT' AND (EXISTS (SELECT FROM customers.audit_anchors WHERE tenant = NEW.tenant)
          OR EXISTS (SELECT FROM customers.meta WHERE application = '${COPYING}'))) THEN
        RETURN NEW;
      END IF;
      RAISE EXCEPTION 'the audit trail is append-only';
    END $$`,
    `CREATE TRIGGER audit_anchors_are_rows BEFORE INSERT OR UPDATE ON audit_anchors FOR EACH ROW
      EXECUTE FUNCTION keep_audit_anchor()`,
    `CREATE TRIGGER audit_anchors_go_forward BEFORE UPDATE ON audit_anchors FOR EACH ROW
      WHEN (NEW.tenant <> OLD.tenant OR NEW.number <= OLD.number) EXECUTE FUNCTION refuse_audit_change()`,
    `CREATE TRIGGER audit_anchors_stay BEFORE DELETE ON audit_anchors FOR EACH ROW
      EXECUTE FUNCTION refuse_audit_change()`,
    ...["audit", "audit_anchors", "audit_values"].map(
      (table) => `CREATE TRIGGER ${table}_is_not_emptied BEFORE TRUNCATE ON ${table} FOR EACH STATEMENT
      EXECUTE FUNCTION refuse_audit_change()`,
    ),

    // How often versions of clients wrote with and without If-Match, by day. About 20 versions of a client on a day.
    `CREATE TABLE write_counts (
      tenant           text COLLATE "C" NOT NULL,
      client           text COLLATE "C" NOT NULL,
      day              text COLLATE "C" NOT NULL, -- UTC, such as 2026-11-28
      client_version   text COLLATE "C" NOT NULL, -- '' without one
      method           text COLLATE "C" NOT NULL CHECK (method IN ('PUT', 'PATCH', 'DELETE')),
      with_if_match    bigint NOT NULL,
      allowed          bigint NOT NULL, -- without If-Match, applied
      refused          bigint NOT NULL, -- without If-Match, 428
      first_at         bigint NOT NULL,
      last_with_at     bigint,
      first_without_at bigint,
      last_without_at  bigint,
      PRIMARY KEY (tenant, client, day, client_version, method)
    )`,
    `CREATE INDEX write_counts_by_day ON write_counts (day)`,
  ],
};

/** @param from the version of a database's schema; null for a new one @returns what makes it this version's */
export function schemaStatements(from: number | null): readonly string[] {
  const steps = Object.entries(STEPS)
    .filter(([version]) => Number(version) > (from ?? FIRST_SCHEMA_VERSION))
    .flatMap(([, statements]) => statements);
  return from === null ? [...FIRST_SCHEMA, ...steps] : steps;
}

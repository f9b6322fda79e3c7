/** Kept in `meta`. */
export const POSTGRES_SCHEMA_VERSION = 2;

/** The schema from which the steps start. */
const FIRST_SCHEMA_VERSION = 1;

/**
 * The oldest program that may run on this schema, by the schema that it knows. One that
 * knows schema 1 would let a token do all that its role may, past its scope.
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

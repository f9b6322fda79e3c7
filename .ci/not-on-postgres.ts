/**
 * Tests of `bun run test` that start the service, or open its storage, and are not run again by
 * `bun run test:postgres`: the start of a path, and why. Every other one is.
 */
export const NOT_ON_POSTGRES: Readonly<Record<string, string>> = {
  "server/storage/sqlite/": "tests of SQLite's files, locks, threads and backup",
  "server/storage/database-url/copy-database":
    "copies between files; tests/system/postgres/copy.system.ts copies to PostgreSQL",
  "server/storage/staged-token": "a file, whatever the engine",
  "server/storage/customers/key-purge":
    "counts rows in a file; the contract of customer stores deletes expired keys on PostgreSQL",
  "server/storage/audit/audit-retention":
    "writes rows with earlier times into a file; the contract of audit stores deletes old rows on PostgreSQL",
  "server/http/page-turns":
    "compares replies by their order, which one event loop decides; on PostgreSQL backends and their disk do",
  "server/http/routes/readiness":
    "counts SQLite's locks; tests/system/postgres/refusals.system.ts asks /readyz",
  "server/tests/first-start":
    "the first start in a file; tests/system/postgres/first-start.system.ts has PostgreSQL's",
  "server/tests/store-unavailable":
    "full disks, locks and damaged files; tests/system/postgres/faults.system.ts has PostgreSQL's faults",
  "server/tests/faults-under-load":
    "SQLite's write lock and thread; tests/system/postgres/failover.system.ts has PostgreSQL's faults",
  "server/tests/lone-writes":
    "answers in the turn that brought the request, which docs/postgres.md does not promise",
  "server/tests/projection-reaches-sql":
    "watches SQLite's statements; tests/system/postgres/statements.system.ts watches PostgreSQL's",
};

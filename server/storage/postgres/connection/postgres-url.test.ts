import { describe, expect, test } from "bun:test";
import { passwordIn, passwordOf } from "./password-file.ts";
import { parsePostgresUrl } from "./postgres-url.ts";

const ADDRESS = {
  host: "db.example",
  port: 5432,
  database: "crm",
  username: "crm",
  password: null,
  isVerified: true,
};

describe("a postgres:// URL", () => {
  test.each([
    ["postgres://crm@db.example/crm", {}],
    ["postgresql://crm@db.example:6432/crm", { port: 6432 }],
    ["postgres://crm:p%40ss@db.example/crm?sslmode=verify-full", { password: "p@ss" }],
    ["postgres://crm@db.example/crm?sslmode=disable", { isVerified: false }],
    ["postgres://crm@127.0.0.1/crm", { host: "127.0.0.1", isVerified: false }],
    ["postgres://crm@localhost/crm?sslmode=verify-full", { host: "localhost" }],
    ["postgres://crm@[::1]/crm", { host: "::1", isVerified: false }],
  ])("%s names a database", (text, expected) => {
    expect(parsePostgresUrl(text)).toEqual({ ok: true, address: { ...ADDRESS, ...expected } });
  });

  test.each([
    ["mysql://crm@db/crm", "is no URL such as postgres://"],
    ["postgres://crm@db:99999/crm", "is no URL such as postgres://"],
    ["postgres://crm@a,b/crm", "several hosts"],
    ["postgres://crm@db.example/", "names no database"],
    ["postgres://db.example/crm", "names no user"],
    ["postgres://crm@db.example/crm?sslmode=require", "does not verify the server"],
    ["postgres://crm@db.example/crm?options=-c", "only sslmode is known"],
    ["postgres://crm:50%@db.example/crm", "write a literal one as %25"],
  ])("%s is refused", (text, fault) => {
    expect(parsePostgresUrl(text)).toMatchObject({ ok: false, fault: expect.stringContaining(fault) });
  });
});

test.each<[string, string | null]>([
  ["db.example:5432:crm:crm:secret", "secret"],
  ["*:*:*:*:any", "any"],
  ["# db.example:5432:crm:crm:comment\ndb.example:*:crm:crm:second", "second"],
  ["db.example:5432:other:crm:no\n*:5432:*:crm:yes", "yes"],
  ["db.example:5432:crm:crm:a\\:b\\\\c", "a:b\\c"],
  ["db.example:5432:crm:crm:\n", ""],
  ["db.example:5433:crm:crm:no", null],
  ["", null],
])("a password file %j holds %j", (text, password) => {
  expect(passwordIn(text, ADDRESS)).toBe(password);
});

// PostgreSQL's own programs pass them over too: /dev/null is how they are told of no file at all.
test.each(["/dev/null", "/tmp", "/no/such/file"])("PGPASSFILE=%s holds no password", (file) => {
  expect(passwordOf(ADDRESS, { PGPASSFILE: file })).toBe("");
});

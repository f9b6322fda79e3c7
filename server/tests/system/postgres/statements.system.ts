import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FIELD_NAMES, type FieldName } from "../../../domain/customer/field-registry.ts";
import { NO_BODY, projectionOf } from "../../../domain/projection.ts";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import { grantsFor } from "../../../storage/postgres/schema/grants.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";
import { TEST_ORIGIN } from "../../support/service/test-origin.ts";
import { TestService } from "../../support/service/test-service.ts";

// What is fetched is what was asked for, of the caller's tenant: PostgreSQL itself
// says so, with privileges on columns and with its log of statements.

const cluster = await PostgresCluster.start({ settings: { log_statement: "all", log_line_prefix: "%a|" } });
afterAll(() => cluster.stop());

describe("a read fetches the columns of its projection, the key and the version, and no other", () => {
  const ADA = { name: "Ada", email: "ada@example.com", status: "active" } as const;
  let url: string;
  let owner: PostgresStorage;
  let reader: PostgresStorage;
  let id: string;
  beforeAll(async () => {
    url = await cluster.createDatabase();
    owner = await PostgresStorage.open(url);
    const made = await owner.customers.create("t", ADA, Date.now(), null, TEST_ORIGIN);
    id = made.kind === "created" ? made.id : "";
    await cluster.query(url, `CREATE ROLE reader LOGIN; ${grantsFor("reader")}`);
    // A privilege that is missing is tried again: not for long here.
    reader = await PostgresStorage.open(url.replace("postgres@", "reader@"), { limits: { giveUpMs: 50 } });
  });
  afterAll(() => Promise.all([owner.close(), reader.close()]));

  async function allow(fields: readonly FieldName[]): Promise<void> {
    const columns = ["tenant", "row_version", ...new Set(["id", ...fields])].join(", ");
    const grant = `GRANT SELECT (${columns}) ON customers.customers TO reader`;
    await cluster.query(url, `REVOKE SELECT ON customers.customers FROM reader; ${grant}`);
  }
  const query = { tenant: "t", after: null, limit: 10, status: null, email: null };
  const subsets = Array.from({ length: 2 ** FIELD_NAMES.length }, (_, bits) =>
    FIELD_NAMES.filter((_name, index) => (bits >> index) % 2 === 1),
  );

  test.each(subsets.map((fields) => [fields.join(", ") || "no field", fields] as const))(
    "%s",
    async (_, fields) => {
      const projection = fields.length === 0 ? NO_BODY : projectionOf(fields);
      await allow(fields);
      const read = await reader.customers.read("t", id, projection);
      expect(Object.keys(read?.fields ?? {})).toEqual([...fields]);
      expect((await reader.customers.page(query, projection)).items).toHaveLength(1);
      // The privilege is what lets it pass: without one of the fields it does not.
      for (const field of fields.filter((name) => name !== "id")) {
        await allow(fields.filter((name) => name !== field));
        await expect(reader.customers.read("t", id, projection)).rejects.toThrow("permission denied");
      }
    },
  );
});

test("every statement on customers that a request brings names the tenant of each row", async () => {
  const url = await cluster.createDatabase();
  const service = await TestService.start({ storage: await PostgresStorage.open(url) });
  const key = (name: string) => ({ "idempotency-key": `"${name}"` });
  const body = { name: "Ada", email: "ada@example.com" };
  const prefer = { prefer: "return=representation" };
  const statuses: number[] = [];
  const send = async (...request: Parameters<typeof service.send>) => {
    const reply = await service.send(...request);
    statuses.push(reply.status);
    return reply;
  };
  for (const headers of [{}, key("a"), key("a"), { ...key("b"), ...prefer }]) {
    const made = await send("POST", "/customers", { body, headers });
    const path = made.headers.get("location") ?? "";
    const { etag } = await send("GET", path);
    for (const query of ["", "?limit=1&status=active", "?fields=id&email=ada@example.com"])
      await send("GET", `/customers${query}`);
    await send("POST", "/customers/search", { body: { email: "ada@example.com" } });
    const put = await send("PUT", path, { body, headers: { ...headers, "if-match": etag } });
    await send("PUT", path, { body, headers: { "if-match": etag } });
    const patch = { body: { status: "closed" }, headers: { ...prefer, "if-match": put.etag } };
    const patched = await send("PATCH", path, patch);
    await send("DELETE", path, { headers: { ...headers, "if-match": patched.etag } });
    await send("GET", path);
  }
  await service.stop();
  expect([...new Set(statuses)].toSorted()).toEqual(expect.arrayContaining([200, 201, 204, 404, 412]));

  const statements = new Set(
    cluster.log
      .split(/\n(?!\t)/)
      .flatMap((entry) => /^customers-server\|LOG: {2}execute [^:]+: ([\s\S]*)/.exec(entry)?.[1] ?? [])
      // A command makes tokens, and no request.
      .filter((text) => !text.startsWith("INSERT INTO tokens"))
      .filter((text) => /\bcustomers c\b|INTO customers\b|FROM customers\b/.test(text)),
  );
  for (const kind of [
    "FROM customers c",
    "INSERT INTO customers",
    "UPDATE customers",
    "DELETE FROM customers",
  ])
    expect([kind, [...statements].some((text) => text.includes(kind))]).toEqual([kind, true]);
  for (const text of statements) {
    const uses = text.match(/(?:FROM|JOIN|UPDATE|INTO) customers\b/g)?.length ?? 0;
    const bound =
      text.match(/(?:\bc\.|(?<![.\w]))tenant = (?:i\.tenant|\$\d)|INTO customers \(tenant,/g)?.length ?? 0;
    expect([text, bound]).toEqual([text, uses]);
  }
});

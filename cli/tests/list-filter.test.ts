/** A filtered list shows customers that match, also where a deployment does not know the filter. */
import { afterAll, describe, expect, test } from "bun:test";
import { CustomersError, openCustomers } from "customers/client";
import { runClient } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops) await stop();
});

const ADA = { id: "1", name: "Ada", email: "Ada@example.com", status: "Closed" };
const EVE = { id: "2", name: "Eve", email: "eve@example.com", status: "active" };

type Options = { customers: readonly object[]; shown?: readonly string[]; refusesFields?: boolean };

/** Lists these customers whatever is asked for; `shown` is its default set. */
function listing({ customers, shown = ["id", "name", "email", "status"], refusesFields }: Options): string {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { searchParams } = new URL(request.url);
      const search = JSON.parse(request.method === "POST" ? await request.text() : "{}");
      const asked: string | undefined = search.fields ?? searchParams.get("fields") ?? undefined;
      if (asked !== undefined && refusesFields) return new Response(null, { status: 400 });
      const fields = asked?.split(",") ?? shown;
      const picked = customers.map((one) =>
        Object.fromEntries(Object.entries(one).filter(([name]) => fields.includes(name))),
      );
      return Response.json({ items: picked });
    },
  });
  stops.push(() => server.stop(true));
  return server.url.origin;
}

const run = (url: string, ...args: string[]) =>
  runClient(args, { env: { CUSTOMERS_URL: url, CUSTOMERS_TOKEN: TOKEN } });

describe("a deployment that ignores the filter", () => {
  const IDS = ["--output", "value", "--fields", "id"];
  test.each([
    ["list", ["list", "--status", "closed", "--all", ...IDS], "status"],
    ["list of the default set", ["list", "--status", "closed", "-o", "ndjson"], "status"],
    ["list by email", ["list", "--email", "ada@example.com", ...IDS], "email"],
    ["list by both", ["list", "--email", "eve@example.com", "--status", "active", ...IDS], "status"],
    ["export", ["export", "--status", "closed"], "status"],
    ["export of some fields", ["export", "--status", "closed", "--fields", "id"], "status"],
  ])("%s: no customer of another value is printed, and it fails", async (_, args, field) => {
    for (const shown of [undefined, ["id", "name"]]) {
      const url = listing({ customers: [ADA, EVE], ...(shown === undefined ? {} : { shown }) });
      const { exitCode, stdout, stderr } = await run(url, ...args);
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
      expect(stderr).toContain(`the server does not filter by ${field}: it answered with customers`);
    }
  });

  test("the library throws before it gives a customer of that page", async () => {
    const customers = openCustomers({ url: listing({ customers: [ADA, EVE] }), token: TOKEN });
    const error = await customers
      .list({ status: "closed", fields: ["id"] })
      .next()
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(CustomersError);
    expect(error.failure).toEqual({ kind: "unfiltered", field: "status", shown: true });
  });
});

test.each([
  ["--status", "closed", "id", '[{"id":"1"}]\n'],
  ["--email", "ada@EXAMPLE.com", "id,name", '[{"id":"1","name":"Ada"}]\n'],
  ["--status", "closed", "id,status", '[{"id":"1","status":"Closed"}]\n'],
])(
  "the field of %s is shown only where it was asked for; case is left to the server",
  async (option, value, fields, stdout) => {
    const url = listing({ customers: [ADA] });
    expect(await run(url, "list", option, value, "--fields", fields)).toMatchObject({ exitCode: 0, stdout });
  },
);

test("the default set stays as it is where it leaves out the field", async () => {
  const server = startCustomerServer();
  stops.push(server.stop);
  const { id } = server.add({ name: "Ada", email: "ada@example.com", status: "closed" });
  server.add({ status: "active" });
  const { stdout } = await run(server.url, "list", "--status", "closed");
  expect(JSON.parse(stdout)).toEqual([{ id, name: "Ada", email: "ada@example.com" }]);
  expect(await run(server.url, "list", "--status", "suspended")).toMatchObject({
    exitCode: 0,
    stdout: "[]\n",
  });
});

test("a later page without the field ends the list; earlier pages do not come twice", async () => {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => Response.json(pages.shift() ?? { items: [] }),
  });
  stops.push(() => server.stop(true));
  const { email: _, status: __, ...bare } = EVE;
  const pages = [{ items: [ADA], next: "2" }, { items: [bare] }, { items: [ADA] }];
  const { exitCode, stdout, stderr } = await run(
    server.url.origin,
    ...["list", "--status", "closed", "--all", "-o", "ndjson"],
  );
  expect({ exitCode, lines: stdout.trimEnd().split("\n").length }).toEqual({ exitCode: 1, lines: 1 });
  expect(stderr).toContain("it can't be checked whether the server filters by status");
});

test("a field that can't be shown beside the others fails, and says so", async () => {
  const url = listing({ customers: [EVE], shown: ["id", "name"], refusesFields: true });
  const { exitCode, stdout, stderr } = await run(url, "list", "--status", "active");
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
  expect(stderr).toContain("it can't be checked whether the server filters by status");
});

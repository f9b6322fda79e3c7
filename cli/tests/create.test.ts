/** Creation against servers that answer it in their own ways; the specification shows none. */
import { afterAll, describe, expect, test } from "bun:test";
import { runClient } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";
import { type Fault, startFaultyProxy } from "./support/faulty-proxy.ts";

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

const ADA = ["create", "--name", "Ada", "--email", "ada@example.com"];
const CUSTOMER = { Id: "7", Name: "Ada", Email: "ada@example.com" };

/** @param created answers POST /customers; GET /customers/7 is there, and a query on the POST is refused. */
function answering(created: () => Response): string {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname, search, searchParams } = new URL(request.url);
      if (request.method === "POST") return search === "" ? created() : new Response(null, { status: 400 });
      if (pathname !== "/customers/7") return new Response(null, { status: 404 });
      const names = (searchParams.get("fields") ?? "id,name,email").split(",");
      const members = Object.entries(CUSTOMER).filter(([name]) => names.includes(name.toLowerCase()));
      return Response.json(Object.fromEntries(members), { headers: { etag: '"1"' } });
    },
  });
  stops.push(() => server.stop(true));
  return server.url.origin;
}

const run = (url: string, ...args: string[]) =>
  runClient([...args, "--url", url], { env: { CUSTOMERS_TOKEN: TOKEN } });

describe("what is created is printed", () => {
  test.each<[string, () => Response, string[], string]>([
    ["from the reply", () => Response.json(CUSTOMER, { status: 201 }), [], `${JSON.stringify(CUSTOMER)}\n`],
    [
      "from the reply, the fields alone",
      () => Response.json(CUSTOMER, { status: 201 }),
      ["--fields", "name"],
      '{"Name":"Ada"}\n',
    ],
    [
      "by its id, where the reply has not all fields",
      () => Response.json({ Id: "7" }, { status: 201 }),
      ["--fields", "name"],
      '{"Name":"Ada"}\n',
    ],
    [
      "by Location, where the reply has no body",
      () => new Response(null, { status: 201, headers: { location: "/x/customers/7" } }),
      [],
      `${JSON.stringify(CUSTOMER)}\n`,
    ],
    [
      "by Location, bare",
      () => new Response(null, { status: 204, headers: { location: "7" } }),
      ["-o", "value", "--fields", "id"],
      "7\n",
    ],
  ])("%s", async (_, created, args, stdout) => {
    expect(await run(answering(created), ...ADA, ...args)).toMatchObject({ exitCode: 0, stdout });
  });

  test("and where the server names it nowhere, that it exists is said all the same", async () => {
    const { exitCode, stdout, stderr } = await run(
      answering(() => new Response(null, { status: 201 })),
      ...ADA,
    );
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain("was created, but");
  });
});

describe("a reply that is lost", () => {
  test.each<[string, Fault, number]>([
    ["dropped after it was applied", faults.dropReplies(), 1],
    ["dropped before", faults.dropRequests(), 0],
    ...[301, 304, 499, 500, 501, 502, 505].map((status): [string, Fault, number] => [
      `answered ${status}`,
      faults.answerAfterWrites(status),
      1,
    ]),
    ["refused with 503 and Retry-After", faults.answerInstead(503, { which: "writes", retryAfter: 0 }), 0],
  ])("%s: never sent again, exit 8, and the key makes repeating it safe", async (_, fault, created) => {
    const server = startCustomerServer();
    const proxy = await startFaultyProxy(server.url, fault);
    stops.push(server.stop, proxy.stop);
    const lost = await run(proxy.url, ...ADA);
    expect({ exitCode: lost.exitCode, size: server.size, sent: proxy.writesSeen }).toEqual({
      exitCode: 8,
      size: created,
      sent: 1,
    });
    const key = /--idempotency-key (\S+):/.exec(lost.stderr)?.[1] ?? "";
    expect(await run(proxy.url, ...ADA, "--idempotency-key", key)).toMatchObject({ exitCode: 0 });
    expect(server.size).toBe(1);
  });

  test("429 was not applied: waited for, and created once", async () => {
    const server = startCustomerServer();
    const proxy = await startFaultyProxy(
      server.url,
      faults.answerInstead(429, { which: "writes", times: 2, retryAfter: 0 }),
    );
    stops.push(server.stop, proxy.stop);
    expect(await run(proxy.url, ...ADA)).toMatchObject({ exitCode: 0 });
    expect(server.size).toBe(1);
  });
});

describe.each([
  ["no body and no Location", () => new Response(null, { status: 201 })],
  ["an id of null", () => Response.json({ id: null, name: "Ada" }, { status: 201 })],
  ["an empty id", () => Response.json({ id: "", name: "Ada" }, { status: 201 })],
])("201 with %s", (_, created) => {
  test("never gives a script an empty id", async () => {
    const { exitCode, stdout, stderr } = await run(
      answering(created),
      ...[...ADA, "--output", "value", "--fields", "id"],
    );
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain("was created, but the server did not say its id");
  });

  test("is created with --result, with a warning that the id is unknown", async () => {
    const { exitCode, stdout, stderr } = await run(answering(created), ...ADA, "--result");
    expect({ exitCode, ...JSON.parse(stdout) }).toMatchObject({ exitCode: 0, result: "created", id: null });
    expect(stderr).toContain("warning: the customer ada@example.com was created");
  });
});

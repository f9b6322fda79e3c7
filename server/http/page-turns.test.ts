import { afterAll, expect, test } from "bun:test";
import { RawConnection, type RawRequest, rawRequest } from "../tests/support/http/raw-connection.ts";
import { TestService } from "../tests/support/service/test-service.ts";
import { PageTurns } from "./page-turns.ts";

const service = await TestService.start();
afterAll(() => service.stop());

/** Runs these pages. @returns the tenants whose pages were read in one turn of the event loop, turn by turn */
async function turnsOf(pages: readonly (readonly [tenant: string, customers: number])[]): Promise<string[]> {
  const turns = new PageTurns();
  const read: string[] = [""];
  let isOver = false;
  // Registered first, so that it begins each turn.
  setImmediate(function begin() {
    read.push("");
    if (!isOver) setImmediate(begin);
  });
  await Promise.all(
    pages.map(([tenant, customers]) =>
      turns.run(tenant, customers, () => {
        read.push(`${read.pop()}${tenant}`);
      }),
    ),
  );
  isOver = true;
  return read.filter((turn) => turn !== "");
}

const many = (count: number, tenant: string, customers: number) =>
  Array.from({ length: count }, () => [tenant, customers] as const);

test("one turn reads as many customers as the longest page has", async () => {
  expect(await turnsOf(many(3, "a", 500))).toEqual(["a", "a", "a"]);
  expect(await turnsOf(many(12, "a", 50))).toEqual(["aaaaaaaaaa", "aa"]);
  expect(await turnsOf([...many(1, "a", 300), ...many(1, "b", 200), ...many(1, "c", 1)])).toEqual([
    "ab",
    "c",
  ]);
});

test("tenants take turns, however many pages each of them waits for", async () => {
  const pages = [...many(4, "a", 500), ...many(2, "b", 500), ...many(1, "c", 500)];
  expect(await turnsOf(pages)).toEqual(["a", "a", "b", "c", "a", "b", "a"]);
});

test("a small page does not overtake those of its own tenant", async () => {
  expect(await turnsOf([...many(2, "a", 500), ...many(1, "a", 1)])).toEqual(["a", "a", "a"]);
});

test("a page that fails leaves the others their turns", async () => {
  const turns = new PageTurns();
  const fail = () => Promise.reject(new Error("no page"));
  const settled = await Promise.allSettled([
    turns.run("a", 500, () => "first"),
    turns.run("a", 500, fail),
    turns.run("a", 500, () => "third"),
  ]);
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

const PAGES = 64;

test(`with ${PAGES} pages of one tenant on their way, another's read, write and page are answered before most of them`, async () => {
  const neighbour = { client: "neighbour", tenant: "globex" };
  const { path, etag } = await service.customer({}, neighbour);
  const authorization = async (caller: object) => `Authorization: Bearer ${await service.token(caller)}`;
  const flooding = await authorization({ client: "flood" });
  const own = await authorization(neighbour);
  const body = Buffer.from('{"name":"Eve","email":"eve@example.com"}');
  const json = ["Content-Type: application/json", `If-Match: ${etag}`];
  const requests: RawRequest[] = [
    ...Array.from({ length: PAGES }, () => rawRequest("GET", "/customers?limit=500", [flooding])),
    rawRequest("GET", `${path}?fields=name`, [own]),
    rawRequest("PUT", path, [own, ...json], body),
    rawRequest("GET", "/customers?limit=500", [own]),
  ];
  const connections = await Promise.all(requests.map(() => RawConnection.open(service.port)));
  service.logLines.length = 0;
  const replies = await Promise.all(
    requests.map((request, at) => connections[at]?.send(request) ?? Promise.resolve(null)),
  );
  expect(replies.map((reply) => reply?.status)).toEqual([...Array(PAGES).fill(200), 200, 204, 200]);

  const order = service.logLines.map(({ client, method, route }) => `${client} ${method} ${route}`);
  expect(order).toHaveLength(requests.length);
  const mine = order.flatMap((line, at) => (line.startsWith("neighbour") ? [at] : []));
  expect(mine).toHaveLength(3);
  expect(Math.max(...mine)).toBeLessThan(PAGES / 2);
});

test("a page for which the turn has room is read at once: a reply in a later turn would cost pipelined ones", () => {
  const turns = new PageTurns();
  const pages = Array.from({ length: 10 }, (_, at) => turns.run("a", 50, () => at));
  expect(pages).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(turns.run("a", 50, () => 10)).toBeInstanceOf(Promise);
});

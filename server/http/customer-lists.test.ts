import { afterAll, describe, expect, test } from "bun:test";
import { TestService } from "../tests/support/service/test-service.ts";

const service = await TestService.start();
afterAll(() => service.stop());

test.each([{ "if-match": '"AAAAAAAAAAAAAAAA"' }, { "if-match": "*" }, { "if-none-match": "*" }])(
  "%j means nothing where there is no entity-tag: on a creation, a list, a search, a history",
  async (headers) => {
    const { path } = await service.customer();
    const body = { name: "Ada", email: "ada@example.com" };
    for (const [method, target, options, status] of [
      ["POST", "/customers", { body }, 201],
      ["GET", "/customers", {}, 200],
      ["POST", "/customers/search", { body: {} }, 200],
      ["GET", `${path}/history`, {}, 200],
    ] as const) {
      expect([target, (await service.send(method, target, { ...options, headers })).status]).toEqual([
        target,
        status,
      ]);
    }
  },
);

describe("lists", () => {
  const caller = { tenant: "lists" };
  test("pages follow by cursor and by Link, each customer once, in the order of creation", async () => {
    const made: string[] = [];
    for (let index = 0; index < 7; index += 1) {
      made.push((await service.customer({ status: index % 2 === 0 ? "active" : "closed" }, caller)).id);
    }
    const seen: string[] = [];
    let path: string | null = "/customers?limit=3&fields=id";
    while (path !== null) {
      const page: Awaited<ReturnType<typeof service.send>> = await service.send("GET", path, { caller });
      seen.push(...page.json.items.map((item: { customer: { id: string } }) => item.customer.id));
      const link: string | undefined = /^<([^>]*)>; rel="next"$/.exec(page.headers.get("link") ?? "")?.[1];
      expect(link === undefined).toBe(page.json.next === null);
      path = link ?? null;
    }
    expect(seen).toEqual(made);
    const closed = await service.send("GET", "/customers?status=closed&fields=status,id", { caller });
    expect(closed.json.items).toHaveLength(3);
  });

  test("a cursor shows no id, and is accepted only for its own tenant and filter", async () => {
    const page = await service.send("GET", "/customers?limit=1", { caller });
    const cursor: string = page.json.next;
    const id: string = page.json.items[0].customer.id;
    expect(Buffer.from(cursor, "base64url").toString("hex")).not.toContain(id.replaceAll("-", ""));
    const refused = [
      ["/customers?status=active", caller],
      ["/customers?", { tenant: "other" }],
    ] as const;
    for (const [path, who] of refused) {
      const reply = await service.send("GET", `${path}&cursor=${cursor}`, { caller: who });
      expect(reply.json.code).toBe("invalid-parameter");
    }
    const flipped = `${cursor[0] === "A" ? "B" : "A"}${cursor.slice(1)}`;
    expect((await service.send("GET", `/customers?cursor=${flipped}`, { caller })).status).toBe(400);
  });

  test.each([
    ["fields=nmae", "unknown-field"],
    ["fields=", "empty-fields"],
  ])("a search by ?%s is refused for its query (%s), whatever its body is", async (query, code) => {
    const reply = await service.send("POST", `/customers/search?${query}`, { body: "{" });
    expect([reply.status, reply.json.code]).toEqual([400, code]);
  });

  test("a search takes its filter from the body, pages by cursor, and puts no personal data into an address", async () => {
    const twins = { tenant: "twins" };
    for (let index = 0; index < 3; index += 1) await service.customer({ email: "twin@example.com" }, twins);
    const body = { email: "twin@example.com", fields: "id, EMAIL", limit: 2 };
    const first = await service.send("POST", "/customers/search", { caller: twins, body });
    expect(first.json.items).toHaveLength(2);
    expect(Object.keys(first.json.items[0].customer)).toEqual(["id", "email"]);
    expect(first.headers.get("link")).toBeNull();
    const second = await service.send("POST", "/customers/search", {
      caller: twins,
      body: { ...body, cursor: first.json.next },
    });
    expect([second.json.items.length, second.json.next]).toEqual([1, null]);
    const lower = await service.send("POST", "/customers/search", {
      caller: twins,
      body: { email: "TWIN@example.com" },
    });
    expect(lower.json.items).toHaveLength(3);
  });
});

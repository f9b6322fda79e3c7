/** Lists in the shapes that deployments give them. */
import { afterAll, describe, expect, test } from "bun:test";
import { plainText } from "../client/customer.ts";
import { eachPage } from "../client/pages.ts";
import { startDeadline } from "../client/wire/deadline.ts";
import type { ListQuery } from "../client/wire/request.ts";
import { emptyProfileFile } from "../config/profile/profile-file.ts";
import { readSettings } from "../config/settings.ts";
import { openCustomersApi } from "../http/customers-api.ts";
import { listFailure } from "../outcome/reply-failure.ts";
import { runClient } from "./support/client.ts";

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops) await stop();
});
const silent = { verbose() {} };

/** Every customer's id, page by page, or the failure's message; and the requests that were made. */
async function listed(
  answer: (url: URL, request: Request) => Response | Promise<Response>,
  query: ListQuery = {},
) {
  const seen: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const url = new URL(request.url);
      seen.push(`${request.method} ${url.pathname}${url.search}`);
      return answer(url, request);
    },
  });
  stops.push(() => server.stop(true));
  const flags = { url: `${server.url.origin}/base` };
  const settings = await readSettings({
    flags,
    env: {},
    file: emptyProfileFile(""),
    readStdin: async () => "",
  });
  const api = openCustomersApi(settings, silent);
  const pages: (string[] | string)[] = [];
  const ports = () => ({ transport: api, deadline: startDeadline(20_000, new AbortController().signal) });
  for await (const page of eachPage(ports, query)) {
    pages.push(
      page.kind === "page"
        ? page.items.map(({ value, etag }) => `${plainText(value.get("id") ?? "?")}${etag ?? ""}`)
        : listFailure(page, { url: api.url }).message,
    );
  }
  await api.close();
  return { pages, seen };
}
const json = (body: unknown, link?: string) =>
  Response.json(body, link === undefined ? {} : { headers: { link } });

describe("one page", () => {
  test.each([
    ["a bare array", [{ id: 1 }, { id: 2 }], ["1", "2"]],
    ["items with etags", { items: [{ etag: '"a"', customer: { id: 1 } }], next: null }, ['1"a"']],
    ["an array under another name", { total: 1, value: [{ id: 1 }] }, ["1"]],
    ["no customers", { items: [] }, []],
  ])("%s", async (_, body, ids) => {
    expect((await listed(() => json(body))).pages).toEqual([ids]);
  });
});

describe("the next page", () => {
  const second = [{ id: 2 }];
  test.each([
    ["a path", '</base/customers?page=2>; rel="next"'],
    ["relative to the list", "<customers?page=2>; rel=next"],
    [
      "among other links",
      '</base/x>; rel="first"; title="a, b", </base/customers?page=2>; title="n"; rel="NEXT last"',
    ],
    ["after a text that looks like a relation", '<customers?page=2>; title="a; rel=x"; rel="next"'],
    ["after a text with a quotation mark", '<customers?page=2>; title="q\\"x"; rel="next"'],
    ["after a text with a quoted relation", '<customers?page=2>; title="rel=\\"x\\""; rel=next'],
  ])("by Link: %s", async (_, link) => {
    const { pages, seen } = await listed((url) =>
      url.search === "" ? json([{ id: 1 }], link) : json(second),
    );
    expect({ pages, seen }).toEqual({
      pages: [["1"], ["2"]],
      seen: ["GET /base/customers", "GET /base/customers?page=2"],
    });
  });

  test("by cursor, with the same query", async () => {
    const { seen } = await listed(
      (url) =>
        json({
          items: [{ id: 1, status: "active" }],
          next: url.searchParams.has("cursor") ? null : "a&b=/",
        }),
      { status: "active", fields: ["id", "status"], limit: 1 },
    );
    expect(seen).toEqual([
      "GET /base/customers?fields=id,status&status=active&limit=1",
      "GET /base/customers?fields=id,status&status=active&limit=1&cursor=a%26b%3D%2F",
    ]);
  });

  test("of a search is the same search, so that the address stays out of URLs", async () => {
    const bodies: unknown[] = [];
    const { seen } = await listed(
      async (_, request) => {
        bodies.push(await request.json());
        return json(
          { items: [], next: bodies.length === 1 ? "c" : null },
          '</base/customers?email=a@b>; rel="next"',
        );
      },
      { email: "a@b" },
    );
    expect(seen).toEqual(["POST /base/customers/search", "POST /base/customers/search"]);
    expect(bodies).toEqual([{ email: "a@b" }, { email: "a@b", cursor: "c" }]);
  });

  test.each([
    ["on another server", '<https://elsewhere.example/customers?page=2>; rel="next"'],
    ["outside of the base URL", '</other/customers?page=2>; rel="next"'],
    ["that is no address", '<http://[>; rel="next"'],
    ["that only looks like one inside", '</base-of-another/customers>; rel="next"'],
  ])(
    "%s is not followed, since credentials go nowhere else, and the part is not taken for the whole",
    async (_, link) => {
      const { pages, seen } = await listed(() => json([{ id: 1 }], link));
      expect(seen).toEqual(["GET /base/customers"]);
      expect(pages.at(-1)).toContain("is not complete");
    },
  );

  test.each([
    ["another host", "http://internal.svc:8080/base/customers?page=2"],
    ["another scheme", "https://127.0.0.1/base/customers?page=2"],
  ])("named with %s, as a service behind a proxy does, is asked of our own", async (_, target) => {
    const { pages, seen } = await listed((url) =>
      url.search === "" ? json([{ id: 1 }], `<${target}>; rel="next"`) : json(second),
    );
    expect({ pages, seen }).toEqual({
      pages: [["1"], ["2"]],
      seen: ["GET /base/customers", "GET /base/customers?page=2"],
    });
  });

  const there = "/base/customers?page=2";
  test.each<[string, object]>([
    ["@odata.nextLink", { value: [{ id: 1 }], "@odata.nextLink": there }],
    ["a next that is a link", { results: [{ id: 1 }], next: there }],
    ["links.next", { data: [{ id: 1 }], links: { next: there } }],
    ["_links.next.href", { items: [{ id: 1 }], _links: { next: { href: there } } }],
  ])("by a link in the body: %s", async (_, first) => {
    const { pages } = await listed((url) => json(url.search === "" ? first : second));
    expect(pages).toEqual([["1"], ["2"]]);
  });

  test.each<[string, object]>([
    ["nextPageToken", { items: [{ id: 1 }], nextPageToken: "abc" }],
    ["next_cursor", { data: [{ id: 1 }], meta: { next_cursor: "abc" } }],
    ["hasMore", { data: [{ id: 1 }], hasMore: true }],
    ["a page number", { data: [{ id: 1 }], pagination: { nextPage: 2 } }],
    ["a total", { items: [{ id: 1 }], total: 10, limit: 1, offset: 0 }],
    ["a count", { items: [{ id: 1 }], count: 10 }],
    ["a nested total", { items: [{ id: 1 }], meta: { total: 10 } }],
    ["a total in text", { items: [{ id: 1 }], total_count: "10" }],
    ["@odata.count", { value: [{ id: 1 }], "@odata.count": 2 }],
    ["a number of pages", { content: [{ id: 1 }], page: { totalPages: 3, number: 0 } }],
    ["truncated", { items: [{ id: 1 }], truncated: true }],
  ])("in a way that can't be followed is reported: %s", async (_, body) => {
    const { pages, seen } = await listed(() => json(body));
    expect(seen).toHaveLength(1);
    expect(pages).toEqual([["1"], expect.stringContaining("is not complete")]);
  });

  test.each<[string, object]>([
    ["null", { items: [{ id: 1 }], next: null, nextPageToken: null }],
    ["empty", { items: [{ id: 1 }], nextPageToken: "", links: { next: null } }],
    ["false", { items: [{ id: 1 }], hasMore: false, total: 1 }],
    ["a total of what came", { items: [{ id: 1 }], total: 1, count: 1, page: 1, totalPages: 1 }],
    ["a count of a page beside its total", { items: [{ id: 1 }], total: 1, count: 50 }],
    ["a total of what others may see", { items: [{ id: 1 }], total: 10, next: null }],
    ["not truncated", { items: [{ id: 1 }], isTruncated: false }],
  ])("is not there: %s", async (_, body) => {
    expect((await listed(() => json(body))).pages).toEqual([["1"]]);
  });

  test.each([
    ["X-Total-Count", "10", false],
    ["X-Total-Count", "1", true],
    ["Content-Range", "items 0-0/10", false],
    ["Content-Range", "items 0-0/1", true],
    ["Content-Range", "items 0-0/*", true],
  ])("after %s: %s", async (name, value, whole) => {
    const { pages } = await listed(() => Response.json([{ id: 1 }], { headers: { [name]: value } }));
    expect(pages).toEqual(whole ? [["1"]] : [["1"], expect.stringContaining(`says by "${name}"`)]);
  });

  test.each([
    ['</base/customers>; rel="first"', true],
    ['</schema>; rel="describedby"', false],
  ])("by a total, beside Link: %s", async (link, whole) => {
    const { pages } = await listed(() => json({ items: [{ id: 1 }], total: 10 }, link));
    expect(pages.length).toBe(whole ? 1 : 2);
  });

  test("is there where a total is more than all pages brought, and a count of the limit says nothing", async () => {
    const paged = (total: number) =>
      listed((url) =>
        url.search === ""
          ? json({ items: [{ id: 1 }], total, next: "c" })
          : json({ items: [{ id: 2 }], total }),
      );
    expect((await paged(2)).pages).toEqual([["1"], ["2"]]);
    expect((await paged(3)).pages.at(-1)).toContain('says by "total"');
    expect((await listed(() => json({ items: [{ id: 1 }], count: 50 }), { limit: 50 })).pages).toEqual([
      ["1"],
    ]);
  });

  test("on another server is had by its cursor, where there is one", async () => {
    const { pages } = await listed((url) =>
      url.search === ""
        ? json({ items: [{ id: 1 }], next: "c" }, '<https://internal.example/customers?cursor=c>; rel="next"')
        : json({ items: [{ id: 2 }], next: null }),
    );
    expect(pages).toEqual([["1"], ["2"]]);
  });

  test("is not what a link of another relation names", async () => {
    const { pages } = await listed(() => json([{ id: 1 }], '</base/customers?page=2>; rel="prev"'));
    expect(pages).toEqual([["1"]]);
  });

  test.each([
    ["a quotation mark that is not closed", '</base/customers?page=2>; rel="next'],
    ["no angle brackets", '/base/customers?page=2; rel="next"'],
    ["other quotation marks", "</base/customers?page=2>; rel='next'"],
    ["a relation of its own", '</base/customers?page=2>; rel="next-page"'],
  ])(
    "in a Link that can't be read is reported, unless the body says that it is the end: %s",
    async (_, link) => {
      const { pages } = await listed(() => json([{ id: 1 }], link));
      expect(pages).toEqual([["1"], expect.stringContaining('says by "Link"')]);
      expect((await listed(() => json({ items: [{ id: 1 }], next: null }, link))).pages).toEqual([["1"]]);
    },
  );

  test("of a search that only a Link names is reported", async () => {
    const link = '</base/customers?page=2>; rel="next"';
    const { pages } = await listed(() => json([{ email: "a@b" }], link), { email: "a@b" });
    expect(pages.at(-1)).toContain('says by "Link"');
  });

  test("that was there already ends the list as a failure", async () => {
    const { pages } = await listed(() => json([{ id: 1 }], '</base/customers?page=2>; rel="next"'));
    expect(pages.at(-1)).toContain("goes round in a circle");
  });
});

test.each([
  ["a full page of which nothing says that it is the last", "2", [{ id: 1 }, { id: 2 }], true],
  ["a page that is not full", "3", [{ id: 1 }, { id: 2 }], false],
  [
    "a full page whose total says that it is the last",
    "2",
    { items: [{ id: 1 }, { id: 2 }], total: 2 },
    false,
  ],
  ["a full page that is said to be the last", "2", { items: [{ id: 1 }, { id: 2 }], next: null }, false],
])("%s: list --all and export warn, or do not", async (_, size, body, warns) => {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => json(body) });
  stops.push(() => server.stop(true));
  for (const args of [
    ["list", "--all", "--limit", size],
    ["export", "--page-size", size],
  ]) {
    const { exitCode, stderr } = await runClient([...args, "--fields", "id", "--url", server.url.origin]);
    expect({ exitCode, warns: stderr.includes("does not say whether there are more customers") }).toEqual({
      exitCode: 0,
      warns,
    });
  }
});

test("a Link that can't be read ends list --all and export with exit 1", async () => {
  const answer = () => json([{ id: 1 }], '</customers?page=2>; rel="next');
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  stops.push(() => server.stop(true));
  for (const args of [["list", "--all"], ["export"]]) {
    const { exitCode, stderr } = await runClient([...args, "--fields", "id", "--url", server.url.origin]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining("is not complete") });
  }
});

test.each([
  ["no JSON", () => new Response("<html>"), "holds no array"],
  ["an object without an array", () => json({ a: 1 }), "holds no array"],
  ["a refusal", () => new Response(null, { status: 403 }), "do not allow it (403)"],
])("%s is a failure", async (_, answer, words) => {
  expect((await listed(answer)).pages.at(-1)).toContain(words);
});

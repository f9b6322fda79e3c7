/** What browsers are told, on every route and with every refusal. */
import { afterAll, describe, expect, test } from "bun:test";
import { ROUTES } from "./support/http/described-reply.ts";
import { type Reply, TestService } from "./support/service/test-service.ts";

const service = await TestService.start();
afterAll(() => service.stop());
const { path } = await service.customer();

const PARAMETERS = { "{id}": path.replace("/customers/", ""), "{code}": "invalid-body" };
const REFERENCE_FILES = ["swagger-ui-bundle.js", "swagger-ui.css", "initializer.js"];
const paths = [...new Set(ROUTES.map((route) => route.path))].flatMap((template) =>
  template === "/docs/{file}"
    ? REFERENCE_FILES.map((file) => `/docs/${file}`)
    : [
        Object.entries(PARAMETERS).reduce(
          (all, [name, value]) => all.replace(name, value),
          template as string,
        ),
      ],
);

/** As a browser asks that is led to an address, by a link or by the page of someone else. */
const visit = (at: string, method = "GET"): Promise<Reply> =>
  service.send(method, at, { caller: null, headers: { accept: "text/html,*/*;q=0.8" } });

/** The directives of a policy, by name. */
function directives({ headers }: Reply): Map<string, string> {
  const policy = headers.get("content-security-policy") ?? "";
  return new Map(
    policy.split("; ").map((directive): [string, string] => {
      const [name = "", ...values] = directive.split(" ");
      return [name, values.join(" ")];
    }),
  );
}

describe.each([...paths, "/nowhere", "/problems/none", "/docs/none", "/customers?nope=1"])(
  "what a browser shows of %s without a token",
  (at) => {
    test.each(["GET", "HEAD", "POST", "DELETE", "OPTIONS"])(
      "may load and run nothing that it does not name, be framed by no page, and tells no one of its reader: %s",
      async (method) => {
        const reply = await visit(at, method);
        const policy = directives(reply);
        expect(policy.get("default-src")).toBe("'none'");
        expect(policy.get("frame-ancestors")).toBe("'none'");
        for (const [name, value] of policy) {
          expect([name, /unsafe|\*|https?:/.test(value)]).toEqual([name, false]);
        }
        expect(reply.headers.get("referrer-policy")).toBe("no-referrer");
        expect(reply.headers.get("x-content-type-options")).toBe("nosniff");
      },
    );

    test("is of the type that it says, and pages are kept apart from the one that opened them", async () => {
      const { status, text, headers } = await visit(at);
      expect(text).not.toBe("");
      const type = headers.get("content-type") ?? "";
      expect(type).toMatch(
        /^(?:application\/(?:problem\+)?json|application\/yaml|text\/(?:html|css|javascript); charset=utf-8)$/,
      );
      const isPage = type.startsWith("text/html");
      expect([isPage, headers.get("cross-origin-opener-policy")]).toEqual([
        isPage,
        isPage ? "same-origin" : null,
      ]);
      expect(isPage || status !== 200 || !text.startsWith("<")).toBe(true);
    });

    test("is kept by caches only where it is the same for everyone", async () => {
      const { status, headers } = await visit(at);
      const isSame = status === 200 && !["/healthz", "/readyz"].includes(at);
      expect(headers.get("cache-control")).toMatch(isSame ? /^public, max-age=\d+$/ : /^no-store$/);
      expect(headers.get("set-cookie")).toBeNull();
    });
  },
);

test("what only a request with a token gets is never taken for a page, and kept by no shared cache", async () => {
  const replies = [
    await service.send("GET", path),
    await service.send("GET", "/customers"),
    await service.send("POST", "/customers/search", { body: {} }),
    await service.send("POST", "/customers", { body: { name: "<b>", email: "a@b.example" } }),
    await service.send("GET", "/metrics", { caller: { role: "monitor" } }),
  ];
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 201, 200]);
  for (const { headers } of replies) {
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("content-type")).toMatch(/^(?:application\/json|text\/plain; )/);
    expect(headers.get("cache-control")).toMatch(/^(?:private, no-cache, no-transform|no-store)$/);
  }
});

import { afterAll, afterEach, describe, expect, test } from "bun:test";
import type { Scope } from "../domain/policy/scope.ts";
import { bodyLater } from "./support/http/body-later.ts";
import type { RawReply } from "./support/http/raw-exchange.ts";
import { TestService } from "./support/service/test-service.ts";

const DAY_MS = 86_400_000;
const UNTIL_MS = Date.UTC(2027, 2, 31);
const ALL = '["id", "name", "email", "status"]';
const EVERYTHING = '["get", "list", "create", "replace", "patch", "delete"]';
const STRICT = 'mode = "strict"';
const OBSERVE = 'mode = "observe"\nuntil = 2027-03-31';

const policy = (read = ALL, operations = EVERYTHING, enforcement = STRICT): string =>
  `[roles.admin]\nread = ${ALL}\noperations = ${EVERYTHING}\n[roles.clerk]\nread = ${read}\noperations = ${operations}\n[enforcement]\n${enforcement}\n`;

let nowMs = UNTIL_MS - DAY_MS;
const service = await TestService.start({ policy: policy(), now: () => nowMs });
afterAll(() => service.stop());

let clerks = 0;

/** Of the clerk's token. */
let scope: Scope | undefined;

/** Sends a request up to its body, changes something, and sends the body. */
async function changedMeanwhile(
  method: string,
  path: string,
  lines: readonly string[],
  body: object,
  change: (token: string) => unknown,
): Promise<RawReply> {
  clerks += 1;
  const clerk = { role: "clerk", client: `clerk-${clerks}`, tenant: "acme", scope };
  const { token } = await service.storage.tokens.create(clerk, nowMs, nowMs + 2 * DAY_MS);
  const head = [`${method} ${path} HTTP/1.1`, `Authorization: Bearer ${token}`, ...lines];
  return await bodyLater(service.port, head, body, () => change(token));
}

const NEXT = { name: "Grace", email: "grace@example.com" };
const WRITES = [
  { method: "PUT", operation: "replace", body: NEXT },
  { method: "PATCH", operation: "patch", body: NEXT },
  { method: "POST", operation: "create", body: NEXT },
  { method: "DELETE", operation: "delete", body: {} },
] as const;
const HIDDEN = '["id", "name", "status"]';
const without = (operation: string): string =>
  EVERYTHING.replace(new RegExp(`, "${operation}"|"${operation}", `), "");

describe.each(WRITES)(
  "what changes while the body of a $method is under way decides it",
  ({ method, operation, body }) => {
    const isCreate = method === "POST";
    /** @returns the reply, and whether it changed anything */
    async function send(
      before: string,
      change: (token: string) => unknown,
      query = "",
      lines: (etag: string) => string[] = (etag) => [`If-Match: ${etag}`, "Prefer: return=representation"],
    ): Promise<{ reply: RawReply; isApplied: boolean }> {
      nowMs = UNTIL_MS - DAY_MS;
      service.reload(before);
      const { path, etag } = await service.customer();
      const count = async (): Promise<number> =>
        (await service.send("GET", "/customers?limit=500")).json.items.length;
      const earlier = await count();
      const reply = await changedMeanwhile(
        method,
        `${isCreate ? "/customers" : path}${query}`,
        lines(etag),
        body,
        change,
      );
      const isApplied = isCreate
        ? (await count()) > earlier
        : (await service.send("GET", path)).etag !== etag;
      return { reply, isApplied };
    }

    test.each<[string, string, (token: string) => unknown, string, number, string]>([
      [
        "the token is revoked",
        policy(),
        (token) => service.storage.tokens.revoke(token, nowMs),
        "",
        401,
        "unauthenticated",
      ],
      [
        "the token expires",
        policy(),
        () => {
          nowMs += 2 * DAY_MS;
        },
        "",
        401,
        "unauthenticated",
      ],
      [
        "the tenant gets a row of its own for the role",
        policy(),
        () => service.reload(`${policy()}[tenants.acme.roles.clerk]\nread = ${ALL}\noperations = ["get"]\n`),
        "",
        403,
        "forbidden-operation",
      ],
      [
        "the role loses the operation",
        policy(),
        () => service.reload(policy(ALL, without(operation))),
        "",
        403,
        "forbidden-operation",
      ],
      [
        "the role goes",
        policy(),
        () => service.reload(policy().replaceAll("clerk", "other")),
        "",
        403,
        "forbidden-operation",
      ],
      [
        "a field that it names is hidden",
        policy(),
        () => service.reload(policy(HIDDEN)),
        "?fields=name,email",
        403,
        "forbidden-field",
      ],
    ])("%s", async (_, before, change, query, status, code) => {
      const { reply, isApplied } = await send(before, change, query);
      expect([reply.status, JSON.parse(reply.body).code, isApplied]).toEqual([status, code, false]);
    });

    if (method !== "DELETE") {
      test("a field of the default set that is hidden is left out of the answer", async () => {
        const { reply, isApplied } = await send(policy(), () => service.reload(policy(HIDDEN)));
        expect([reply.status, isApplied]).toEqual([isCreate ? 201 : 200, true]);
        expect(Object.keys(JSON.parse(reply.body))).toEqual(["id", "name"]);
      });

      test("a field of the default set that is shown again is in the answer", async () => {
        const { reply } = await send(policy(HIDDEN), () => service.reload(policy()));
        expect(Object.keys(JSON.parse(reply.body))).toEqual(["id", "name", "email"]);
      });
    }

    const enforced: [string, () => unknown][] = [
      ["the policy becomes strict", () => service.reload(policy())],
      [
        "the rollout ends",
        () => {
          nowMs = UNTIL_MS;
        },
      ],
      [
        "the client is enforced",
        () => service.reload(policy(ALL, EVERYTHING, `${OBSERVE}\nenforced_clients = ["clerk-${clerks}"]`)),
      ],
      [
        "the method is enforced",
        () => service.reload(policy(ALL, EVERYTHING, `${OBSERVE}\nenforced_methods = ["${method}"]`)),
      ],
    ];
    if (isCreate) return;
    test.each(enforced)("a write without If-Match is 428 where %s", async (_, change) => {
      const { reply, isApplied } = await send(policy(ALL, EVERYTHING, OBSERVE), change, "", () => []);
      expect([reply.status, isApplied]).toEqual([428, false]);
    });

    test("a write without If-Match is announced the end date that holds when it is applied", async () => {
      const later = OBSERVE.replace("2027-03-31", "2027-06-30");
      const change = (): void => service.reload(policy(ALL, EVERYTHING, later));
      const { reply, isApplied } = await send(policy(ALL, EVERYTHING, OBSERVE), change, "", () => []);
      expect([reply.status, reply.headers.get("precondition-enforced-from"), isApplied]).toEqual([
        204,
        "2027-06-30",
        true,
      ]);
    });

    test("a revoked token with a bad body does not learn whether the customer exists", async () => {
      service.reload(policy());
      const { path } = await service.customer();
      const revoke = (token: string) => service.storage.tokens.revoke(token, nowMs);
      const reply = await changedMeanwhile(method, path, ['If-Match: "x"'], { nope: 1 }, revoke);
      expect(reply.status).toBe(401);
    });
  },
);

describe("what changes while the body of a search is under way decides it", () => {
  const search = async (before: string, change: (token: string) => unknown, body: object, query = "") => {
    nowMs = UNTIL_MS - DAY_MS;
    service.reload(before);
    await service.customer();
    const reply = await changedMeanwhile(
      "POST",
      `/customers/search${query}`,
      [],
      { limit: 1, ...body },
      change,
    );
    return { status: reply.status, ...JSON.parse(reply.body) };
  };
  const hide = (): void => service.reload(policy(HIDDEN));
  test.each<[string, (token: string) => unknown, object, string, number, string]>([
    [
      "the token is revoked",
      (token) => service.storage.tokens.revoke(token, nowMs),
      {},
      "",
      401,
      "unauthenticated",
    ],
    [
      "the role loses the operation",
      () => service.reload(policy(ALL, without("list"))),
      {},
      "",
      403,
      "forbidden-operation",
    ],
    ["a field of the query is hidden", hide, {}, "?fields=email", 403, "forbidden-field"],
    ["a field of the body is hidden", hide, { fields: ["email"] }, "", 403, "forbidden-field"],
    ["the field of the filter is hidden", hide, { email: "ada@example.com" }, "", 403, "forbidden-field"],
  ])("%s", async (_, change, body, query, status, code) => {
    expect(await search(policy(), change, body, query)).toMatchObject({ status, code });
  });

  test("a field of the default set that is hidden is left out", async () => {
    const { items } = await search(policy(), hide, {});
    expect(Object.keys(items[0].customer)).toEqual(["id", "name"]);
  });

  test("a field of the body that is shown again is answered", async () => {
    const { items } = await search(policy(HIDDEN), () => service.reload(policy()), { fields: "email" });
    expect(Object.keys(items[0].customer)).toEqual(["email"]);
  });
});

describe("a copy from before a reload that hid a field is not confirmed", () => {
  const caller = { role: "clerk" };
  test("by default: 200 without the field, under the same entity-tag", async () => {
    service.reload(policy());
    const { path, etag } = await service.customer();
    const headers = { "if-none-match": etag };
    expect((await service.send("GET", path, { caller, headers })).status).toBe(304);
    service.reload(policy(HIDDEN));
    const hidden = await service.send("GET", path, { caller, headers });
    expect([hidden.status, Object.keys(hidden.json), hidden.etag]).toEqual([200, ["id", "name"], etag]);
  });

  test("by name: 304 where it may be read, 403 where not", async () => {
    service.reload(policy(HIDDEN));
    const { path, etag } = await service.customer();
    const headers = { "if-none-match": etag };
    const named = await service.send("GET", `${path}?fields=id,name`, { caller, headers });
    const hidden = await service.send("GET", `${path}?fields=id,email`, { caller, headers });
    expect([named.status, hidden.status]).toEqual([304, 403]);
  });
});

describe("a scope narrows what the role may when the body has arrived, whatever the policy was before", () => {
  const prefer = (etag: string) => [`If-Match: ${etag}`, "Prefer: return=representation"];
  afterEach(() => {
    scope = undefined;
  });

  test("a role that gains a field and an operation gives a token with a scope neither", async () => {
    service.reload(policy(HIDDEN));
    const { path, etag } = await service.customer();
    scope = { fields: "id,name", operations: "get,patch" };
    const patched = await changedMeanwhile("PATCH", path, prefer(etag), NEXT, () => service.reload(policy()));
    expect([patched.status, Object.keys(JSON.parse(patched.body))]).toEqual([200, ["id", "name"]]);
    const put = await changedMeanwhile("PUT", path, prefer(etag), NEXT, () => service.reload(policy()));
    expect([put.status, JSON.parse(put.body).code]).toEqual([403, "forbidden-operation"]);
  });

  test("a role that loses a field takes it from a token whose scope names it", async () => {
    service.reload(policy());
    const { path, etag } = await service.customer();
    scope = { fields: "name,email", operations: null };
    const hide = () => service.reload(policy(HIDDEN));
    const patched = await changedMeanwhile("PATCH", path, prefer(etag), NEXT, hide);
    expect([patched.status, Object.keys(JSON.parse(patched.body))]).toEqual([200, ["name"]]);
  });

  test("a role that loses an operation takes it from a token whose scope names it", async () => {
    service.reload(policy());
    const { path, etag } = await service.customer();
    scope = { fields: null, operations: "patch" };
    const take = () => service.reload(policy(ALL, without("patch")));
    const patched = await changedMeanwhile("PATCH", path, prefer(etag), NEXT, take);
    expect([patched.status, JSON.parse(patched.body).code]).toEqual([403, "forbidden-operation"]);
    expect((await service.send("GET", path)).etag).toBe(etag);
  });

  test("a search is answered in the fields that both allow when its body has arrived", async () => {
    service.reload(policy());
    await service.customer();
    scope = { fields: "name,email", operations: "list" };
    const hide = () => service.reload(policy(HIDDEN));
    const found = await changedMeanwhile("POST", "/customers/search", [], { limit: 1 }, hide);
    expect(Object.keys(JSON.parse(found.body).items[0].customer)).toEqual(["name"]);
    const filtered = await changedMeanwhile("POST", "/customers/search", [], { status: "active" }, () => {});
    expect(JSON.parse(filtered.body).code).toBe("forbidden-field");
  });
});

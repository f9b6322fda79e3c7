/**
 * The description and the wire agree. Every test that sends to a TestService checks that what came back is
 * described; here is the reverse: everything that is described comes back.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import type { ProblemCode } from "../domain/problem.ts";
import { isProblemCode, PROBLEMS } from "../domain/problem.ts";
import { problemsOf } from "../http/openapi/document.ts";
import { EVERY_RESPONSE } from "../http/openapi/parameters.ts";
import { problemHeaders } from "../http/openapi/problem-schemas.ts";
import { ROUTE_DOCUMENTATION, type RouteDocumentation } from "../http/openapi/route-documentation.ts";
import { problemExample } from "../http/reply/problem-pages.ts";
import { DOCUMENT, ROUTES, type Sighting } from "./support/http/described-reply.ts";
import { TestService } from "./support/service/test-service.ts";

const ORIGIN = "https://app.example.com";
/** A client that has used up its requests, and one that may write seldom. */
const LIMITED = "limited";
const WRONG_TOKEN = `Bearer cst_${"a".repeat(40)}`;
/** An address that has used up its wrong tokens. */
const SUSPECT = { authorization: WRONG_TOKEN, "x-forwarded-for": "203.0.113.7" };
const LIMITS = `[limits.address]
wrong_tokens = { per_second = 0.001, burst = 1 }
[limits.clients.${LIMITED}]
requests = { per_second = 0.001, burst = 1 }
[limits.clients.writer]
writes = { per_second = 1, burst = 10 }
`;
const POLICY = `${BUILT_IN_POLICY.replace(
  "[roles.monitor]",
  '[roles.nobody]\nread = []\noperations = []\n[roles.writer]\nread = ["id", "name", "status"]\noperations = ["get", "list", "create", "replace", "patch", "delete"]\n[roles.monitor]',
)}${LIMITS}`;
const OBSERVED = POLICY.replace('mode = "strict"', 'mode = "observe"\nuntil = 2099-03-31');

/** Their causes are failures: tests of the failures show them. */
const OF_FAILURES: readonly ProblemCode[] = [
  "malformed-request",
  "incomplete-body",
  "internal-error",
  "issuer-unavailable",
  "store-unavailable",
];

const VALID = { name: "Ada", email: "ada@example.com" };
const BODIES: Partial<Record<string, object>> = { create: VALID, replace: VALID, patch: VALID, search: {} };

let service: TestService;
beforeAll(async () => {
  service = await TestService.start({
    policy: POLICY,
    corsOrigins: [ORIGIN],
    trustedProxies: ["127.0.0.1"],
  });
  await service.send("GET", "/customers", { caller: null, headers: SUSPECT });
  await service.send("GET", "/customers", { caller: { client: LIMITED } });
});
afterAll(() => service.stop());

type Sent = {
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly role?: string | null;
  readonly client?: string;
  readonly parameter?: string;
};

/** What provokes each refusal, on every operation that has it. */
const PROVOKING: Partial<
  Record<ProblemCode, (Sent & { readonly metrics?: Sent }) | Readonly<Record<string, Sent>>>
> = {
  "unknown-parameter": { query: "?x=1" },
  "invalid-parameter": {
    list: { query: "?limit=0" },
    history: { query: "?cursor=none" },
    search: { body: { cursor: "none" } },
  },
  "invalid-idempotency-key": { headers: { "idempotency-key": "a b" } },
  "unknown-field": { query: "?fields=nope" },
  "too-many-fields": { query: `?fields=${Array(17).fill("id").join()}` },
  "empty-fields": { query: "?fields=" },
  "malformed-json": { body: "{", headers: { "content-type": "application/json" } },
  unauthenticated: { role: null },
  "forbidden-operation": { role: "nobody" },
  "forbidden-field": { query: "?fields=email", role: "writer" },
  "route-not-found": { parameter: "none" },
  "customer-not-found": { parameter: "00000000-0000-7000-8000-000000000000" },
  "precondition-failed": { headers: { "if-match": '"stale"' } },
  "payload-too-large": { body: "x".repeat(65_537), headers: { "content-type": "application/json" } },
  "unsupported-media-type": { body: "x", headers: { "content-type": "text/plain" } },
  "too-many-requests": { client: LIMITED, metrics: { role: null, headers: SUSPECT } },
  "invalid-body": { body: { unknown: 1 } },
  "precondition-required": { headers: { "if-match": "" } },
};

const PARAMETERS = { "{file}": "swagger-ui.css", "{code}": "invalid-body" };

async function send(operation: string, sent: Sent) {
  const route = ROUTES.find((row) => row.operation === operation);
  if (route === undefined) throw new Error(`no route has the operation ${operation}`);
  const isOfCustomer = route.path.includes("{id}");
  const customer = isOfCustomer ? await service.customer() : { id: "", etag: "" };
  const path = Object.entries({ "{id}": customer.id, ...PARAMETERS }).reduce(
    (path, [name, value]) => path.replace(name, sent.parameter ?? value),
    route.path as string,
  );
  const role = sent.role === undefined ? (operation === "metrics" ? "monitor" : "admin") : sent.role;
  return await service.send(route.method, `${path}${sent.query ?? ""}`, {
    headers: {
      origin: ORIGIN,
      ...(isOfCustomer && route.method !== "GET" ? { "if-match": customer.etag } : {}),
      ...sent.headers,
    },
    body: sent.body ?? BODIES[operation],
    caller: role === null || route.callers === "anyone" ? null : { role, client: sent.client ?? "test" },
  });
}

for (const route of ROUTES) {
  const documentation: RouteDocumentation = ROUTE_DOCUMENTATION[route.operation];
  describe(`${route.method} ${route.path}`, () => {
    for (const code of problemsOf(route).filter((code) => !OF_FAILURES.includes(code))) {
      if (code === "idempotency-key-reused") continue;
      test(`is refused with ${code}`, async () => {
        const recipe = PROVOKING[code] ?? {};
        const own = (recipe as Readonly<Record<string, Sent>>)[route.operation];
        const reply = await send(route.operation, own ?? (recipe as Sent));
        expect([reply.status, reply.json?.code]).toEqual([PROBLEMS[code].status, code]);
        for (const name of [...EVERY_RESPONSE, ...problemHeaders(code)]) {
          if (isConditional(name, route.method)) continue;
          expect(reply.headers.has(name) ? "" : `${name} is missing`).toBe("");
        }
      });
    }

    if (documentation.problems.includes("idempotency-key-reused")) {
      test("a key is replayed, and refused with another request", async () => {
        const headers = { "idempotency-key": `"${route.operation}"`, origin: ORIGIN };
        const { id, etag } = await service.customer();
        const path = route.path.replace("{id}", id);
        const write = (more: object) =>
          service.send(route.method, path, {
            headers: { ...headers, ...(path.includes(id) ? { "if-match": etag } : {}), ...more },
            body: BODIES[route.operation],
          });
        await write({});
        expect((await write({})).headers.get("idempotency-replayed")).toBe("true");
        if (route.method === "DELETE") {
          const other = await service.customer();
          const reused = await service.send("DELETE", other.path, {
            headers: { ...headers, "if-match": other.etag },
          });
          expect(reused.json.code).toBe("idempotency-key-reused");
          return;
        }
        const reused = await service.send(route.method, path, {
          headers: { ...headers, "if-match": etag },
          body: { ...VALID, name: "Another" },
        });
        expect(reused.json.code).toBe("idempotency-key-reused");
      });
    }

    for (const type of [
      ...new Set(Object.values(documentation.replies).flatMap(({ content }) => Object.keys(content ?? {}))),
    ]) {
      test(`answers with ${type}`, async () => {
        const headers = { accept: type, prefer: "return=representation" };
        const parameter = type === "text/javascript" ? { parameter: "swagger-ui-bundle.js" } : {};
        const reply = await send(route.operation, { headers, ...parameter });
        expect(reply.headers.get("content-type")).toStartWith(type);
      });
    }
  });
}

const CUSTOMER = "/customers/{id}";
const STALE = { "if-match": '"3q2-7wAAAb1fE9zQ"' };
const JSON_BODY = { "content-type": "application/json" };

/** A request for each example of a problem, but of those that failures cause. */
const EXAMPLES: Record<string, readonly [method: string, path: string, sent?: Sent]> = {
  "unknown-parameter": ["GET", `${CUSTOMER}?field=name`],
  "invalid-parameter": ["GET", "/customers?limit=0"],
  "invalid-idempotency-key": ["POST", "/customers", { headers: { "idempotency-key": "a b" }, body: VALID }],
  "unknown-field": ["GET", `${CUSTOMER}?fields=mail`],
  "too-many-fields": ["GET", `${CUSTOMER}?fields=${Array(17).fill("id").join()}`],
  "empty-fields": ["GET", `${CUSTOMER}?fields=name,,email`],
  "malformed-json": ["PUT", CUSTOMER, { headers: JSON_BODY, body: '{"name": }' }],
  unauthenticated: ["GET", CUSTOMER, { headers: { authorization: WRONG_TOKEN } }],
  "forbidden-operation": ["DELETE", CUSTOMER, { role: "support" }],
  "forbidden-field": ["GET", `${CUSTOMER}?fields=email`, { role: "support" }],
  "route-not-found": ["GET", "/customer"],
  "customer-not-found": ["GET", "/customers/00000000-0000-7000-8000-000000000000"],
  "method-not-allowed": ["PUT", "/customers"],
  "precondition-failed": ["PUT", CUSTOMER, { headers: STALE, body: { ...VALID, name: "Ada King" } }],
  "payload-too-large": ["PUT", CUSTOMER, { headers: JSON_BODY, body: "x".repeat(65_537) }],
  "unsupported-media-type": ["PUT", CUSTOMER, { body: new Uint8Array(2) }],
  "too-many-requests": ["PUT", CUSTOMER, { client: "writer", headers: STALE, body: VALID }],
  "invalid-body": ["PUT", CUSTOMER, { body: { ...VALID, email: "ada@example..com" } }],
  "idempotency-key-reused": ["POST", "/customers", { headers: { "idempotency-key": "used" }, body: VALID }],
  "precondition-required": ["PUT", CUSTOMER, { headers: { "if-match": "" }, body: VALID }],
};

describe("the example of a problem is what the service answers", () => {
  test.each(codes().filter((code) => !OF_FAILURES.includes(code)))("%s", async (code) => {
    const [method = "", path = "", sent] = EXAMPLES[code] ?? [];
    const { role = "admin", client = "test", headers, body }: Sent = sent ?? {};
    const { id, etag } = await service.customer();
    if (code === "idempotency-key-reused") {
      await service.send("POST", "/customers", {
        headers: { "idempotency-key": "used" },
        body: { ...VALID, name: "B" },
      });
    }
    const answer = () =>
      service.send(method, path.replace("{id}", id), {
        headers: { ...(path.startsWith(CUSTOMER) ? { "if-match": etag } : {}), ...headers },
        body,
        caller: { role: role ?? "admin", client },
      });
    let { status, json } = await answer();
    // A burst has to be used up first.
    while (code === "too-many-requests" && status !== 429) ({ status, json } = await answer());
    const example = problemExample(code, "");
    expect({ ...json, instance: "" }).toEqual({ ...example, instance: "" });
  });
});

function codes(): ProblemCode[] {
  return Object.keys(PROBLEMS).filter(isProblemCode);
}

test("without PUBLIC_URL the only address is the server's: a contact must have an absolute one", () => {
  const { info, servers } = DOCUMENT;
  expect(servers).toEqual([{ url: "/", description: "This service" }]);
  expect(info.contact).toEqual({ name: "The operator of this service" });
});

test("schemas of answers are open to members of later versions, those of requests are closed", () => {
  const { schemas } = DOCUMENT.components;
  const closed = Object.keys(schemas).filter((name) => schemas[name]?.["additionalProperties"] === false);
  expect(closed.sort()).toEqual(["Creation", "MergePatch", "Replacement", "Search"]);
  expect(JSON.stringify(schemas).match(/"additionalProperties":false/g)).toHaveLength(closed.length);
});

/** Headers that only some answers have. */
function isConditional(name: string, method: string): boolean {
  const isOptional = name === "Accept-Encoding" || name === "Preference-Applied";
  return isOptional || (name === "Accept-Patch" && method !== "PATCH");
}

test("everything that is described was seen, but what failures cause", async () => {
  const { path, etag } = await service.customer();
  const origin = { origin: ORIGIN };
  await service.customer();
  await service.send("GET", "/customers?limit=1", { headers: origin });
  await service.send("GET", path, { headers: { ...origin, "if-none-match": etag } });
  const compressed = { ...origin, "content-type": "application/json", "content-encoding": "br" };
  await service.send("POST", "/customers", { headers: compressed, body: "x" });
  await service.send("POST", "/customers/search", { headers: compressed, body: "x" });
  for (const method of ["PUT", "PATCH"]) {
    await service.send(method, path, { headers: { ...compressed, "if-match": etag }, body: "x" });
  }
  service.reload(OBSERVED);
  for (const method of ["PUT", "PATCH"]) {
    const key = { ...origin, "idempotency-key": `observed-${method}` };
    for (const more of [
      key,
      key,
      {
        ...key,
        "idempotency-key": `with body ${method}`.replaceAll(" ", "-"),
        prefer: "return=representation",
      },
    ]) {
      await service.send(method, path, { headers: more, body: VALID });
    }
    const again = { ...key, "idempotency-key": `with-body-${method}`, prefer: "return=representation" };
    await service.send(method, path, { headers: again, body: VALID });
  }
  const removal = { ...origin, "idempotency-key": "removal" };
  await service.send("DELETE", path, { headers: removal });
  await service.send("DELETE", path, { headers: removal });
  service.reload(POLICY);
  const written = await service.customer();
  await service.send("PUT", written.path, { headers: { "if-match": written.etag }, body: VALID });
  await service.send("GET", `${written.path}/history?limit=1`);

  const unseen = describedSightings().filter((sighting) => !service.sightings.has(sighting));
  expect(unseen).toEqual([]);
});

function describedSightings(): Sighting[] {
  return ROUTES.flatMap((route) => {
    const { operationId, replies }: RouteDocumentation = ROUTE_DOCUMENTATION[route.operation];
    const successes = Object.entries(replies)
      .filter(([status]) => status !== "503")
      .flatMap(([status, { headers, content }]): Sighting[] => [
        ...headers.map((name): Sighting => `${operationId} ${Number(status)} ${name.toLowerCase()}`),
        ...Object.keys(content ?? { "(reply)": null }).map(
          (type): Sighting => `${operationId} ${Number(status)} ${type}`,
        ),
      ]);
    const refusals = problemsOf(route)
      .filter((code) => !OF_FAILURES.includes(code))
      .map((code): Sighting => `${operationId} ${PROBLEMS[code].status} ${code}`);
    return [...successes, ...refusals];
  });
}

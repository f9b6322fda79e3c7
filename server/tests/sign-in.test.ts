/** Sign-in by tokens of another issuer, on a real one. */

import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import type { RefusalReason } from "../domain/policy/issuer.ts";
import { sealBacklog } from "../storage/audit/sealing-timer.ts";
import { bodyLater } from "./support/http/body-later.ts";
import { selfSignedCertificate } from "./support/http/self-signed-certificate.ts";
import { scrape } from "./support/service/metric-series.ts";
import { type ServerProcess, Workplace } from "./support/service/server-process.ts";
import { AUDIENCE, TestIssuer } from "./support/service/test-issuer.ts";
import { TestService } from "./support/service/test-service.ts";

const SKEW_S = 60;
const LIFETIME_S = 300;
const SIGN_IN = {
  client: 'client = { claim = "client_id" }',
  tenant: 'tenant = { claim = "org", values = { acme-gmbh = "acme", globex = "globex" } }',
  role: 'role = { claim = ["crm", "groups"], values = { admins = "admin", readers = "viewer", scrapers = "monitor" } }',
};

const issuer = await TestIssuer.start();
issuer.claims["billing-sync"] = { org: "acme-gmbh", crm: { groups: ["staff", "admins", "readers"] } };
issuer.claims["crm"] = { org: "globex", crm: { groups: ["readers"] } };
issuer.claims["stranger"] = {};
afterAll(() => issuer.down());

const policyWith = (rules: Partial<typeof SIGN_IN> = {}, url = issuer.url, audience = AUDIENCE): string =>
  `${BUILT_IN_POLICY}[issuers.login]\nissuer = "${url}"\naudience = "${audience}"\nalgorithms = ["RS256"]\n${Object.values({ ...SIGN_IN, ...rules }).join("\n")}\n`;

let aheadMs = 0;
let clockMs = 0;
const started: TestService[] = [];
async function start(policy = policyWith()): Promise<TestService> {
  const service = await TestService.start({ policy, now: () => Date.now() + aheadMs, clock: () => clockMs });
  started.push(service);
  await service.signIn.refresh();
  return service;
}
const service = await start();
const { privateKey: strange, publicKey: strangePublic } = await generateKeyPair("RS256");
afterEach(async () => {
  aheadMs = 0;
  service.reload(policyWith());
  // After a fetch that failed a service asks again half a minute later, amid another test that counts the requests.
  for (const each of started.splice(1)) await each.stop();
  await service.signIn.refresh();
});
afterAll(async () => {
  for (const each of started) await each.stop();
});

const as = (token: string, headers: Record<string, string> = {}) => ({
  caller: null,
  headers: { ...headers, authorization: `Bearer ${token}` },
});
const get = async (token: string, of = service, path = "/customers") =>
  (await of.send("GET", path, as(token))).status;

describe("a token of the issuer", () => {
  test("is a caller of the tenant, the role and the client that its claims name", async () => {
    const token = await issuer.token();
    const { path, etag } = await service.customer();
    const patch = { ...as(token, { "if-match": etag }), body: { name: "Grace" } };
    expect((await service.send("PATCH", path, patch)).status).toBe(204);
    expect((await service.send("GET", path, as(token))).json.name).toBe("Grace");
    expect(service.logLines.at(-1)).toMatchObject({ client: "billing-sync", tenant: "acme" });
    const other = await issuer.token("crm");
    expect((await service.send("GET", path, as(other))).status).toBe(404);
    expect((await service.send("DELETE", path, as(other))).json.code).toBe("forbidden-operation");
  });

  test("the first row of the policy that matches decides, not the first group of the token", async () => {
    const token = await issuer.sign({ crm: { groups: ["readers", "admins"] } });
    const created = await service.send("POST", "/customers", {
      ...as(token),
      body: { name: "Ada", email: "ada@example.com" },
    });
    expect(created.status).toBe(201);
  });

  test("a role for metrics has no tenant, whatever the claims say", async () => {
    const token = await issuer.sign({ crm: { groups: ["scrapers"] } });
    expect([await get(token, service, "/metrics"), await get(token)]).toEqual([200, 403]);
  });

  test("stands beside tokens of the service", async () => {
    expect([await get(await service.token()), await get(await issuer.token())]).toEqual([200, 200]);
  });

  test("is verified once: then it is found, without a signature, until it ends", async () => {
    const own = await start();
    const token = await issuer.token();
    for (let n = 0; n < 50; n += 1) expect(await get(token, own)).toBe(200);
    expect(own.signIn.remembered).toBe(1);
    aheadMs = (LIFETIME_S + SKEW_S + 1) * 1000;
    expect([await get(token, own), own.signIn.remembered]).toEqual([401, 0]);
  });

  test("may have the type at+jwt (RFC 9068), or JWT or none, as older issuers write", async () => {
    for (const typ of ["at+jwt", "application/at+jwt", "JWT", undefined]) {
      expect([typ, await get(await issuer.sign({}, { typ }))]).toEqual([typ, 200]);
    }
  });
});

describe("401 with invalid_token, in the same words, for what is not a valid token of the issuer", () => {
  const now = () => Math.floor(Date.now() / 1000);
  const cases: [string, RefusalReason, () => Promise<string> | string][] = [
    ["another audience", "audience", () => issuer.token("billing-sync", "urn:other")],
    ["another issuer", "unknown-issuer", () => issuer.sign({ iss: `${issuer.url}/` })],
    ["an issuer that no policy names", "unknown-issuer", () => issuer.sign({ iss: "https://evil.example" })],
    ["no issuer", "unknown-issuer", () => issuer.sign({ iss: undefined })],
    ["no end", "claims", () => issuer.sign({ exp: undefined })],
    ["a subject that is no text", "claims", () => issuer.sign({ sub: 5 })],
    ["a list of subjects", "claims", () => issuer.sign({ sub: ["ada"] })],
    ["an end that is over", "expired", () => issuer.sign({ exp: now() - SKEW_S - 1 })],
    ["a begin that is to come", "not-yet-valid", () => issuer.sign({ nbf: now() + SKEW_S + 5 })],
    ["the key of someone else", "signature", () => issuer.sign({}, {}, strange)],
    [
      "the key of someone else, without its name",
      "signature",
      () => issuer.sign({}, { kid: undefined }, strange),
    ],
    ["a key that does not exist", "unknown-key", () => issuer.sign({}, { kid: "none" }, strange)],
    [
      "another algorithm of the same key",
      "algorithm",
      async () => issuer.sign({}, { alg: "RS512" }, await issuer.keyFor("RS512")),
    ],
    ["a type for another use", "type", () => issuer.sign({}, { typ: "logout+jwt" })],
    ["a type that is no text", "malformed", () => issuer.sign({}, { typ: 1 })],
    ["a key that its holder must prove to have", "bound-to-key", () => issuer.sign({ cnf: { jkt: "x" } })],
    ["a critical header that nobody knows", "signature", () => withHeader({ crit: ["x"], x: 1 })],
    [
      "HS256, signed with the public key as its secret",
      "algorithm",
      async () => confused(await issuer.publicKey()),
    ],
    ["no signature", "algorithm", () => unsigned("none")],
    ["no signature, in other letters", "algorithm", () => unsigned("NONE")],
    ["an empty signature", "signature", () => unsigned("RS256")],
    [
      "a signature that was changed",
      "signature",
      async () => `${(await issuer.token()).slice(0, -8)}AAAAAAAA`,
    ],
    [
      "claims that were changed",
      "signature",
      async () => withClaims(await issuer.token("crm"), { org: "acme-gmbh" }),
    ],
    ["8,193 characters", "too-long", async () => issuer.sign({ x: "x".repeat(6_000) })],
    ["five parts, as one that is encrypted has", "malformed", async () => `${await issuer.token()}.a.b`],
    ["no JSON", "malformed", () => "a.b.c"],
    ["dots alone", "malformed", () => "..."],
    ["a header that is a list", "malformed", () => `${encode([])}.${encode({ iss: issuer.url })}.x`],
    ["claims that are null", "malformed", () => `${encode({ alg: "RS256" })}.${encode(null)}.x`],
  ];
  test.each(cases)("%s: the reason for the operator is %s", async (_, reason, make) => {
    const before = service.refusedTokens.length;
    const reply = await service.send("GET", "/customers", as(await make()));
    expect([reply.status, reply.json.code, reply.json.detail]).toEqual([
      401,
      "unauthenticated",
      "The token is not one that this service accepts, or it has expired. Get a new one from its issuer.",
    ]);
    expect(reply.headers.get("www-authenticate")).toStartWith('Bearer error="invalid_token"');
    expect(service.refusedTokens.slice(before).map((refused) => refused.reason)).toEqual([reason]);
  });

  test("its times are taken with 60 s of grace, for clocks that differ", async () => {
    const early = await issuer.sign({ nbf: now() + SKEW_S - 5 });
    const late = await issuer.sign({ exp: now() - SKEW_S + 10 });
    expect([await get(early), await get(late)]).toEqual([200, 200]);
  });

  test("without issuers in the policy no token of theirs is looked at", async () => {
    const token = await issuer.token();
    const own = await start(BUILT_IN_POLICY);
    expect(await get(token, own)).toBe(401);
  });

  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = () => ({
    iss: issuer.url,
    aud: AUDIENCE,
    exp: now() + 60,
    ...issuer.claims["billing-sync"],
  });
  const unsigned = (alg: string): string => `${encode({ alg, kid: "first" })}.${encode(claims())}.`;
  const confused = (secret: string) =>
    new SignJWT(claims()).setProtectedHeader({ alg: "HS256" }).sign(new TextEncoder().encode(secret));
  const withHeader = async (more: object): Promise<string> => {
    const [header = "", payload, signature] = (await issuer.token()).split(".");
    const members = JSON.parse(Buffer.from(header, "base64url").toString());
    return `${encode({ ...members, ...more })}.${payload}.${signature}`;
  };
  const withClaims = (token: string, more: object): string => {
    const [header, payload = "", signature] = token.split(".");
    const members = JSON.parse(Buffer.from(payload, "base64url").toString());
    return `${header}.${encode({ ...members, ...more })}.${signature}`;
  };
});

describe("403 for a valid token whose claims name no caller of the policy, with the claim", () => {
  test.each<[string, () => Promise<string>, string]>([
    ["no tenant", () => issuer.sign({ org: undefined }), "`org`"],
    ["a tenant without a row", () => issuer.sign({ org: "initech" }), "`org`"],
    ["a name of Object's own", () => issuer.sign({ org: "constructor" }), "`org`"],
    ["no groups", () => issuer.token("stranger"), "`crm.groups`"],
    ["groups without a row", () => issuer.sign({ crm: { groups: ["staff"] } }), "`crm.groups`"],
    ["groups that are no texts", () => issuer.sign({ crm: { groups: [1, null, {}] } }), "`crm.groups`"],
    ["no object around the groups", () => issuer.sign({ crm: "admins" }), "`crm.groups`"],
    ["no client", () => issuer.sign({ client_id: undefined }), "`client_id`"],
    ["a client that is no name", () => issuer.sign({ client_id: 'a"b' }), "`client_id`"],
    ["two clients", () => issuer.sign({ client_id: ["a", "b"] }), "`client_id`"],
  ])("%s", async (_, make, claim) => {
    const reply = await service.send("GET", "/customers", as(await make()));
    expect([reply.status, reply.json.code]).toEqual([403, "forbidden-operation"]);
    expect(reply.json.detail).toContain(claim);
  });

  test("a role that the policy does not have, where the claim itself is the role", async () => {
    service.reload(policyWith({ role: 'role = { claim = "role" }' }));
    expect(await get(await issuer.sign({ role: "viewer" }))).toBe(200);
    expect(await get(await issuer.sign({ role: "owner" }))).toBe(403);
  });

  test("a role of one tenant is none of another", async () => {
    const own = '[tenants.acme.roles.clerk]\nread = ["id"]\noperations = ["list"]\n';
    service.reload(`${policyWith({ role: 'role = { value = "clerk" }' })}${own}`);
    expect(await get(await issuer.token())).toBe(200);
    expect(await get(await issuer.token("crm"))).toBe(403);
  });
});

describe("a policy that is replaced decides at the next request", () => {
  test("also for tokens that were verified before", async () => {
    const token = await issuer.token();
    expect(await get(token)).toBe(200);
    service.reload(policyWith({}, issuer.url, "urn:other"));
    expect(await get(token)).toBe(401);
    service.reload(policyWith({ tenant: 'tenant = { claim = "none" }' }));
    expect(await get(token)).toBe(403);
    service.reload(policyWith());
    expect(await get(token)).toBe(200);
    service.reload(BUILT_IN_POLICY);
    expect(await get(token)).toBe(401);
  });

  test("and its issuers are asked for their keys", async () => {
    const own = await start(BUILT_IN_POLICY);
    own.reload(policyWith());
    await own.signIn.refresh();
    expect(await get(await issuer.token(), own)).toBe(200);
  });
});

describe("keys of the issuer", () => {
  test("a new key is fetched when the first token comes that it signed; the old one is then refused", async () => {
    const old = await issuer.token();
    expect(await get(old)).toBe(200);
    clockMs += 60_000;
    await issuer.rotate("second");
    const before = issuer.keyRequests;
    const token = await issuer.token();
    const all = await Promise.all(Array.from({ length: 20 }, () => get(token)));
    expect([new Set(all), issuer.keyRequests - before]).toEqual([new Set([200]), 1]);
    expect(await get(old)).toBe(401);
  });

  test("an unknown key is asked for once a minute, however many tokens name it", async () => {
    const own = await start();
    const send = async (n: number) => get(await issuer.sign({}, { kid: `unknown-${n}` }, strange), own);
    const before = issuer.keyRequests;
    for (let n = 0; n < 20; n += 1) expect(await send(n)).toBe(401);
    expect(issuer.keyRequests - before).toBe(1);
    clockMs += 59_999;
    await send(20);
    expect(issuer.keyRequests - before).toBe(1);
    clockMs += 1;
    await send(21);
    expect(issuer.keyRequests - before).toBe(2);
  });

  test("that can't be fetched again stay in force, and the metrics say so", async () => {
    const own = await start();
    const token = await issuer.token();
    const fetchedAt = own.signIn.fetchTimes();
    await issuer.down();
    await own.signIn.refresh();
    expect(await get(token, own)).toBe(200);
    expect(own.signIn.fetchTimes()).toEqual(fetchedAt);
    expect(own.keyFetches.map(({ fault }) => fault === null)).toEqual([true, false]);
    const series = await scrape(own);
    expect(series.get('customers_issuer_key_fetches_total{issuer="login",result="failed"}')).toBe(1);
    expect(series.get('customers_issuer_keys_fetched_seconds{issuer="login"}')).toBeCloseTo(
      (fetchedAt[0]?.fetchedAtMs ?? 0) / 1000,
    );
    await issuer.up();
  });

  test("that were never fetched make the reply 503 with Retry-After; tokens of the service work", async () => {
    const token = await issuer.token();
    await issuer.down();
    const own = await start();
    const reply = await own.send("GET", "/customers", as(token));
    expect([reply.status, reply.json.code, reply.headers.get("retry-after")]).toEqual([
      503,
      "issuer-unavailable",
      "30",
    ]);
    expect(await get(await own.token(), own)).toBe(200);
    expect((await scrape(own)).get('customers_issuer_keys_fetched_seconds{issuer="login"}')).toBe(0);
    await issuer.up();
    clockMs += 60_000;
    expect(await get(token, own)).toBe(200);
  });

  test("of one reload are those of the next, also where the issuer is down", async () => {
    const own = await start();
    const token = await issuer.token();
    await issuer.down();
    own.reload(policyWith({ client: 'client = { value = "login" }' }));
    await own.signIn.refresh();
    expect(await get(token, own)).toBe(200);
    await issuer.up();
  });
});

test("keys at an http address of this machine are refused of an issuer whose own address is https", async () => {
  const place = new Workplace();
  const { cert, key } = selfSignedCertificate();
  const [ca, policyFile] = [`${place.path}/ca.pem`, `${place.path}/policy.toml`];
  let keys = "";
  const server: Bun.Server<undefined> = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert, key },
    fetch: async ({ url }): Promise<Response> =>
      url.endsWith("/jwks")
        ? Response.json({ keys: [await exportJWK(strangePublic)] })
        : Response.json({ issuer: `https://localhost:${server.port}`, jwks_uri: keys }),
  });
  try {
    writeFileSync(ca, cert);
    writeFileSync(policyFile, policyWith({}, `https://localhost:${server.port}`));
    // A process of its own, since Bun reads the variable when it starts.
    const check = () => place.run(["policy", "check", policyFile, "--fetch"], { NODE_EXTRA_CA_CERTS: ca });
    keys = `https://localhost:${server.port}/jwks`;
    expect(await check()).toMatchObject({ code: 0, stdout: expect.stringContaining("login: keys fetched") });
    keys = `${issuer.url}/jwks`;
    expect(await check()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        `names keys at ${keys}; the keys of an https issuer must be at an https address`,
      ),
    });
  } finally {
    await server.stop(true);
    await place.clear();
  }
});

describe("a document of the issuer that is not as it must be leaves the service without keys", () => {
  const configuration = (more: object) =>
    JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/jwks`, ...more });
  test.each<[string, { status?: number; location?: string; body: string | (() => string) }, string]>([
    ["a redirect", { status: 302, location: "/other", body: "" }, "answered 302, not 200"],
    ["an error", { status: 500, body: "" }, "answered 500, not 200"],
    ["no JSON", { body: "<html>" }, "JSON"],
    ["a list", { body: "[]" }, "JSON that is no object"],
    ["too much", { body: JSON.stringify({ x: "x".repeat(300_000) }) }, "more than 262144 bytes"],
    ["another issuer", { body: () => configuration({ issuer: "https://a.example" }) }, "calls itself"],
    ["no address of keys", { body: () => configuration({ jwks_uri: undefined }) }, "names no jwks_uri"],
    [
      "keys without TLS",
      { body: () => configuration({ jwks_uri: "http://keys.example/" }) },
      "is not an https address",
    ],
    [
      "keys in a file",
      { body: () => configuration({ jwks_uri: "file:///etc/passwd" }) },
      "is not an https address",
    ],
  ])("%s", async (_, { status = 200, location, body }, fault) => {
    issuer.answer = (_request, response) => {
      response.writeHead(status, location === undefined ? {} : { location });
      response.end(typeof body === "string" ? body : body());
    };
    const own = await start();
    issuer.answer = null;
    expect(own.keyFetches).toHaveLength(1);
    expect(own.keyFetches[0]?.fault).toContain(fault);
    expect(await get(await issuer.token("crm"), own)).toBe(200);
  });

  test.each<[string, object, string]>([
    ["no keys", {}, "holds no keys"],
    ["an empty key set", { keys: [] }, "holds no key for RS256"],
    [
      "keys that are symmetric",
      { keys: [{ kty: "oct", k: "AAAA", alg: "HS256" }] },
      "holds no key for RS256",
    ],
  ])("%s", async (_, keySet, fault) => {
    issuer.answer = ({ url }, response) => {
      response.end(url === "/jwks" ? JSON.stringify(keySet) : configuration({}));
    };
    const own = await start();
    issuer.answer = null;
    expect(own.keyFetches[0]?.fault).toContain(fault);
  });
});

test("why tokens are refused is counted, and logged once a minute for each cause, without anything of the token", async () => {
  const own = await start();
  const [other, ended] = [
    await issuer.token("billing-sync", "urn:other"),
    await issuer.sign({ exp: Math.floor(Date.now() / 1000) - 600 }),
  ];
  const lines = () =>
    own.logLines
      .filter(({ msg }) => msg === "token of an issuer refused")
      .map(({ level, issuer, reason, unlogged }) => ({ level, issuer, reason, unlogged }));
  for (let n = 0; n < 5; n += 1) expect(await get(other, own)).toBe(401);
  expect(await get(ended, own)).toBe(401);
  expect(await get(`${crypto.randomUUID()}.b.c`, own)).toBe(401);
  const audience = { level: "warn", issuer: "login", reason: "audience", unlogged: undefined };
  const first = [
    audience,
    { ...audience, reason: "expired" },
    { ...audience, level: "info", issuer: null, reason: "malformed" },
  ];
  expect(lines()).toEqual(first);
  clockMs += 60_000;
  expect(await get(other, own)).toBe(401);
  expect(lines()).toEqual([...first, { ...audience, unlogged: 4 }]);
  const series = await scrape(own);
  const count = (name: string, reason: string) =>
    series.get(`customers_issuer_tokens_refused_total{issuer="${name}",reason="${reason}"}`);
  expect([count("login", "audience"), count("login", "expired"), count("", "malformed")]).toEqual([6, 1, 1]);
  expect(count("login", "signature")).toBe(0);
  for (const token of [other, ended])
    for (const part of token.split(".")) expect(JSON.stringify(own.logLines)).not.toContain(part);
});

describe("what strangers send costs a bounded amount", () => {
  test("10,000 distinct bad tokens cause one fetch, and none is remembered", async () => {
    const own = await start();
    const good = await issuer.token();
    expect(await get(good, own)).toBe(200);
    const before = issuer.keyRequests;
    const [header = "", payload = "", signature = ""] = good.split(".");
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const makers = [
      (n: number) => `${header}.${payload}.${signature.slice(0, -8)}${String(n).padStart(8, "A")}`,
      (n: number) => `${encode({ alg: "RS256", kid: `k${n}` })}.${payload}.${signature}`,
      (n: number) => `${header}.${encode({ iss: issuer.url, n })}.${signature}`,
      (n: number) => `${header}.${encode({ iss: `https://issuer-${n}.example` })}.${signature}`,
      (n: number) => `${n}.${n}.${n}`,
    ];
    let refused = 0;
    for (let n = 0; n < 10_000; n += 1) {
      const outcome = await own.signIn.find(makers[n % makers.length]?.(n) ?? "", Date.now());
      if (!outcome.ok && outcome.problem.code === "unauthenticated") refused += 1;
    }
    expect([refused, own.signIn.remembered, issuer.keyRequests - before]).toEqual([10_000, 1, 1]);
    expect(await get(good, own)).toBe(200);
  });
});

describe("a token that brings its own key", () => {
  test("is refused, and no address in it is asked", async () => {
    const asked: string[] = [];
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) => {
        asked.push(url);
        return Response.json({ keys: [] });
      },
    });
    const jwk = await exportJWK(strangePublic);
    const headers = [{ jwk }, { jku: server.url.href }, { x5u: server.url.href }, { kid: server.url.href }];
    for (const header of headers) {
      expect(await get(await issuer.sign({ iss: issuer.url }, header, strange))).toBe(401);
    }
    expect(await get(await issuer.sign({ iss: server.url.origin }, { jku: server.url.href }, strange))).toBe(
      401,
    );
    expect(asked).toEqual([]);
    await server.stop(true);
  });
});

describe("writes by a token of the issuer", () => {
  const body = { name: "Ada", email: "ada@example.com" };

  /** Creations under one key. */
  function creations() {
    const key = { "idempotency-key": crypto.randomUUID() };
    return async (token: string) => {
      const { status, headers } = await service.send("POST", "/customers", { ...as(token, key), body });
      return { status, location: headers.get("location"), replayed: headers.get("idempotency-replayed") };
    };
  }

  test("an Idempotency-Key belongs to the subject, so that a repeat with its next token is done once", async () => {
    const create = creations();
    const first = await create(await issuer.token());
    expect([first.status, first.replayed]).toEqual([201, null]);
    expect(await create(await issuer.sign({ jti: "next" }))).toEqual({ ...first, replayed: "true" });
    for (const others of [{ sub: "other" }, { client_id: "other" }, { org: "globex" }]) {
      const elsewhere = await create(await issuer.sign(others));
      expect([elsewhere.status, elsewhere.replayed, elsewhere.location === first.location]).toEqual([
        201,
        null,
        false,
      ]);
    }
  });

  test("an Idempotency-Key belongs to all tokens of a client and tenant together where they have no subject", async () => {
    const create = creations();
    const first = await create(await issuer.sign({ sub: undefined }));
    expect([first.status, first.replayed]).toEqual([201, null]);
    expect(await create(await issuer.sign({ sub: undefined, jti: "next" }))).toEqual({
      ...first,
      replayed: "true",
    });
    for (const others of [{}, { sub: undefined, client_id: "other" }, { sub: undefined, org: "globex" }]) {
      const elsewhere = await create(await issuer.sign(others));
      expect([elsewhere.status, elsewhere.replayed]).toEqual([201, null]);
    }
  });

  test("the audit trail names their subject by a digest, which the line of docs/sign-in.md computes", async () => {
    const { path, etag } = await service.customer();
    const token = await issuer.sign({ sub: "b9f1-ada", client_id: "crm" });
    const patch = { ...as(token, { "if-match": etag }), body: { name: "Grace" } };
    expect((await service.send("PATCH", path, patch)).status).toBe(204);
    await sealBacklog(service.storage.audit);
    const customerId = path.replace("/customers/", "");
    const all = await service.storage.audit.rows({ tenant: "acme", after: 0, limit: 1_000 });
    const rows = all.filter((row) => row.customerId === customerId);
    const guide = await Bun.file(new URL("../docs/sign-in.md", import.meta.url)).text();
    const [line = ""] = /^prefix=.*$/m.exec(guide) ?? [];
    const script = `${line.replace("https://login.example.com/realms/company", issuer.url)}; echo "$prefix"`;
    const shell = Bun.spawnSync(["sh", "-c", script], { env: { ...process.env, SUB: "b9f1-ada" } });
    expect(shell.stdout.toString().trim()).toMatch(/^jwt_[0-9a-f]{8}$/);
    expect(rows.map(({ client, tokenPrefix }) => [client, tokenPrefix])).toEqual([
      ["test", expect.stringMatching(/^cst_/)],
      ["crm", shell.stdout.toString().trim()],
    ]);
  });

  test("a token that ends while the body is under way writes nothing", async () => {
    const { path, etag } = await service.customer();
    const token = await issuer.token();
    expect(await get(token)).toBe(200);
    const head = [`PUT ${path} HTTP/1.1`, `Authorization: Bearer ${token}`, `If-Match: ${etag}`];
    const reply = await bodyLater(service.port, head, body, () => {
      aheadMs = (LIFETIME_S + SKEW_S + 1) * 1000;
    });
    expect([reply.status, reply.headers.get("www-authenticate")]).toEqual([
      401,
      expect.stringContaining("invalid_token"),
    ]);
    aheadMs = 0;
    expect((await service.send("GET", path)).etag).toBe(etag);
  });
});

describe("the service as a process", () => {
  let place: Workplace;
  beforeEach(() => {
    place = new Workplace();
  });
  afterEach(() => place.clear());

  const writePolicy = (text: string): string => {
    writeFileSync(`${place.path}/policy.toml`, text);
    return `${place.path}/policy.toml`;
  };
  /** The table of docs/sign-in.md, for the issuer and the claims of this test. */
  const documented = async (): Promise<string> => {
    const guide = await Bun.file(new URL("../docs/sign-in.md", import.meta.url)).text();
    const [, table = ""] = /^ *```toml\n([\s\S]*?)```/m.exec(guide) ?? [];
    return `${BUILT_IN_POLICY}${table}`
      .replace("https://login.example.com/realms/company", issuer.url)
      .replace("https://customers.example.com", AUDIENCE);
  };
  const employee = { realm_access: { roles: ["offline_access", "customers-read"] } };
  const statusOf = async (running: ServerProcess, token: string) =>
    (await running.send(token, "GET", "/customers?limit=1")).status;

  test("accepts the tokens of the table in docs/sign-in.md after SIGHUP, until a SIGHUP without it", async () => {
    const token = await issuer.sign(employee);
    const running = await place.start({ env: { POLICY_FILE: writePolicy(BUILT_IN_POLICY) } });
    const reloaded = async (text: string, count: number) => {
      writePolicy(text);
      running.signal("SIGHUP");
      const isDone = () => running.stderr.lines.filter((line) => line.includes("policy file reloaded"));
      await running.stderr.line(() => isDone().length === count * running.services);
    };
    expect(await statusOf(running, token)).toBe(401);
    await reloaded(await documented(), 1);
    expect(await statusOf(running, token)).toBe(200);
    expect((await running.send(token, "POST", "/customers", { body: {} })).status).toBe(403);
    await reloaded(BUILT_IN_POLICY, 2);
    expect(await statusOf(running, token)).toBe(401);
    expect(await running.end()).toBe(0);
  });

  test("starts without its issuer, says so, and asks it again at SIGHUP", async () => {
    const token = await issuer.sign(employee);
    await issuer.down();
    const running = await place.start({
      env: { POLICY_FILE: writePolicy(await documented()), LOG_LEVEL: "debug" },
    });
    await running.stderr.line((line) => line.includes("its tokens are refused with 503 until they are"));
    expect(await statusOf(running, token)).toBe(503);
    expect((await running.send(place.adminToken, "GET", "/customers?limit=1")).status).toBe(200);
    await issuer.up();
    running.signal("SIGHUP");
    const fetched = () => running.stderr.lines.filter((line) => line.includes("keys of the issuer fetched"));
    await running.stderr.line(() => fetched().length === running.services);
    expect(await statusOf(running, token)).toBe(200);
    expect(await running.end()).toBe(0);
  });

  test("policy check names the issuers", async () => {
    writePolicy(await documented());
    const { code, stdout } = await place.command(["policy", "check", "policy.toml"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("; issuers login)")]);
  });

  test("policy check --fetch fetches their keys, or says why it can't", async () => {
    writePolicy(await documented());
    const check = () => place.command(["policy", "check", "policy.toml", "--fetch"]);
    const fetched = await check();
    expect([fetched.code, fetched.stdout]).toEqual([
      0,
      expect.stringContaining("issuers.login: keys fetched"),
    ]);
    issuer.answer = (_request, response) => response.writeHead(404).end();
    const refused = await check();
    issuer.answer = null;
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("/.well-known/openid-configuration answered 404, not 200"),
    ]);
  });
});

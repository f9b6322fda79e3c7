import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { BUILT_IN_POLICY } from "../../config/policy-file.ts";
import { WRONG_TOKENS } from "../../domain/policy/limits.ts";
import { TestService } from "../../tests/support/service/test-service.ts";

let service: TestService;
beforeAll(async () => {
  service = await TestService.start({ trustedProxies: ["127.0.0.1"] });
});
afterAll(() => service.stop());
afterEach(() => service.reload(BUILT_IN_POLICY));

/** So slow that nothing comes in during a test. */
function allow(burst: number): void {
  service.reload(
    `${BUILT_IN_POLICY}\n[limits.address]\nwrong_tokens = { per_second = 0.01, burst = ${burst} }\n`,
  );
}

let addresses = 0;
/** An address of its own for each test: buckets outlive a policy. */
function address(): string {
  addresses += 1;
  return `203.0.113.${addresses}`;
}

const WRONG = `Bearer cst_${"a".repeat(40)}`;

function send(from: string, authorization: string | null = WRONG, path = "/customers") {
  const credentials = authorization === null ? {} : { authorization };
  return service.send("GET", path, { caller: null, headers: { "x-forwarded-for": from, ...credentials } });
}

async function statuses(count: number, ...sent: Parameters<typeof send>): Promise<number[]> {
  const seen: number[] = [];
  for (let times = 0; times < count; times += 1) seen.push((await send(...sent)).status);
  return seen;
}

test("an address may send as many wrong tokens as its burst, and is then 429 in place of 401", async () => {
  allow(2);
  const from = address();
  expect(await statuses(2, from)).toEqual([401, 401]);
  const refused = await send(from);
  expect(refused.status).toBe(429);
  expect(refused.headers.get("retry-after")).toBe("100");
  expect(refused.headers.has("ratelimit")).toBe(false);
  expect(refused.json).toMatchObject({
    code: "too-many-requests",
    detail:
      "The token is unknown, revoked or expired, and the request exceeds the limit for wrong tokens from this address (0.01 a second, 2 at once). Send a valid token, which this limit never refuses.",
    violatedLimits: ["wrong-tokens"],
  });
  expect(await statuses(1, address())).toEqual([401]);
});

test("a valid token is never refused for the wrong ones of its address", async () => {
  allow(1);
  const from = address();
  expect(await statuses(3, from)).toEqual([401, 429, 429]);
  expect(await statuses(3, from, `Bearer ${await service.token()}`)).toEqual([200, 200, 200]);
  const monitor = await service.token({ role: "monitor", client: "prometheus" });
  expect(await statuses(1, from, `Bearer ${monitor}`, "/metrics")).toEqual([200]);
  expect(await statuses(1, from)).toEqual([429]);
});

describe("what counts as a wrong token", () => {
  test.each([
    ["an unknown one", WRONG],
    ["one of another form", "Bearer secret"],
    ["a JWT of no issuer of the policy", "Bearer a.b.c"],
  ])("%s", async (_what, authorization) => {
    allow(1);
    expect(await statuses(2, address(), authorization)).toEqual([401, 429]);
  });

  test("a revoked one", async () => {
    allow(1);
    const token = await service.token({ client: "revoked" });
    await service.storage.tokens.revoke(token, Date.now());
    expect(await statuses(2, address(), `Bearer ${token}`)).toEqual([401, 429]);
  });

  test("one that asks for metrics, by the same bucket", async () => {
    allow(1);
    const from = address();
    expect(await statuses(1, from, WRONG, "/metrics")).toEqual([401]);
    expect(await statuses(1, from)).toEqual([429]);
  });

  test.each([
    ["a request without a token", null, "/customers", 401],
    ["another scheme, which costs no look-up", "Basic YTpi", "/customers", 401],
    ["a route that anyone may use", WRONG, "/healthz", 200],
    ["an address that is none", WRONG, "/nowhere", 404],
  ] as const)("not %s", async (_what, authorization, path, status) => {
    allow(1);
    const from = address();
    expect(await statuses(3, from, authorization, path)).toEqual([status, status, status]);
    expect(await statuses(1, from)).toEqual([401]);
  });

  test("not a valid one that may not do what it asks for", async () => {
    allow(1);
    const from = address();
    const monitor = await service.token({ role: "monitor", client: "prometheus" });
    expect(await statuses(3, from, `Bearer ${monitor}`)).toEqual([403, 403, 403]);
    expect(await statuses(1, from)).toEqual([401]);
  });
});

test("addresses of one IPv6 network of 64 bits share a bucket", async () => {
  allow(1);
  expect(await statuses(1, "2001:db8:1:2::3")).toEqual([401]);
  expect(await statuses(1, "2001:db8:1:2:ffff::4")).toEqual([429]);
  expect(await statuses(1, "2001:db8:1:3::3")).toEqual([401]);
});

test("without a row in the policy 200 at once are answered 401, and then 20 a second", async () => {
  expect(WRONG_TOKENS).toEqual({ perSecond: 20, burst: 200 });
  const from = address();
  const sent = await Promise.all(Array.from({ length: 200 }, () => send(from)));
  expect(new Set(sent.map(({ status }) => status))).toEqual(new Set([401]));
});

test("refusals are counted from 0 on, by no address", async () => {
  const own = await TestService.start();
  const series = async () =>
    (await own.metrics.text())
      .split("\n")
      .filter((line) => line.startsWith("customers_requests_limited_total"));
  try {
    const labels = 'limit="wrong-tokens",client="",tenant=""';
    expect(await series()).toEqual([`customers_requests_limited_total{${labels}} 0`]);
    own.reload(`${BUILT_IN_POLICY}\n[limits.address]\nwrong_tokens = { per_second = 0.01, burst = 1 }\n`);
    for (let times = 0; times < 3; times += 1)
      await own.send("GET", "/customers", { caller: null, headers: { authorization: WRONG } });
    expect(await series()).toEqual([`customers_requests_limited_total{${labels}} 2`]);
  } finally {
    await own.stop();
  }
});

import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { Registry } from "prom-client";
import { BUILT_IN_POLICY } from "../../config/policy-file.ts";
import type { TokenHolder } from "../../storage/tokens/token-store.ts";
import { LimitMetrics } from "../../telemetry/metrics/limit-metrics.ts";
import { type Reply, TestService } from "../../tests/support/service/test-service.ts";
import { CallerLimits } from "./caller-limits.ts";

const service = await TestService.start();
afterAll(() => service.stop());
afterEach(() => service.reload(BUILT_IN_POLICY));

/** So slow that nothing comes in during a test. */
const burst = (count: number): string => `{ per_second = 0.001, burst = ${count} }`;

/** Callers of its own for each test: buckets outlive a policy. */
function callers(limitsOf: (client: string, tenant: string) => string) {
  const client = `client-${crypto.randomUUID()}`;
  const tenant = `tenant-${crypto.randomUUID()}`;
  const holder = (more: Partial<TokenHolder> = {}) => ({ client, tenant, ...more });
  service.reload(`${BUILT_IN_POLICY}\n${limitsOf(client, tenant)}\n`);
  return { client, tenant, holder };
}

const NOBODY = "/customers/01890000-0000-7000-8000-000000000000";
const BODY = { name: "Ada", email: "ada@example.com" };
const STALE = { "if-match": '"AAAAAAAAAAAAAAAA"' };

const read = (caller: Partial<TokenHolder>) => service.send("GET", NOBODY, { caller });
const write = (caller: Partial<TokenHolder>) =>
  service.send("PUT", NOBODY, { caller, body: BODY, headers: STALE });
const search = (caller: Partial<TokenHolder>) =>
  service.send("POST", "/customers/search", { caller, body: {} });
const create = (caller: Partial<TokenHolder>) => service.send("POST", "/customers", { caller, body: BODY });

async function statuses(...requests: (() => Promise<Reply>)[]): Promise<number[]> {
  const seen: number[] = [];
  for (const request of requests) seen.push((await request()).status);
  return seen;
}

test("without limits none applies, and replies have no RateLimit fields", async () => {
  const { holder } = callers(() => "");
  const { status, headers } = await read(holder());
  expect([status, headers.has("ratelimit"), headers.has("ratelimit-policy")]).toEqual([404, false, false]);
});

test("a client may send as many requests as its burst, and is then told when to send the next", async () => {
  const { holder } = callers(() => `[limits.client]\nrequests = { per_second = 0.01, burst = 2 }`);
  const admitted = [await read(holder()), await read(holder())];
  expect(admitted.map(({ status }) => status)).toEqual([404, 404]);
  expect(admitted.map(({ headers }) => headers.get("ratelimit"))).toEqual([
    '"client-requests";r=1;t=100',
    // The next one, not both.
    '"client-requests";r=0;t=100',
  ]);
  const refused = await read(holder());
  expect(refused.status).toBe(429);
  expect(refused.json).toMatchObject({
    code: "too-many-requests",
    detail:
      "The request exceeds the limit for requests of this client (0.01 a second, 2 at once). Send it again after 100 s.",
    violatedLimits: ["client-requests"],
  });
  expect(refused.headers.get("retry-after")).toBe("100");
  expect(refused.headers.get("ratelimit-policy")).toBe('"client-requests";q=2;w=200');
  expect(refused.headers.get("ratelimit")).toBe('"client-requests";r=0;t=100');
});

test("refusals of requests that came together are not answered together: the next ones would be too", async () => {
  const limits = new CallerLimits(new LimitMetrics(new Registry(), true), 20);
  const requests = Array.from({ length: 64 }, (_, at) => at);
  const answered: number[] = [];
  await Promise.all(requests.map((at) => limits.pause().then(() => answered.push(at))));
  // Timers that are due together run in the order in which they were set.
  expect(answered).not.toEqual(requests);
  expect(answered.toSorted((one, other) => one - other)).toEqual(requests);
});

test("each reply says what is left of each limit", async () => {
  const { holder } = callers(
    () => `[limits.client]
requests = { per_second = 0.1, burst = 10 }
writes = { per_second = 0.1, burst = 5 }
[limits.tenant]
requests = { per_second = 10000, burst = 100 }`,
  );
  const first = await write(holder());
  expect(first.headers.get("ratelimit-policy")).toBe(
    '"client-requests";q=10;w=100, "client-writes";q=5;w=50, "tenant-requests";q=10000;w=1',
  );
  expect(first.headers.get("ratelimit")).toBe(
    '"client-requests";r=9;t=10, "client-writes";r=4;t=10, "tenant-requests";r=99;t=1',
  );
  const second = await read(holder());
  expect(second.headers.get("ratelimit")).toStartWith('"client-requests";r=8;t=');
  expect(second.headers.get("ratelimit")).not.toContain("writes");
});

test.each([
  [100, 200, "q=200;w=2"],
  [0.01, 2, "q=2;w=200"],
  // A bucket that fills in less than a second: the rate, of which `r` says how many can be sent at once.
  [2, 1, "q=2;w=1"],
  [10_000, 100, "q=10000;w=1"],
  [3, 10, "q=12;w=4"],
  [0.3, 1, "q=1;w=4"],
  [1, 1, "q=1;w=1"],
])("a quota of %d a second and %d at once is %s", async (perSecond, burst, window) => {
  const { holder } = callers(
    () => `[limits.client]\nrequests = { per_second = ${perSecond}, burst = ${burst} }`,
  );
  const { headers } = await read(holder());
  expect(headers.get("ratelimit-policy")).toBe(`"client-requests";${window}`);
  expect(headers.get("ratelimit")).toStartWith(`"client-requests";r=${burst - 1};t=`);
});

test("a limit of writes leaves reads and searches alone, and counts POST, PUT, PATCH and DELETE", async () => {
  const { holder } = callers(() => `[limits.client]\nwrites = ${burst(4)}`);
  const send = (method: string) => () =>
    service.send(method, NOBODY, {
      caller: holder(),
      headers: STALE,
      body: method === "DELETE" ? undefined : BODY,
    });
  expect(
    await statuses(
      () => create(holder()),
      ...["PUT", "PATCH", "DELETE", "PUT", "PATCH", "DELETE"].map(send),
      () => create(holder()),
      () => read(holder()),
      () => search(holder()),
    ),
  ).toEqual([201, 404, 404, 404, 429, 429, 429, 429, 404, 200]);
});

test("a refused request draws from no limit, not even from one that it keeps", async () => {
  const { holder } = callers(() => `[limits.client]\nrequests = ${burst(3)}\nwrites = ${burst(1)}`);
  expect(
    await statuses(
      () => write(holder()),
      () => write(holder()),
      () => write(holder()),
      () => read(holder()),
      () => read(holder()),
      () => read(holder()),
    ),
  ).toEqual([404, 429, 429, 404, 404, 429]);
});

describe("who shares a limit", () => {
  test("all tokens of a client share its limit, other clients of the tenant do not", async () => {
    const { holder } = callers(() => `[limits.client]\nrequests = ${burst(1)}`);
    expect(
      await statuses(
        () => read(holder()),
        () => read(holder({ role: "viewer" })),
        () => read(holder({ client: "other" })),
      ),
    ).toEqual([404, 429, 404]);
  });

  test("clients of one name in two tenants are two clients", async () => {
    const { holder } = callers(() => `[limits.client]\nrequests = ${burst(1)}`);
    const elsewhere = holder({ tenant: `tenant-${crypto.randomUUID()}` });
    expect(
      await statuses(
        () => read(holder()),
        () => read(elsewhere),
      ),
    ).toEqual([404, 404]);
  });

  test("all clients of a tenant share its limit, those of another tenant do not", async () => {
    const { holder } = callers(() => `[limits.tenant]\nrequests = ${burst(1)}`);
    const elsewhere = holder({ tenant: `tenant-${crypto.randomUUID()}` });
    expect(
      await statuses(
        () => read(holder()),
        () => read(holder({ client: "other" })),
        () => read(elsewhere),
      ),
    ).toEqual([404, 429, 404]);
  });

  test("a client's or a tenant's own row replaces the general one whole", async () => {
    const { holder } = callers(
      (client, tenant) => `[limits.client]
requests = ${burst(1)}
[limits.clients.${client}]
writes = ${burst(2)}
[limits.tenant]
writes = ${burst(1)}
[limits.tenants.${tenant}]
requests = ${burst(4)}`,
    );
    expect(
      await statuses(
        () => write(holder()),
        () => write(holder()),
        () => write(holder()),
        () => read(holder()),
        () => read(holder()),
        () => read(holder()),
      ),
    ).toEqual([404, 404, 429, 404, 404, 429]);
  });

  test("a token for metrics belongs to no tenant and has no limit", async () => {
    callers(() => `[limits.client]\nrequests = ${burst(1)}\n[limits.tenant]\nrequests = ${burst(1)}`);
    const scrape = () =>
      service.send("GET", "/metrics", { caller: { role: "monitor", client: "prometheus" } });
    expect(await statuses(scrape, scrape, scrape)).toEqual([200, 200, 200]);
  });
});

describe("the place in the order of checks", () => {
  const exhausted = async (role: string) => {
    const { holder } = callers(() => `[limits.client]\nrequests = ${burst(1)}`);
    await read(holder());
    return holder({ role });
  };

  test("after 404 and 405 of the route and after 401", async () => {
    const caller = await exhausted("admin");
    expect(
      await statuses(
        () => service.send("GET", "/nowhere", { caller }),
        () => service.send("PUT", "/customers", { caller }),
        () => service.send("GET", NOBODY, { caller: null }),
      ),
    ).toEqual([404, 405, 401]);
  });

  test("before 403, 428, 400, 404, 412 and all that is wrong with the body", async () => {
    const { path, etag } = await service.customer();
    const viewer = await exhausted("viewer");
    const caller = { ...viewer, role: "admin" };
    const text = { "content-type": "text/plain", "if-match": etag };
    expect(
      await statuses(
        () => service.send("DELETE", NOBODY, { caller: viewer }),
        () => service.send("PUT", NOBODY, { caller, body: BODY }),
        () => service.send("GET", `${NOBODY}?nope=1`, { caller }),
        () => service.send("GET", NOBODY, { caller }),
        () => service.send("PUT", path, { caller, body: BODY, headers: STALE }),
        () => service.send("PUT", path, { caller, body: "x".repeat(70_000), headers: text }),
      ),
    ).toEqual([429, 429, 429, 429, 429, 429]);
  });
});

test("a limit neither loses nor doubles a write: refused, nothing is written; sent again, it is written once", async () => {
  const { holder } = callers(() => `[limits.client]\nwrites = ${burst(2)}`);
  const { path, etag } = await service.customer({}, holder());
  const put = (name: string, ifMatch: string, key: string) =>
    service.send("PUT", path, {
      caller: holder(),
      headers: { "if-match": ifMatch, "idempotency-key": key },
      body: { ...BODY, name },
    });
  const first = await put("Grace", etag, "first");
  const repeated = await put("Grace", etag, "first");
  const second = await put("Edsger", first.etag, "second");
  expect([first.status, repeated.status, second.status]).toEqual([204, 429, 429]);
  expect((await service.send("GET", path, { caller: holder() })).json.name).toBe("Grace");

  service.reload(BUILT_IN_POLICY);
  const replayed = await put("Grace", etag, "first");
  expect([replayed.status, replayed.etag, replayed.headers.get("idempotency-replayed")]).toEqual([
    204,
    first.etag,
    "true",
  ]);
  expect((await put("Edsger", first.etag, "second")).status).toBe(204);
  expect((await service.send("GET", path, { caller: holder() })).json.name).toBe("Edsger");
});

test("a body that arrives is not counted a second time", async () => {
  const { holder } = callers(() => `[limits.client]\nwrites = ${burst(3)}`);
  const sent = () => create(holder());
  expect(await statuses(sent, sent, sent, sent)).toEqual([201, 201, 201, 429]);
});

test("a reload of the policy keeps what was used up", async () => {
  const limits = (client: string) => `[limits.clients.${client}]\nrequests = ${burst(2)}\n`;
  const { holder, client } = callers(limits);
  await statuses(
    () => read(holder()),
    () => read(holder()),
  );
  service.reload(`${BUILT_IN_POLICY}\n${limits(client)}[limits.client]\nwrites = ${burst(1)}\n`);
  expect((await read(holder())).status).toBe(429);
  service.reload(BUILT_IN_POLICY);
  expect((await read(holder())).status).toBe(404);
});

test("refusals are counted by limit, client and tenant, from 0 on", async () => {
  const { holder, client, tenant } = callers(
    () => `[limits.client]\nwrites = ${burst(1)}\n[limits.tenant]\nrequests = ${burst(3)}`,
  );
  const series = async () =>
    (await service.metrics.text())
      .split("\n")
      .filter((line) => line.startsWith("customers_requests_limited_total") && line.includes(tenant));
  await write(holder());
  expect(await series()).toEqual([
    `customers_requests_limited_total{limit="client-writes",client="${client}",tenant="${tenant}"} 0`,
    `customers_requests_limited_total{limit="tenant-requests",client="",tenant="${tenant}"} 0`,
  ]);
  await statuses(
    () => write(holder()),
    () => write(holder()),
    () => read(holder()),
    () => read(holder()),
    () => read(holder()),
  );
  expect(await series()).toEqual([
    `customers_requests_limited_total{limit="client-writes",client="${client}",tenant="${tenant}"} 2`,
    `customers_requests_limited_total{limit="tenant-requests",client="",tenant="${tenant}"} 1`,
  ]);
});

test("where anyone may read the metrics, no caller is named", async () => {
  const open = await TestService.start({
    metricsArePublic: true,
    policy: `${BUILT_IN_POLICY}\n[limits.client]\nrequests = ${burst(1)}\n`,
  });
  try {
    for (let sent = 0; sent < 3; sent += 1) await open.send("GET", NOBODY);
    const text = await open.metrics.text();
    expect(text).toContain('customers_requests_limited_total{limit="client-requests"} 2');
    expect(text).toContain('customers_requests_limited_total{limit="tenant-writes"} 0');
  } finally {
    await open.stop();
  }
});

test("seconds are as many at every time of the clock, whose fractions do not round to one more", () => {
  const limits = new CallerLimits(new LimitMetrics(new Registry(), true), 0);
  const client = { requests: { perSecond: 0.1, burst: 1 } };
  const inForce = { client, tenant: {}, clients: new Map(), tenants: new Map() };
  const seen = new Set<string | undefined>();
  for (let step = 1; step <= 1000; step += 1) {
    const caller = { client: `c${step}`, tenant: "acme" };
    const nowMs = 6384.013912 + step * 0.013717;
    seen.add(limits.admit(inForce, caller, "GET", "/customers", nowMs).fields?.state);
    seen.add(
      limits.admit(inForce, caller, "GET", "/customers", nowMs).refusal?.problem.headers?.["retry-after"],
    );
  }
  expect([...seen]).toEqual(['"client-requests";r=0;t=10', "10"]);
});

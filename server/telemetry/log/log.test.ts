import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import packageJson from "../../../package.json";
import { Output, Workplace } from "../../tests/support/service/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

const NAME = "Canary-Fenimore";
const EMAIL = "canary.fenimore@example.org";
const NEVER_A_TOKEN = `cst_${"Zz9".repeat(14).slice(0, 40)}`;

/**
 * Sends reads, writes and refusals of every kind with a name,
 * an address and tokens wherever a client can put them.
 */
async function sendCanaries(
  service: Awaited<ReturnType<Workplace["start"]>>,
  token: string,
): Promise<number> {
  let sent = 0;
  const send = async (...args: Parameters<typeof service.send>) => {
    sent += 1;
    return await service.send(...args);
  };
  const body = { name: NAME, email: EMAIL };
  const created = await send(token, "POST", "/customers", { body, headers: { "idempotency-key": EMAIL } });
  const path = `/customers/${created.json.id}`;
  const stale = { "if-match": `"${NAME}"` };
  const fresh = { "if-match": created.etag };
  await send(token, "GET", `${path}?fields=name,email`);
  await send(token, "GET", `${path}?fields=${EMAIL}`);
  await send(token, "GET", `${path}?${EMAIL}=${NAME}`);
  await send(token, "GET", `/customers?status=${EMAIL}`);
  await send(token, "GET", `/customers?cursor=${EMAIL}`);
  await send(token, "GET", `/customers/${EMAIL}`);
  await send(token, "GET", `/customers/${token}`);
  await send(token, "GET", `/${NAME}/${EMAIL}`);
  await send(token, "GET", `/problems/${NAME}`);
  await send(token, "POST", "/customers/search", { body: { email: EMAIL } });
  await send(token, "PUT", path, { body });
  await send(token, "PUT", path, { body, headers: stale });
  await send(token, "PUT", path, { body: { ...body, [EMAIL]: NAME, status: NAME }, headers: fresh });
  await send(token, "PATCH", path, { body: { email: NAME }, headers: fresh });
  await send(token, "POST", "/customers", { body, headers: { "content-type": EMAIL } });
  await send(NEVER_A_TOKEN, "GET", path);
  await send(`${token}x`, "DELETE", path, { headers: stale });
  const marked = { "user-agent": `${NAME}/1.0 ${token}`, referer: EMAIL, cookie: token, origin: EMAIL };
  for (const requestId of [EMAIL, token, NEVER_A_TOKEN, `x-${token}-x`]) {
    await send(token, "GET", path, { headers: { ...marked, "x-request-id": requestId } });
  }
  const last = await send(token, "PATCH", path, { body: { name: NAME }, headers: fresh });
  expect(last.status).toBe(204);
  return sent;
}

test("a line that comes after the log was closed is dropped, and does not end the process", async () => {
  const script = `
    const { openLog } = await import("./log.ts");
    const log = openLog("info", "json");
    log.logger.info("in time");
    await log.close();
    log.logger.info("too late");`;
  const child = Bun.spawn([process.execPath, "-e", script], {
    cwd: import.meta.dir,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const lines = (await child.stderr.text()).trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(["in time"]);
  expect(await child.exited).toBe(0);
});

describe("the log", () => {
  test("has one line of JSON a request at info, with method, route, status, duration, client, tenant and request id", async () => {
    const service = await place.start();
    const reply = await service.send(place.adminToken, "GET", "/customers?limit=1", {
      headers: { "x-request-id": "order-17.b" },
    });
    expect(reply.headers.get("x-request-id")).toBe("order-17.b");
    await service.send(null, "PUT", "/customers/x");
    await service.send(place.adminToken, "PUT", "/customers/x");
    await service.send(null, "GET", "/nowhere");
    await service.end();
    // By status: of several processes each writes its lines when it comes to it.
    const lines = service.log
      .filter((line) => line["msg"] === "request")
      .sort((a, b) => Number(a["status"]) - Number(b["status"]));
    const common = {
      level: "info",
      address: "127.0.0.1",
      durationMs: expect.any(Number),
      time: expect.stringMatching(/^\d{4}-.*Z$/),
    };
    const caller = { client: "admin", tenant: "default" };
    const madeId = expect.stringMatching(/^[0-9a-f-]{36}$/);
    expect(lines).toEqual([
      {
        ...common,
        msg: "request",
        method: "GET",
        route: "/customers",
        status: 200,
        requestId: "order-17.b",
        ...caller,
      },
      {
        ...common,
        msg: "request",
        method: "PUT",
        route: "/customers/{id}",
        status: 401,
        requestId: madeId,
        code: "unauthenticated",
      },
      {
        ...common,
        msg: "request",
        method: "GET",
        route: "(none)",
        status: 404,
        requestId: madeId,
        code: "route-not-found",
      },
      {
        ...common,
        msg: "request",
        method: "PUT",
        route: "/customers/{id}",
        status: 428,
        requestId: madeId,
        ...caller,
        code: "precondition-required",
      },
    ]);
    expect(service.stdout.text.trim().split("\n")).toHaveLength(1);
  });

  test.each(["json", "text"])(
    "as %s never has a token, a name or an email address, wherever a client puts them, and every line to the last",
    async (format) => {
      const service = await place.start({ env: { LOG_FORMAT: format, LOG_LEVEL: "trace" } });
      const token = place.adminToken;
      const sent = await sendCanaries(service, token);
      await service.end();
      const text = service.stderr.text;
      for (const canary of [NAME, EMAIL, token, token.slice(4), NEVER_A_TOKEN, "fenimore"]) {
        expect(text.toLowerCase()).not.toContain(canary.toLowerCase());
      }
      expect(text.match(/\bstatus["=:]/g)).toHaveLength(sent);
    },
  );

  test("as text is a line for people", async () => {
    const service = await place.start({ env: { LOG_FORMAT: "text" } });
    await service.send(null, "GET", "/problems/invalid-body");
    await service.end();
    expect(service.stderr.text).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} info request method=GET route=\/problems\/\{code\} status=200 durationMs=\S+ requestId=\S+ address=127\.0\.0\.1$/m,
    );
  });

  test("has no line for a probe or a scrape that succeeds, unless LOG_LEVEL is debug; a refused one has its line", async () => {
    for (const [level, routes] of [
      ["info", ["/metrics"]],
      ["debug", ["/healthz", "/readyz", "/metrics"]],
    ] as const) {
      const service = await place.start({ services: 1, env: { LOG_LEVEL: level } });
      for (const path of ["/healthz", "/readyz", "/metrics"]) await service.send(null, "GET", path);
      await service.end();
      const requests = service.log.filter(({ msg }) => msg === "request");
      expect(requests.map(({ route }) => route)).toEqual([...routes]);
    }
  });

  test("begins with the version, the address and the database, by the names of levels", async () => {
    const service = await place.start({ services: 1 });
    await service.end();
    expect(service.log[0]).toMatchObject({
      level: "info",
      version: packageJson.version,
      url: service.url,
      database: place.databaseUrl,
      msg: "listening",
    });
  });

  test("is as quiet as LOG_LEVEL says", async () => {
    for (const level of ["warn", "silent"]) {
      const service = await place.start({ env: { LOG_LEVEL: level } });
      await service.send(null, "GET", "/healthz");
      await service.end();
      expect(service.stderr.text).toBe("");
    }
  });

  test("at warn still has the writes that a rollout let pass without If-Match", async () => {
    const policy = `${place.path}/policy.toml`;
    writeFileSync(
      policy,
      `[roles.admin]\nread = ["id"]\noperations = ["create", "delete"]\n[enforcement]\nmode = "observe"\nuntil = 2999-01-01\n`,
    );
    const service = await place.start({ env: { LOG_LEVEL: "warn", POLICY_FILE: policy } });
    const body = { name: "Ada", email: "ada@example.com" };
    const { json } = await service.send(place.adminToken, "POST", "/customers", { body });
    expect((await service.send(place.adminToken, "DELETE", `/customers/${json.id}`)).status).toBe(204);
    await service.end();
    expect(service.log).toEqual([
      expect.objectContaining({
        level: "warn",
        method: "DELETE",
        client: "admin",
        allowedWithoutIfMatch: true,
      }),
    ]);
  });

  test("drops what nobody reads past 8 MiB, counts it, and keeps every other line whole", async () => {
    const program = new URL("../../tests/support/service/flooded-log.ts", import.meta.url).pathname;
    const child = Bun.spawn([process.execPath, program, "60000"], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    await new Output(child.stdout).line((line) => line === "logged");
    const stderr = new Output(child.stderr);
    const told = await stderr.line((line) => line.includes('"dropped"'));
    child.stdin.end();
    await Promise.all([child.exited, stderr.over()]);
    const lines = stderr.text.trim().split("\n");
    const requests = lines.filter((line) => (JSON.parse(line) as { msg: string }).msg === "request");
    const { dropped } = JSON.parse(told ?? "") as { dropped: number };
    expect(dropped).toBeGreaterThan(0);
    expect(requests.length + dropped).toBe(60_000);
    expect(requests.join("\n").length).toBeGreaterThan(7_000_000);
  });
});

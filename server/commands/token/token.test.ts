import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { readPolicyFile } from "../../config/policy-file.ts";
import { tokenDigest } from "../../storage/tokens/bearer-token.ts";
import { ENGINE } from "../../tests/support/postgres/postgres-databases.ts";
import {
  type CommandOutcome,
  runCommand,
  type ServerProcess,
  Workplace,
} from "../../tests/support/service/server-process.ts";
import { readTokenOptions } from "./token-options.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  place.makeDirectory();
});
/** For tests that look at tokens of their own alone, and change nothing else: one service and its place. */
let shared: { readonly place: Workplace; readonly service: ServerProcess } | null = null;
afterEach(async () => {
  if (place !== shared?.place) await place.clear();
});
afterAll(() => shared?.place.clear());

/** From now on `place` is that of the service. */
async function sharedService(): Promise<ServerProcess> {
  await place.clear();
  if (shared === null) {
    place = new Workplace();
    shared = { place, service: await place.start() };
  }
  place = shared.place;
  return shared.service;
}

const create = (...args: string[]): Promise<CommandOutcome> =>
  place.command(["token", "create", "--client", "ci", ...args]);

async function created(...args: string[]): Promise<string> {
  const outcome = await create(...args);
  expect(outcome.code).toBe(0);
  // The token alone, so that TOKEN=$(…) works.
  expect(outcome.stdout).toMatch(/^cst_[A-Za-z0-9]{40}\n$/);
  return outcome.stdout.trim();
}

async function statusOf(service: ServerProcess, token: string, path = "/customers"): Promise<number> {
  return (await service.send(token, "GET", path)).status;
}

describe("a token made beside a running service", () => {
  test("holds at once, with its tenant and role, and is refused from the very request after its revocation", async () => {
    const service = await place.start();
    const viewer = await created("--role", "viewer", "--tenant", "acme");
    const editor = await created("--role", "editor", "--tenant", "acme");
    const body = { name: "Ada", email: "ada@example.com" };
    expect((await service.send(viewer, "POST", "/customers", { body })).status).toBe(403);
    const made = await service.send(editor, "POST", "/customers", { body });
    expect(made.status).toBe(201);
    const path = `/customers/${made.json.id}`;
    expect(await statusOf(service, viewer, path)).toBe(200);
    expect(await statusOf(service, place.adminToken, path)).toBe(404);

    // As processes, as an operator has them.
    const listed = await place.run(["token", "list"]);
    const prefix =
      listed.stdout
        .split("\n")
        .find((line) => line.includes("viewer"))
        ?.split(" ")[0] ?? "";
    expect(viewer).toStartWith(prefix);
    const revoked = await place.run(["token", "revoke", prefix]);
    expect(revoked).toMatchObject({ code: 0, stdout: `${prefix}: revoked (client ci, role viewer)\n` });
    expect(await statusOf(service, viewer, path)).toBe(401);
    expect(await statusOf(service, editor, path)).toBe(200);

    // The whole token does as well as its first characters.
    expect((await place.command(["token", "revoke", editor])).code).toBe(0);
    expect(await statusOf(service, editor, path)).toBe(401);
    const again = await place.command(["token", "revoke", editor]);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain("No valid token starts with these characters");
  });

  test("ends when its time is over, and the list shows that time", async () => {
    const service = await sharedService();
    const token = await created("--role", "viewer", "--tenant", "acme", "--expires", "90d");
    expect(await statusOf(service, token)).toBe(200);
    const day = new Date(Date.now() + 90 * 86_400_000).toISOString().slice(0, 10);
    const prefix = token.slice(0, 12);
    const { stdout } = await place.command(["token", "list"]);
    expect(stdout.split("\n").find((line) => line.startsWith(prefix))).toContain(day);
    place.execute(`UPDATE tokens SET expires_at = ${Date.now() - 1} WHERE prefix = '${prefix}'`);
    expect(await statusOf(service, token)).toBe(401);
  });

  test("of a tenant that no token belonged to is announced on stderr, and of a known tenant is not", async () => {
    await place.prepare();
    const first = await create("--role", "viewer", "--tenant", "acme");
    expect(first.stderr).toBe(
      'Tenant "acme" is new: it had no token and no customer. If that is a typing error, revoke the token.\n',
    );
    expect((await create("--role", "editor", "--tenant", "acme")).stderr).toBe("");
    expect((await create("--role", "viewer", "--tenant", "default")).stderr).toBe("");
    expect((await create("--role", "monitor")).stderr).toBe("");
  });

  test("for metrics belongs to no tenant, and reads metrics and nothing else", async () => {
    const service = await sharedService();
    const refused = await create("--role", "monitor", "--tenant", "acme");
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("--tenant must be left out");
    const token = await created("--role", "monitor");
    expect(await statusOf(service, token, "/metrics")).toBe(200);
    expect(await statusOf(service, token)).toBe(403);
    expect(await statusOf(service, place.adminToken, "/metrics")).toBe(403);
  });
});

describe("what can't be a token is refused with what to do, and nothing is made", () => {
  const sound = { role: "viewer", client: "ci", tenant: "acme" };
  test.each([
    { request: { role: "viewer", client: "ci" }, says: "--tenant is missing" },
    {
      request: { ...sound, role: "owner" },
      says: '--role "owner" must be a role of the policy: admin, editor',
    },
    { request: { ...sound, role: "__proto__" }, says: '--role "__proto__" must be a role of the policy' },
    { request: { ...sound, role: "monitor" }, says: "--tenant must be left out" },
    { request: { ...sound, tenant: "a b" }, says: '--tenant "a b" must be 1 to 64' },
    { request: { ...sound, tenant: "x".repeat(65) }, says: "must be 1 to 64" },
    { request: { ...sound, client: "" }, says: '--client "" must be 1 to 64' },
    {
      request: { ...sound, fields: "nmae" },
      says: '--fields names "nmae", but must name some of id, name, email, status. Did you mean name?',
    },
    { request: { ...sound, fields: "" }, says: '--fields names "", but must name some of' },
    { request: { ...sound, fields: "name,,id" }, says: '--fields names "", but must' },
    { request: { ...sound, fields: "createdAt" }, says: '--fields names "createdAt", but must' },
    {
      request: { ...sound, role: "support", fields: "name,email" },
      says: "--fields names email, which the role support may not read. It may read: id, name, status.",
    },
    {
      request: { ...sound, operations: "read,list" },
      says: '--operations names "read", but must name some of get, list, create',
    },
    {
      request: { ...sound, role: "viewer", operations: "get,patch" },
      says: "--operations names patch, which the role viewer lacks. It has the operations: get, list.",
    },
    { request: { client: "ci", role: "monitor", fields: "id" }, says: "It may read: none." },
    ...["soon", "0d", "-1d", "90", "1.5d", "d", "90D", "999999d", ""].map((expires) => ({
      request: { ...sound, expires },
      says: `--expires "${expires}" must be a time such as 12h`,
    })),
  ])("$says", ({ request, says }) => {
    const policy = readPolicyFile(null);
    if (!policy.ok) throw new Error("the built-in policy is refused");
    const outcome = readTokenOptions(policy.policy, request, Date.now());
    expect(outcome).toEqual({ ok: false, fault: expect.stringContaining(says) });
  });

  test("by the command with exit code 1 and a sentence", async () => {
    const outcome = await create("--role", "viewer");
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toMatch(/^--tenant is missing\. Name the tenant .*\n$/);
    expect(existsSync(place.database)).toBe(false);
  });
});

describe("a token with a scope", () => {
  test("may do what both its scope and its role allow, and is listed with it", async () => {
    const service = await sharedService();
    const names = await created(
      "--role",
      "editor",
      "--tenant",
      "acme",
      "--fields",
      "email, name",
      "--operations",
      "list,get",
    );
    const body = { name: "Ada", email: "ada@example.com" };
    expect((await service.send(names, "POST", "/customers", { body })).status).toBe(403);
    expect(await statusOf(service, names, "/customers?fields=name,email")).toBe(200);
    expect(await statusOf(service, names, "/customers?fields=id")).toBe(403);
    const { stdout } = await place.command(["token", "list"]);
    expect(stdout).toMatch(/ci +editor +acme +name,email +get,list +/);
    const { stdout: lines } = await place.command(["token", "list", "--json"]);
    const records = lines
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records.find(({ prefix }) => prefix === names.slice(0, 12))).toMatchObject({
      client: "ci",
      role: "editor",
      tenant: "acme",
      fields: ["name", "email"],
      operations: ["get", "list"],
      expiresAt: null,
      replacedBy: null,
      revokedAt: null,
    });
  });
});

describe("token rotate", () => {
  test("prints a new token alone, for the same client, and the old one goes on for the overlap", async () => {
    const service = await sharedService();
    const old = await created(
      "--role",
      "viewer",
      "--tenant",
      "acme",
      "--expires",
      "90d",
      "--operations",
      "list",
    );
    const rotated = await place.command(["token", "rotate", old.slice(0, 12), "--overlap", "2h"]);
    expect([rotated.code, rotated.stdout]).toEqual([0, expect.stringMatching(/^cst_[A-Za-z0-9]{40}\n$/)]);
    const token = rotated.stdout.trim();
    expect(rotated.stderr).toMatch(
      /^cst_\w{8}: made for client ci, role viewer, valid until 20\d\d-\d\d-\d\d \d\d:\d\d UTC\ncst_\w{8}: valid until .* UTC\n$/,
    );
    expect(await Promise.all([old, token].map((text) => statusOf(service, text)))).toEqual([200, 200]);
    const { stdout } = await place.command(["token", "list"]);
    const row = stdout.split("\n").find((line) => line.startsWith(old.slice(0, 12)));
    expect(row).toContain(token.slice(0, 12));
    place.execute(`UPDATE tokens SET expires_at = ${Date.now() - 1} WHERE replaced_by IS NOT NULL`);
    expect(await Promise.all([old, token].map((text) => statusOf(service, text)))).toEqual([401, 200]);
  });

  test("carries a write over that was sent with the old token and is repeated with the new one", async () => {
    const service = await sharedService();
    const old = await created("--role", "editor", "--tenant", "acme");
    const request = {
      body: { name: "Ada", email: "ada@example.com" },
      headers: { "idempotency-key": "once" },
    };
    const made = await service.send(old, "POST", "/customers", request);
    const token = (await place.command(["token", "rotate", old])).stdout.trim();
    const repeated = await service.send(token, "POST", "/customers", request);
    expect([repeated.status, repeated.json.id]).toEqual([201, made.json.id]);
    expect(repeated.headers.get("idempotency-replayed")).toBe("true");
  });

  test("with an overlap of none ends the old one at once, and --expires never makes one without an end", async () => {
    const service = await sharedService();
    const old = await created("--role", "viewer", "--tenant", "acme", "--expires", "90d");
    const rotated = await place.command(["token", "rotate", old, "--overlap", "0h", "--expires", "never"]);
    expect(rotated.stderr).toContain("valid until it is revoked");
    expect(await statusOf(service, old)).toBe(401);
    expect(await statusOf(service, rotated.stdout.trim())).toBe(200);
  });

  test.each([
    { args: ["cst_nobody"], says: "No valid token starts with these characters" },
    { args: [""], says: "No valid token starts with these characters" },
    { args: ["cst_", "--overlap", "soon"], says: '--overlap "soon" must be a time' },
    { args: ["cst_", "--expires", "0d"], says: '--expires "0d" must be a time' },
  ])("refuses $args", async ({ args, says }) => {
    await place.prepare();
    const outcome = await place.command(["token", "rotate", ...args]);
    expect(outcome).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(says) });
  });
});

const REFUSE_UPDATES = {
  sqlite: "CREATE TRIGGER refuse BEFORE UPDATE ON tokens BEGIN SELECT RAISE(ABORT, 'not now'); END",
  postgres: `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON tokens FOR EACH ROW EXECUTE FUNCTION refuse()`,
};
const ALLOW_UPDATES = { sqlite: "DROP TRIGGER refuse", postgres: "DROP TRIGGER refuse ON tokens" };

describe("a token that could not be shown", () => {
  const LOST: [string, string][] = [
    ["a full disk", 'exec "$@" >/dev/full'],
    ["a pipe without a reader", 'mkfifo pipe && exec 3<>pipe 4>pipe 3<&- && exec "$@" >&4'],
  ];
  const lose = (script: string, args: readonly string[]): Promise<CommandOutcome> =>
    runCommand(args, {
      cwd: place.path,
      env: { DATABASE_URL: place.databaseUrl },
      under: ["sh", "-c", script, "sh"],
    });
  const valid = async (): Promise<string[]> => {
    const { stdout } = await place.command(["token", "list", "--json"]);
    const records = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    return records.filter(({ revokedAt }) => revokedAt === null).map(({ prefix }) => prefix);
  };

  test.each(LOST)("is revoked where it was created, and named: %s", async (_, script) => {
    const kept = await created("--role", "viewer", "--tenant", "acme");
    const args = ["token", "create", "--client", "ci", "--role", "admin", "--tenant", "acme"];
    const { code, stdout, stderr } = await lose(script, args);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^Standard output can't be written: [^\n]+\. The new token cst_\w{8} could not be shown, so it was revoked\. Create another one where it can be written\.\n$/,
    );
    expect(await valid()).toEqual([kept.slice(0, 12)]);
  });

  test.each([">&-", ">/dev/null"])(
    "is not made, nor rotated, where the output keeps nothing: %s",
    async (output) => {
      const kept = await created("--role", "viewer", "--tenant", "acme");
      const create = ["token", "create", "--client", "ci", "--role", "admin", "--tenant", "acme"];
      for (const args of [create, ["token", "rotate", kept.slice(0, 12)]]) {
        const { code, stderr } = await lose(`exec "$@" ${output}`, args);
        expect(code).toBe(1);
        expect(stderr).toContain("nothing was done");
      }
      expect(await valid()).toEqual([kept.slice(0, 12)]);
    },
  );

  test("is named with the command that revokes it where it can't be revoked", async () => {
    await created("--role", "viewer", "--tenant", "acme");
    place.execute(REFUSE_UPDATES[ENGINE]);
    const args = ["token", "create", "--client", "ci", "--role", "admin", "--tenant", "acme"];
    const { code, stdout, stderr } = await lose('exec "$@" >/dev/full', args);
    place.execute(ALLOW_UPDATES[ENGINE]);
    expect([code, stdout]).toEqual([1, ""]);
    const [, lost = "", remedy = ""] =
      /The new token (cst_\w{8}) could not be shown, could not be revoked, and is valid\. Revoke it: `customers-server (.*)`\.\n$/.exec(
        stderr,
      ) ?? [];
    expect(await valid()).toContain(lost);
    expect((await place.command(remedy.split(" "))).code).toBe(0);
    expect(await valid()).not.toContain(lost);
  });

  test.each(LOST)(
    "stays valid where it replaces another, and is named with what to do: %s",
    async (_, script) => {
      const old = await created("--role", "viewer", "--tenant", "acme");
      const { code, stdout, stderr } = await lose(script, [
        "token",
        "rotate",
        old.slice(0, 12),
        "--overlap",
        "0h",
      ]);
      expect([code, stdout]).toEqual([1, ""]);
      const [, lost = "", remedy = ""] =
        /The new token (cst_\w{8}) could not be shown, and is valid\. .*: `customers-server (.*)`\.\n$/.exec(
          stderr,
        ) ?? [];
      const again = await place.command(remedy.split(" "));
      expect([again.code, again.stdout]).toEqual([0, expect.stringMatching(/^cst_[A-Za-z0-9]{40}\n$/)]);
      expect(again.stderr).toContain(`${lost}: valid until `);
      const service = await place.start();
      expect(await statusOf(service, again.stdout.trim())).toBe(200);
    },
  );
});

describe("token list --break-glass", () => {
  test("names the tokens to look at, and why, by the policy that is given", async () => {
    await place.prepare();
    const make = async (...args: string[]) => (await created("--tenant", "acme", ...args)).slice(0, 12);
    const [boss, narrow, viewer, old, gone, stranger] = [
      await make("--role", "admin", "--expires", "90d"),
      await make("--role", "admin", "--expires", "90d", "--operations", "get"),
      await make("--role", "viewer"),
      await make("--role", "viewer", "--expires", "90d"),
      await make("--role", "viewer"),
      await make("--role", "support", "--expires", "90d"),
    ];
    const dayMs = 86_400_000;
    place.execute(`UPDATE tokens SET last_used_at = ${Date.now() - 61 * dayMs} WHERE prefix = '${viewer}'`);
    place.execute(`UPDATE tokens SET expires_at = ${Date.now() - 1} WHERE prefix = '${old}'`);
    await place.command(["token", "revoke", gone ?? ""]);
    const policyFile = `${place.path}/policy.toml`;
    writeFileSync(
      policyFile,
      '[roles.admin]\nread = ["id", "name", "email", "status"]\noperations = ["get", "list", "create", "replace", "patch", "delete"]\n[roles.viewer]\nread = ["id"]\noperations = ["get"]\n',
    );
    const list = (...args: string[]) =>
      place.command(["token", "list", "--break-glass", "--policy-file", policyFile, ...args]);
    const { stdout } = await list("--json", "--unused", "60d");
    const found = new Map(
      stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
        .map(({ prefix, findings }) => [prefix, findings]),
    );
    expect(Object.fromEntries(found)).toEqual({
      [place.adminToken.slice(0, 12)]: ["can do everything", "never expires"],
      [boss ?? ""]: ["can do everything"],
      [viewer ?? ""]: ["never expires", "unused"],
      [old ?? ""]: ["expired"],
      [stranger ?? ""]: ["may do nothing"],
    });
    expect(found.has(narrow)).toBe(false);
    expect((await list()).stdout).toMatch(/^PREFIX .* FINDINGS\n/);
    expect((await list("--unused", "soon")).stderr).toContain('--unused "soon" must be a time');
  });
});

describe("roles of a policy file", () => {
  test("can be given, a tenant's own for that tenant alone", async () => {
    const policyFile = `${place.path}/policy.toml`;
    writeFileSync(
      policyFile,
      '[roles.clerk]\nread = ["id"]\noperations = ["get"]\n[tenants.acme.roles.boss]\nread = ["id"]\noperations = ["list"]\n',
    );
    const make = (...args: string[]) =>
      place.command(["token", "create", "--client", "ci", ...args], { POLICY_FILE: policyFile });
    expect((await make("--role", "clerk", "--tenant", "acme")).code).toBe(0);
    expect((await make("--role", "boss", "--tenant", "acme")).code).toBe(0);
    const elsewhere = await make("--role", "boss", "--tenant", "other");
    expect(elsewhere).toMatchObject({
      code: 1,
      stderr: '--role "boss" must be a role of the policy: clerk.\n',
    });
  });
});

describe("token list and token revoke", () => {
  test("say when a prefix names several tokens, and revoke none of them", async () => {
    const service = await sharedService();
    const tokens = [];
    for (const prefix of ["cst_aaaa1111", "cst_aaaa2222"]) {
      const token = `${prefix}${"x".repeat(32)}`;
      tokens.push(token);
      const digest = tokenDigest(token);
      const bytes = ENGINE === "postgres" ? `decode('${digest}', 'hex')` : `unhex('${digest}')`;
      place.execute(
        `INSERT INTO tokens (digest, prefix, client, role, tenant, created_at) VALUES (${bytes}, '${prefix}', 'ci', 'viewer', 'acme', 0)`,
      );
    }
    const ambiguous = await place.command(["token", "revoke", "cst_aaaa"]);
    expect(ambiguous.code).toBe(1);
    expect(ambiguous.stderr).toContain("cst_aaaa1111, cst_aaaa2222. Give more characters");
    for (const token of tokens) expect(await statusOf(service, token)).toBe(200);
    expect((await place.command(["token", "revoke", "cst_aaaa1"])).code).toBe(0);
    expect(await Promise.all(tokens.map((token) => statusOf(service, token)))).toEqual([401, 200]);
  });

  test("revoke nothing for an empty argument, as an unset variable of a shell gives it", async () => {
    await place.prepare();
    const outcome = await place.command(["token", "revoke", ""]);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect((await place.command(["token", "revoke", place.adminToken.slice(0, 12)])).code).toBe(0);
  });

  test("show no token, only its first characters, with client, role, tenant, and a last use that is not before its creation", async () => {
    const service = await place.start();
    await statusOf(service, place.adminToken);
    await service.end();
    const { stdout } = await place.command(["token", "list"]);
    const [heading = "", row = ""] = stdout.trimEnd().split("\n");
    expect(heading.split(/ {2,}/)).toEqual(
      "PREFIX,CLIENT,ROLE,TENANT,FIELDS,OPERATIONS,CREATED,EXPIRES,LAST USED,FROM,REPLACED BY,REVOKED".split(
        ",",
      ),
    );
    const [prefix, client, role, tenant, fields, operations, createdAt, expires, lastUse, from, ...rest] =
      row.split(/ {2,}/);
    expect([prefix, client, role, tenant]).toEqual([
      place.adminToken.slice(0, 12),
      "admin",
      "admin",
      "default",
    ]);
    expect(createdAt).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d$/);
    // To the hour, and never before the creation.
    expect([createdAt, createdAt?.replace(/\d\d$/, "00")]).toContain(lastUse);
    expect([fields, operations, expires, from, ...rest]).toEqual(["-", "-", "-", "127.0.0.0/24", "-", "-"]);
    expect(stdout).not.toContain(place.adminToken.slice(0, 13));
  });

  test("make no database where there is none", async () => {
    for (const args of [["list"], ["revoke", "cst_abc"]]) {
      const outcome = await place.command(["token", ...args]);
      expect(outcome.code).toBe(1);
      expect(outcome.stderr).toContain("does not exist");
      expect(existsSync(place.database)).toBe(false);
    }
  });
});

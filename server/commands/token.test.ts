import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { readPolicyFile } from "../config/policy-file.ts";
import { tokenDigest } from "../storage/bearer-token.ts";
import { ENGINE } from "../tests/support/postgres-databases.ts";
import { type CommandOutcome, type ServerProcess, Workplace } from "../tests/support/server-process.ts";
import { readTokenOptions } from "./token.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  place.makeDirectory();
});
afterEach(() => place.clear());

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
    const service = await place.start();
    const token = await created("--role", "viewer", "--tenant", "acme", "--expires", "90d");
    expect(await statusOf(service, token)).toBe(200);
    const day = new Date(Date.now() + 90 * 86_400_000).toISOString().slice(0, 10);
    expect((await place.command(["token", "list"])).stdout).toContain(day);
    place.execute(`UPDATE tokens SET expires_at = ${Date.now() - 1} WHERE role = 'viewer'`);
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
    const service = await place.start();
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
    const service = await place.start();
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
      "PREFIX,CLIENT,ROLE,TENANT,CREATED,EXPIRES,LAST USED,REVOKED".split(","),
    );
    const [prefix, client, role, tenant, createdAt, expires, lastUse, revokedAt] = row.split(/ {2,}/);
    expect([prefix, client, role, tenant]).toEqual([
      place.adminToken.slice(0, 12),
      "admin",
      "admin",
      "default",
    ]);
    expect(createdAt).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d$/);
    // To the hour, and never before the creation.
    expect([createdAt, createdAt?.replace(/\d\d$/, "00")]).toContain(lastUse);
    expect([expires, revokedAt]).toEqual(["-", "-"]);
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

import { describe, expect, test } from "bun:test";
import { type Enforcement, isEnforced, type Policy, rightsOf, WRITE_METHODS } from "../domain/policy.ts";
import { BUILT_IN_POLICY, readPolicyText } from "./policy-file.ts";

function policyOf(text: string): Policy {
  const result = readPolicyText(text);
  if (!result.ok) throw new Error(result.faults.join("\n"));
  return result.policy;
}
const ROLE = '[roles.r]\nread = ["id"]\noperations = ["get"]\n';

test("a tenant's own row replaces the role's row for its callers alone", () => {
  const policy = policyOf(`${ROLE}[tenants.acme.roles.r]\nread = ["name"]\noperations = []\n`);
  expect([...rightsOf(policy, { tenant: "acme", role: "r" }).read]).toEqual(["name"]);
  expect(rightsOf(policy, { tenant: "acme", role: "r" }).operations.size).toBe(0);
  expect([...rightsOf(policy, { tenant: "other", role: "r" }).read]).toEqual(["id"]);
});

test("a role that the policy does not know has no rights", () => {
  const { read, operations } = rightsOf(policyOf(ROLE), { tenant: "acme", role: "nobody" });
  expect(read.size + operations.size).toBe(0);
});

test("the built-in policy lets support read no email, and monitor nothing but metrics", () => {
  const policy = policyOf(BUILT_IN_POLICY);
  expect([...rightsOf(policy, { tenant: "t", role: "support" }).read]).toEqual(["id", "name", "status"]);
  expect([...rightsOf(policy, { tenant: null, role: "monitor" }).operations]).toEqual(["metrics"]);
  expect([...policy.roles.keys()]).toEqual(["admin", "editor", "viewer", "support", "monitor"]);
  expect(policy.enforcement).toEqual({ mode: "strict" });
});

describe("a policy that is not right is refused with every fault named", () => {
  test.each([
    ["", ["roles is missing"]],
    ["[roles.r]\nread = []\n", ["roles.r.operations is missing"]],
    [
      '[roles.r]\nread = ["emial"]\noperations = ["gte"]\n',
      [
        'roles.r.read.0 is "emial", but must be one of id, name, email, status; did you mean "email"?',
        'roles.r.operations.0 is "gte", but must be one of get, list, create, replace, patch, delete, metrics; did you mean "get"?',
      ],
    ],
    [`${ROLE}[roels.x]\n`, ["roels is unknown; did you mean roles?"]],
    ['[roles."a b"]\nread = []\noperations = []\n', ["roles.a b is unknown"]],
    [
      `${ROLE}[enforcement]\nmode = "observe"\n`,
      [
        'enforcement.until is missing: "observe" is temporary and needs an end date, as in until = 2027-03-31',
      ],
    ],
    ...[
      '[enforcement]\nmode = "observe"\nuntil = 2027-02-30\n',
      'enforcement = { mode = "observe", until = 2027-02-30 }\n',
      'enforcement.mode = "observe"\nenforcement.until = 2027-02-30\n',
    ].map((text): [string, string[]] => [
      `${text}${ROLE}`,
      [
        "enforcement.until must be a day of the calendar, as in 2027-03-31; as written it would mean 2027-03-02",
      ],
    ]),
    [
      `${ROLE}[enforcement]\nmode = "observe"\nuntil = 2027-03-31T12:00:00Z\n`,
      ["enforcement.until must be a date without a time, as in 2027-03-31"],
    ],
    [
      `${ROLE}[enforcement]\nmode = "off"\n`,
      ['enforcement.mode is "off", but must be one of strict, observe'],
    ],
    [
      '[roles.m]\nread = []\noperations = ["metrics", "get"]\n',
      ['roles.m: "metrics" must be the only operation, since its tokens belong to no tenant'],
    ],
    [
      `${ROLE}[tenants.a.roles.m]\nread = []\noperations = ["metrics"]\n`,
      [
        'tenants.a.roles.m: move the role to [roles], since tokens with the operation "metrics" belong to no tenant',
      ],
    ],
  ])("%j", (text, faults) => {
    expect(readPolicyText(text)).toEqual({ ok: false, faults });
  });

  test("and what is not TOML says where", () => {
    expect(JSON.stringify(readPolicyText("[roles"))).toContain("it is not TOML");
  });
});

describe("a write without If-Match is let pass only in observe, before the end date, by a client and method not yet enforced", () => {
  const until = Date.UTC(2027, 2, 31);
  const { enforcement } = policyOf(
    `${ROLE}[enforcement]\nmode = "observe"\nuntil = 2027-03-31\nenforced_clients = ["billing"]\nenforced_methods = ["DELETE"]\n`,
  );
  for (const method of WRITE_METHODS) {
    for (const client of ["billing", "crm"]) {
      for (const nowMs of [until - 1, until]) {
        const enforced = client === "billing" || method === "DELETE" || nowMs >= until;
        test(`${method} by ${client} ${nowMs < until ? "before" : "from"} the end: ${enforced ? "428" : "passes"}`, () => {
          expect(isEnforced(enforcement, client, method, nowMs)).toBe(enforced);
          const strict: Enforcement = { mode: "strict" };
          expect(isEnforced(strict, client, method, nowMs)).toBe(true);
        });
      }
    }
  }
});

import { describe, expect, test } from "bun:test";
import {
  type Enforcement,
  isEnforced,
  type Policy,
  rightsOf,
  WRITE_METHODS,
} from "../domain/policy/policy.ts";
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
        'roles.r.operations.0 is "gte", but must be one of get, list, create, replace, patch, delete, history, metrics; did you mean "get"?',
      ],
    ],
    [`${ROLE}[audit]\nvalues = "yes"\n`, ["audit.values: expected boolean"]],
    [`${ROLE}[audit]\nvalue = true\n`, ["audit.values is missing", "audit.value is unknown"]],
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
    [
      `${ROLE}[limits.client]\nrequest = { per_second = 1, burst = 1 }\n`,
      ["limits.client.request is unknown; did you mean requests?"],
    ],
    [`${ROLE}[limits.client]\nwrites = { per_second = 1 }\n`, ["limits.client.writes.burst is missing"]],
    [`${ROLE}[limits.address]\nwrong_tokens = false\n`, ["limits.address.wrong_tokens: expected object"]],
    [
      `${ROLE}[limits.address]\n`,
      ["limits.address needs wrong_tokens, or unlimited = true, which switches the limit off"],
    ],
    [
      `${ROLE}[limits.address]\nunlimited = true\nwrong_tokens = { per_second = 1, burst = 1 }\n`,
      ["limits.address: wrong_tokens and unlimited contradict each other; keep one of them"],
    ],
    [
      `${ROLE}[limits.clients.crm]\nrequests = { per_second = 5, burst = 9 }\nwrites = { per_second = 5, burst = 10 }\n`,
      [
        "limits.clients.crm.writes.burst is 10, more than the 9 of limits.clients.crm.requests; each write is a request too, so lower the one or raise the other",
      ],
    ],
    [
      `${ROLE}[limits.address]\nwrong_token = { per_second = 1, burst = 1 }\n`,
      ["limits.address.wrong_token is unknown; did you mean wrong_tokens?"],
    ],
    [
      `${ROLE}[limits.tenants.acme]\nwrites = { per_second = 0, burst = 1.5 }\n`,
      [
        "limits.tenants.acme.writes.per_second: expected number to be greater or equal to 0.001",
        "limits.tenants.acme.writes.burst: expected integer",
      ],
    ],
    [
      `${ROLE}[limits.clients."a b"]\nwrites = { per_second = 1, burst = 1 }\n`,
      ["limits.clients.a b is unknown"],
    ],
  ])("%j", (text, faults) => {
    expect(readPolicyText(text)).toEqual({ ok: false, faults });
  });

  test.each([
    ["[roles", "it is not TOML: line 1, column 2: incomplete key-value: cannot find end of key"],
    ["# tokens\ncst_s3cret\n", "it is not TOML: line 2, column 11: illegal character in key"],
    ["KEY=s3cret\n", "it is not TOML: line 1, column 5: invalid value"],
    ['KEY="s3cret\n', "it is not TOML: line 1, column 12: control characters are not allowed in strings"],
    ['{"password": "s3cret"}', "it is not TOML: line 1, column 1: illegal character in key"],
    [
      "s3cret = 1\ns3cret = 2\n",
      "it is not TOML: line 2, column 1: trying to redefine an already defined table or value",
    ],
  ])(
    "and of what is not TOML only the place: it may be a file of secrets, and logs keep the fault: %j",
    (text, fault) => {
      expect(readPolicyText(text)).toEqual({ ok: false, faults: [fault] });
    },
  );
});

const ISSUER = `${ROLE}[issuers.login]
issuer = "https://login.example.com"
audience = "customers"
algorithms = ["RS256"]
client = { claim = "client_id" }
tenant = { value = "acme" }
role = { claim = "groups", values = { staff = "r" } }
`;

describe("an issuer", () => {
  test("is read as its table says", () => {
    expect(policyOf(ISSUER).issuers).toEqual([
      {
        name: "login",
        url: "https://login.example.com",
        audience: "customers",
        algorithms: ["RS256"],
        client: { kind: "claim", path: ["client_id"], names: null },
        tenant: { kind: "fixed", name: "acme" },
        role: { kind: "claim", path: ["groups"], names: new Map([["staff", "r"]]) },
      },
    ]);
  });

  test.each(["http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost", "https://a.example/realms/x"])(
    "may have the address %s",
    (url) => {
      expect(policyOf(ISSUER.replace("https://login.example.com", url)).issuers[0]?.url).toBe(url);
    },
  );

  const ADDRESS =
    "issuers.login.issuer must be an https address; http is accepted for 127.0.0.1, ::1 and localhost alone";
  const NEEDS = "needs one of value, which is the same for all tokens, and claim, which names a claim";
  test.each<[string, string, string]>([
    ['"https://login.example.com"', '"http://login.example.com"', ADDRESS],
    ['"https://login.example.com"', '"http://127.0.0.1.example"', ADDRESS],
    ['"https://login.example.com"', '"login.example.com"', ADDRESS],
    ['"https://login.example.com"', '"file:///etc"', ADDRESS],
    ["example.com", "example.com?x", "issuers.login.issuer must have no user, query or fragment"],
    ["//login", "//user:secret@login", "issuers.login.issuer must have no user, query or fragment"],
    ['["RS256"]', "[]", "issuers.login.algorithms: expected array length to be greater or equal to 1"],
    [
      '"RS256"',
      '"none"',
      'issuers.login.algorithms: "none" is never accepted, since anyone can make such a token',
    ],
    [
      '"RS256"',
      '"HS256"',
      'issuers.login.algorithms: "HS256" is never accepted, since its key would let this service sign tokens too; let the issuer sign with RS256 or ES256',
    ],
    [
      '"RS256"',
      '"RS265"',
      'issuers.login.algorithms: "RS265" is unknown; choose from RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519; did you mean "RS256"?',
    ],
    ['audience = "customers"\n', "", "issuers.login.audience is missing"],
    ['tenant = { value = "acme" }\n', "", "issuers.login.tenant is missing"],
    ['{ value = "acme" }', "{}", `issuers.login.tenant ${NEEDS}`],
    ['{ value = "acme" }', '{ value = "a", claim = "b" }', `issuers.login.tenant ${NEEDS}`],
    [
      '{ value = "acme" }',
      '{ value = "a", values = { b = "c" } }',
      "issuers.login.tenant.values belongs to a claim; remove it, or value",
    ],
    ['{ staff = "r" }', "{}", "issuers.login.role.values is empty, so no token would be accepted"],
    [
      '{ staff = "r" }',
      '{ staff = "r", 12 = "r" }',
      "issuers.login.role.values.12: a key must not consist of digits alone",
    ],
    [
      '{ staff = "r" }',
      '{ staff = "reader" }',
      'issuers.login.role.values.staff is "reader", which is no role of this file',
    ],
    ["client = {", "cleint = {", "issuers.login.cleint is unknown; did you mean client?"],
    [
      "role = {",
      '[issuers.other]\nissuer = "https://login.example.com"\naudience = "x"\nalgorithms = ["ES256"]\nclient = { value = "x" }\ntenant = { value = "x" }\nrole = { value = "r" }\n[issuers.login.role]\n#',
      "issuers.other.issuer is also that of issuers.login; one issuer has one table",
    ],
  ])("with %j as %j is refused", (before, after, fault) => {
    const result = readPolicyText(ISSUER.replace(before, after));
    expect(result.ok ? [] : result.faults).toContain(fault);
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

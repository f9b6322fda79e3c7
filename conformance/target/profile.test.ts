import { expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProfileFault, readProfile } from "./profile.ts";

const baseUrl = "https://staging.example/api/v2/";

function faultsOf(act: () => unknown): readonly string[] {
  try {
    act();
  } catch (error) {
    if (error instanceof ProfileFault) return error.faults;
    throw error;
  }
  return [];
}

test("every fault of flags, file and environment is reported at once", () => {
  const profileText = "nonsense = 1\n[patch]\nstatuses = [404]\n";
  const faults = faultsOf(() =>
    readProfile(
      {
        baseUrl: "ftp://x",
        profileText,
        header: ["no colon"],
        headerEnv: ["A: $NOT_SET", "B: literal"],
        limitedDenied: "phone",
        metricsUrl: ["x"],
      },
      {},
    ),
  );
  for (const part of [
    "base-url",
    "nonsense",
    "patch.statuses",
    "no colon",
    "NOT_SET",
    "has no $VARIABLE",
    "phone",
    "metrics-url",
  ])
    expect(faults.join("\n")).toContain(part);
});

test("a line that is no header is not repeated past its colon, since it may hold a secret", () => {
  const [fault] = faultsOf(() => readProfile({ baseUrl, header: ["Bad Name: sesame-open"] }, {}));
  expect(fault).not.toContain("sesame");
});

test("a header comes from a flag, the environment, or a file, and is shown as $NAME", () => {
  const file = join(mkdtempSync(join(tmpdir(), "kit-")), "token");
  writeFileSync(file, "from-a-file\n");
  const profile = readProfile(
    {
      baseUrl,
      header: ["X-Api-Key: spelled-out"],
      limitedHeaderEnv: ["Authorization: Bearer $LIMITED"],
      profileText: `[other-tenant.headers]\nAuthorization = { file = ${JSON.stringify(file)}, prefix = "Bearer " }\n`,
    },
    { LIMITED: "from-the-environment" },
  );
  expect(profile.main).toEqual([{ name: "X-Api-Key", value: "spelled-out", shown: "$X_API_KEY" }]);
  expect(profile.limited?.headers).toEqual([
    { name: "Authorization", value: "Bearer from-the-environment", shown: "Bearer $LIMITED" },
  ]);
  expect(profile.otherTenant).toEqual([
    { name: "Authorization", value: "Bearer from-a-file", shown: "$OTHER_TENANT_AUTHORIZATION" },
  ]);
  for (const value of ["spelled-out", "from-the-environment", "Bearer from-a-file"])
    expect(profile.secrets.map((secret) => secret.value)).toContain(value);
});

test("a flag wins over the file", () => {
  const profileText = 'base-url = "http://file.example"\n[customers]\nids = ["a"]\n[pace]\nrate = 3\n';
  expect(readProfile({ profileText }, {})).toMatchObject({
    baseUrl: "http://file.example",
    ids: ["a"],
    rate: 3,
  });
  expect(readProfile({ profileText, baseUrl, customerId: ["b"] }, {})).toMatchObject({
    baseUrl: "https://staging.example/api/v2",
    ids: ["b"],
  });
});

test.each([
  ["no base URL", {}],
  ["credentials in the URL", { baseUrl: "http://user:secret@x" }],
  ["a query in the base URL", { baseUrl: "http://x/?a=b" }],
  ["a denied field without a limited caller", { baseUrl, limitedDenied: "email" }],
  ["TOML that does not parse", { baseUrl, profileText: "[" }],
  ["a limited caller who is the main one", { baseUrl, header: ["A: same"], limitedHeader: ["a: same"] }],
  ["another tenant who is the main caller", { baseUrl, header: ["A: same"], otherTenantHeader: ["a: same"] }],
])("%s is refused", (_, flags) => {
  expect(faultsOf(() => readProfile(flags, {})).length).toBeGreaterThan(0);
});

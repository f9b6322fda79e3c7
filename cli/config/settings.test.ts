import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../outcome/failure.ts";
import { temporaryDirectory } from "../tests/support/client.ts";
import type { Flags } from "./flags.ts";
import { changeProfileFile, emptyProfileFile, profilePath, readProfileFile } from "./profile/profile-file.ts";
import type { Profile } from "./profile/profile-settings.ts";
import { readSettings } from "./settings.ts";
import type { Environment } from "./sources/setting-source.ts";
import { parseDurationMs } from "./values/duration.ts";

function settings(
  flags: Flags,
  env: Environment = {},
  profiles: Record<string, Profile> = {},
  current?: string,
) {
  const file = { ...emptyProfileFile("/config.toml"), profiles: new Map(Object.entries(profiles)), current };
  return readSettings({ flags, env, file, readStdin: async () => "from-stdin" });
}
const headersOf = async (...args: Parameters<typeof settings>) =>
  Object.fromEntries((await settings(...args)).headers.map(({ name, value }) => [name, value]));

describe("flag over environment over profile, each as a whole", () => {
  const profiles = {
    a: { url: "http://a", token: "token-a" },
    b: { url: "http://b", token: "token-b" },
    bare: { url: "http://bare" },
    nowhere: { token: "token-n" },
  };
  const env = { CUSTOMERS_URL: "http://env", CUSTOMERS_TOKEN: "token-env" };
  test.each<[string, Flags, Environment, string, string | undefined]>([
    ["the current profile", {}, {}, "http://a", "token-a"],
    ["CUSTOMERS_PROFILE", {}, { CUSTOMERS_PROFILE: "b" }, "http://b", "token-b"],
    ["--profile over CUSTOMERS_PROFILE", { profile: "a" }, { CUSTOMERS_PROFILE: "b" }, "http://a", "token-a"],
    ["--profile over CUSTOMERS_URL and CUSTOMERS_TOKEN", { profile: "b" }, env, "http://b", "token-b"],
    [
      "--profile without a token: a token of another URL stays",
      { profile: "bare" },
      env,
      "http://bare",
      undefined,
    ],
    [
      "--profile without a token: a token that belongs to no URL",
      { profile: "bare" },
      { CUSTOMERS_TOKEN: "token-env" },
      "http://bare",
      "token-env",
    ],
    ["--profile without a URL", { profile: "nowhere" }, env, "http://env", "token-n"],
    ["CUSTOMERS_URL and CUSTOMERS_TOKEN over the current profile", {}, env, "http://env", "token-env"],
    [
      "CUSTOMERS_URL alone: the profile's token stays",
      {},
      { CUSTOMERS_URL: "http://env" },
      "http://env",
      undefined,
    ],
    ["--url: the profile's token stays", { url: "http://flag" }, {}, "http://flag", undefined],
    ["--url: a token of another URL stays", { url: "http://flag" }, env, "http://flag", undefined],
    ["--url of the profile's own origin", { url: "http://a/path" }, {}, "http://a/path", "token-a"],
    ["--profile and --url that agree", { profile: "a", url: "http://a/" }, {}, "http://a", "token-a"],
    ["CUSTOMERS_TOKEN", {}, { CUSTOMERS_TOKEN: "env" }, "http://a", "env"],
    ["--token-stdin", { tokenStdin: true }, { CUSTOMERS_TOKEN: "env" }, "http://a", "from-stdin"],
    [
      "--token-stdin goes anywhere",
      { tokenStdin: true, url: "http://flag" },
      env,
      "http://flag",
      "from-stdin",
    ],
    [
      "an empty variable counts as none",
      {},
      { CUSTOMERS_URL: "", CUSTOMERS_TOKEN: "" },
      "http://a",
      "token-a",
    ],
  ])("%s", async (_, flags, given, url, token) => {
    expect((await settings(flags, given, profiles, "a")).url).toBe(url);
    expect(await headersOf(flags, given, profiles, "a")).toEqual(
      token === undefined ? {} : { Authorization: `Bearer ${token}` },
    );
  });

  test.each<[string, Flags, Environment, string[]]>([
    ["--profile and --url", { profile: "a", url: "http://x" }, {}, ["http://a", "http://x"]],
    [
      "CUSTOMERS_PROFILE and CUSTOMERS_URL",
      {},
      { CUSTOMERS_PROFILE: "b", CUSTOMERS_URL: "http://x" },
      ["http://b", "http://x"],
    ],
    [
      "two base paths of one server",
      { profile: "a", url: "http://a/production" },
      {},
      ["http://a", "http://a/production"],
    ],
  ])("%s that name different servers are refused, naming both", async (_, flags, given, urls) => {
    const refusal = await settings(flags, given, profiles, "a").catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(UsageError);
    for (const url of urls) expect((refusal as Error).message).toContain(url);
  });

  test("of a profile that belongs to another server nothing is used", async () => {
    const profile = {
      token: "t",
      url: "https://a",
      headers: { "X-Tenant": "a" },
      insecure: true,
      proxy: "http://p:1",
      casing: "pascal" as const,
    };
    const {
      headers,
      insecure,
      proxy,
      casing,
      warnings,
      profile: name,
    } = await settings({ url: "https://b" }, {}, { a: profile }, "a");
    expect({ headers, insecure, proxy, casing, name }).toEqual({
      headers: [],
      insecure: false,
      proxy: { kind: "direct" },
      casing: "lower",
      name: undefined,
    });
    expect(warnings.join()).toContain('profile "a" belongs to https://a');
  });

  test.each<[string, Flags, Environment, string | undefined]>([
    ["its own name", { profile: "p" }, {}, "p"],
    ["--url", { url: "https://PROD.example/" }, {}, "p"],
    ["--url with another path", { url: "https://prod.example:443/v2" }, {}, "p"],
    ["CUSTOMERS_URL", {}, { CUSTOMERS_URL: "https://prod.example" }, "p"],
    ["an unprotected profile of the same origin", { profile: "q" }, {}, "p"],
    ["another origin", { url: "http://prod.example" }, {}, undefined],
  ])("a protected origin asks before writes when it is reached by %s", async (_, flags, given, by) => {
    const guarded = {
      q: { url: "https://prod.example" },
      p: { url: "https://prod.example", protected: true },
    };
    expect((await settings(flags, given, guarded)).protectedBy).toBe(by);
  });

  test("headers of the command line replace those of the profile, and Authorization replaces the token", async () => {
    const profile = { p: { url: "http://a", token: "t", headers: { "X-Tenant": "one", Accept: "x/y" } } };
    const flags = { header: ["x-tenant: two"], headerEnv: ["Authorization: Key $K"] };
    expect(await headersOf(flags, { K: "k" }, profile, "p")).toEqual({
      "x-tenant": "two",
      Accept: "x/y",
      Authorization: "Key k",
    });
  });
});

describe("a wrong setting is told", () => {
  test.each<[string, Flags, Environment, string]>([
    ["an unknown profile", { profile: "c" }, {}, 'no profile "c"'],
    ["a port that is none", { url: "http://x:99999" }, {}, "port 99999"],
    ["an empty port", { url: "http://127.0.0.1:" }, {}, "no port after the colon"],
    ["an empty port before a path", {}, { CUSTOMERS_URL: "https://[::1]:/base" }, "no port after the colon"],
    ["a URL without scheme", { url: "example.com" }, {}, "http:// or https://"],
    ["a URL of another scheme", {}, { CUSTOMERS_URL: "ftp://x" }, "http:// or https://"],
    ["a URL with a query", { url: "http://x/?a=b" }, {}, "query"],
    ["a token with a line break", {}, { CUSTOMERS_TOKEN: "a\nb" }, "CUSTOMERS_TOKEN"],
    ["a token file that is not there", { tokenFile: "/dev/null/nothing" }, {}, "ENOTDIR"],
    ["a certificate file that is not there", { cacert: "/dev/null/nothing" }, {}, "--cacert"],
    ["a certificate file that holds none", { cacert: import.meta.path }, {}, "holds no certificate"],
    ["a header without a colon", { header: ["X"] }, {}, "Name: value"],
    ["a header with a line break", { header: ["X: a\r\nY: b"] }, {}, "--header"],
    ["a header that the client sets itself", { header: ["If-Match: *"] }, {}, "the client sets"],
    ["a variable with a line break", { headerEnv: ["X: $V"] }, { V: "a\nb" }, "--header-env 'X: …' has"],
    ["a variable that is not set", { headerEnv: ["X: $NOPE"] }, {}, "NOPE is not set"],
    ["no variable at all", { headerEnv: ["X: y"] }, {}, "names no variable"],
    ["a proxy that is no URL", { proxy: "some where" }, {}, "proxy"],
  ])("%s", async (_, flags, env, words) => {
    const wrong = settings(flags, env).catch((error: unknown) => error);
    expect(await wrong).toBeInstanceOf(UsageError);
    expect(((await wrong) as Error).message).toContain(words);
  });
});

test.each([
  ["http://x/", "http://x"],
  ["https://x:8443/base/path//", "https://x:8443/base/path"],
  ["HTTP://X", "http://x"],
  ["https://x/customers", "https://x"],
  ["https://x/customers/", "https://x"],
  ["https://x/customers/customers", "https://x/customers"],
])("the base URL %s is used as %s", async (given, used) => {
  expect((await settings({ url: given })).url).toBe(used);
});

test.each([
  ["30", 30_000],
  ["0.5", 500],
  ["30s", 30_000],
  ["500ms", 500],
  ["2m", 120_000],
])("the time %s is %d ms", (text, ms) => {
  expect(parseDurationMs(text)).toBe(ms);
});
test.each(["", "0", "-1", "1h", "soon", "NaN", "1e3", "100000"])("%p is no time", (text) => {
  expect(() => parseDurationMs(text)).toThrow(UsageError);
});

describe("the profile file", () => {
  test("lies below an absolute XDG_CONFIG_HOME, else below HOME", () => {
    expect(profilePath({ XDG_CONFIG_HOME: "/x", HOME: "/h" })).toBe("/x/customers/config.toml");
    expect(profilePath({ XDG_CONFIG_HOME: "x", HOME: "/h" })).toBe("/h/.config/customers/config.toml");
    expect(profilePath({ HOME: "/h" })).toBe("/h/.config/customers/config.toml");
  });

  test("is written with mode 0600 and read back as it was", async () => {
    using directory = temporaryDirectory();
    const path = join(directory.path, "deep", "config.toml");
    const profiles = new Map<string, Profile>([
      [
        'odd "name"',
        {
          url: "http://a",
          token: "t",
          headers: { "X-Y": "z" },
          insecure: true,
          timeout: "500ms",
          protected: true,
          casing: "pascal",
        },
      ],
    ]);
    await changeProfileFile(path, () => ({ current: 'odd "name"', profiles }));
    expect((await Bun.file(path).stat()).mode & 0o777).toBe(0o600);
    expect(await readProfileFile(path)).toEqual({
      path,
      current: 'odd "name"',
      profiles,
      problems: new Map(),
      warnings: [],
    });
  });

  test.each([
    ["a wider mode is a warning", 'current = "a"', 0o644, /chmod 600/],
    ["what is not TOML names the place", "[profiles.a]\nurl = ", 0o600, /line 2/],
    ["an unknown setting is named", '[profiles.a]\nurll = "x"', 0o600, /unknown setting "urll"/],
    ["a setting of another kind is named", "[profiles.a]\nurl = 5", 0o600, /url must be a string/],
    ["a relative path is refused", '[profiles.a]\ncacert = "ca.pem"', 0o600, /"ca.pem" is a relative path/],
    [
      "a header that is no string is named",
      "[profiles.a.headers]\nX = 5",
      0o600,
      /headers must be a table of strings/,
    ],
  ])("%s", async (_, text, mode, words) => {
    using directory = temporaryDirectory();
    const path = join(directory.path, "config.toml");
    writeFileSync(path, text, { mode });
    const said = await readProfileFile(path).then(
      ({ warnings }) => warnings.join("\n"),
      (error: Error) => error.message,
    );
    expect(said).toMatch(words);
  });
});

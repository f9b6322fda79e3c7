import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../outcome/failure.ts";
import { temporaryDirectory } from "../tests/support/client.ts";
import {
  changeProfileFile,
  emptyProfileFile,
  type Profile,
  profilePath,
  readProfileFile,
} from "./profile-file.ts";
import type { Environment } from "./setting-source.ts";
import { type Flags, parseDurationMs, readSettings } from "./settings.ts";

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

describe("flag over environment over profile", () => {
  const profiles = { a: { url: "http://a", token: "token-a" }, b: { url: "http://b", token: "token-b" } };
  test.each<[string, Flags, Environment, string, string]>([
    ["the current profile", {}, {}, "http://a", "Bearer token-a"],
    ["CUSTOMERS_PROFILE", {}, { CUSTOMERS_PROFILE: "b" }, "http://b", "Bearer token-b"],
    ["--profile", { profile: "a" }, { CUSTOMERS_PROFILE: "b" }, "http://a", "Bearer token-a"],
    ["CUSTOMERS_URL", {}, { CUSTOMERS_URL: "http://env" }, "http://env", "Bearer token-a"],
    ["--url", { url: "http://flag" }, { CUSTOMERS_URL: "http://env" }, "http://flag", "Bearer token-a"],
    ["CUSTOMERS_TOKEN", {}, { CUSTOMERS_TOKEN: "env" }, "http://a", "Bearer env"],
    ["--token-stdin", { tokenStdin: true }, { CUSTOMERS_TOKEN: "env" }, "http://a", "Bearer from-stdin"],
    [
      "an empty variable counts as none",
      {},
      { CUSTOMERS_URL: "", CUSTOMERS_TOKEN: "" },
      "http://a",
      "Bearer token-a",
    ],
  ])("%s", async (_, flags, env, url, authorization) => {
    expect((await settings(flags, env, profiles, "a")).url).toBe(url);
    expect(await headersOf(flags, env, profiles, "a")).toEqual({ Authorization: authorization });
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
    ["a URL without scheme", { url: "example.com" }, {}, "http:// or https://"],
    ["a URL of another scheme", {}, { CUSTOMERS_URL: "ftp://x" }, "http:// or https://"],
    ["a URL with a query", { url: "http://x/?a=b" }, {}, "query"],
    ["a token with a line break", {}, { CUSTOMERS_TOKEN: "a\nb" }, "CUSTOMERS_TOKEN"],
    ["two tokens", { tokenStdin: true, tokenFile: "x" }, {}, "together"],
    ["a token file that is not there", { tokenFile: "/dev/null/nothing" }, {}, "ENOTDIR"],
    ["a certificate file that is not there", { cacert: "/dev/null/nothing" }, {}, "--cacert"],
    ["a certificate file that holds none", { cacert: import.meta.path }, {}, "holds no certificate"],
    ["a header without a colon", { header: ["X"] }, {}, "Name: value"],
    ["a header with a line break", { header: ["X: a\r\nY: b"] }, {}, "--header"],
    ["a header that the client sets itself", { header: ["If-Match: *"] }, {}, "the client sets"],
    ["a variable with a line break", { headerEnv: ["X: $V"] }, { V: "a\nb" }, "--header-env 'X: …' has"],
    ["a variable that is not set", { headerEnv: ["X: $NOPE"] }, {}, "NOPE is not set"],
    ["no variable at all", { headerEnv: ["X: y"] }, {}, "names no variable"],
    ["a proxy that is no URL", { proxy: "somewhere" }, {}, "proxy"],
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
])("the base URL %s is used as %s", async (given, used) => {
  expect((await settings({ url: given })).url).toBe(used);
});

test("a profile's token that goes to another server is warned of", async () => {
  const profiles = { a: { url: "https://a", token: "t" } };
  expect((await settings({ url: "https://b" }, {}, profiles, "a")).warnings.join()).toContain(
    "keeps its token for https://a, and it is now sent to https://b",
  );
  const keys = { a: { url: "https://a", headers: { "X-Api-Key": "k", "X-Tenant": "t" } } };
  expect((await settings({ url: "https://b" }, {}, keys, "a")).warnings.join()).toContain(
    "keeps its X-Api-Key for",
  );
  expect((await settings({ url: "https://a/x" }, {}, profiles, "a")).warnings).toEqual([]);
});

test.each<[Environment, object]>([
  [
    { http_proxy: "http://a", HTTPS_PROXY: "http://b", no_proxy: "c" },
    { http: "http://a", https: "http://b", no: "c" },
  ],
  [
    { HTTP_PROXY: "http://A", http_proxy: "http://a", NO_PROXY: "C" },
    { http: "http://a", https: "", no: "C" },
  ],
  [{ HTTP_PROXY: "http://A" }, { http: "http://A" }],
  // In a CGI script it is what the request's Proxy header says.
  [{ HTTP_PROXY: "http://A", REQUEST_METHOD: "GET" }, { http: "" }],
])("the environment's proxies: %j", async (env, proxies) => {
  expect((await settings({ url: "http://x" }, env)).proxy).toMatchObject(proxies);
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
      warning: undefined,
    });
  });

  test.each([
    ["a wider mode is a warning", 'current = "a"', 0o644, /chmod 600/],
    ["what is not TOML names the place", "[profiles.a]\nurl = ", 0o600, /line 2/],
    ["an unknown setting is named", '[profiles.a]\nurll = "x"', 0o600, /unknown setting "urll"/],
    ["a setting of another kind is named", "[profiles.a]\nurl = 5", 0o600, /url must be a string/],
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
      ({ warning }) => warning ?? "",
      (error: Error) => error.message,
    );
    expect(said).toMatch(words);
  });
});

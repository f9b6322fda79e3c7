import { describe, expect, test } from "bun:test";
import { UsageError } from "../../outcome/failure.ts";
import type { Environment } from "../sources/setting-source.ts";
import { isExempt } from "./no-proxy.ts";
import { chosenProxy, maskedProxyUrl, parseProxyUrl, proxySecrets } from "./proxy.ts";

describe("the environment's proxy, as curl reads it", () => {
  test.each<[string, Environment, string | undefined]>([
    ["http://x", { http_proxy: "http://a:1", HTTPS_PROXY: "http://b:1" }, "http://a:1/"],
    ["https://x", { http_proxy: "http://a:1", HTTPS_PROXY: "http://b:1" }, "http://b:1/"],
    ["http://x", { HTTP_PROXY: "http://A:1", http_proxy: "http://a:1" }, "http://a:1/"],
    ["http://x", { HTTP_PROXY: "http://a:1" }, "http://a:1/"],
    // In a CGI script it is what the request's Proxy header says.
    ["http://x", { HTTP_PROXY: "http://a:1", REQUEST_METHOD: "GET" }, undefined],
    ["https://x", { all_proxy: "http://c:1" }, "http://c:1/"],
    ["https://x", { ALL_PROXY: "http://c:1", https_proxy: "http://b:1" }, "http://b:1/"],
    ["http://x", { http_proxy: "127.0.0.1:3128" }, "http://127.0.0.1:3128/"],
    ["http://x", { http_proxy: "me:pw@host:3128" }, "http://me:pw@host:3128/"],
    ["http://x", { http_proxy: "" }, undefined],
    ["http://x", { http_proxy: "http://a:1", no_proxy: "x" }, undefined],
    ["http://localhost:1", { http_proxy: "http://a:1" }, undefined],
    ["http://127.0.0.1:1", { http_proxy: "http://a:1" }, undefined],
    // A proxy that is not used is no reason to refuse the command.
    ["http://x", { https_proxy: "socks5://a:1" }, undefined],
  ])("%s with %j", async (origin, env, url) => {
    const chosen = await chosenProxy(undefined, origin, env);
    expect(chosen.kind === "proxy" ? chosen.url : undefined).toBe(url);
  });

  test("--proxy is used for this machine too, and an empty one switches the environment's off", async () => {
    const env = { http_proxy: "http://a:1" };
    const proxy = (text: string, origin: string) => chosenProxy({ text, source: "--proxy" }, origin, env);
    expect(await proxy("http://b:1", "http://127.0.0.1:9")).toMatchObject({ url: "http://b:1/" });
    expect(await proxy("", "http://x")).toEqual({ kind: "direct" });
  });

  test.each([
    ["http://p", "http://p:1080/"],
    ["http://p:80", "http://p/"],
    ["p", "http://p:1080/"],
    ["[::1]:3128", "http://[::1]:3128/"],
  ])("%s is %s", (text, url) => {
    expect(parseProxyUrl(text, "--proxy")).toBe(url);
  });

  test.each([
    ["socks5://127.0.0.1:1080", "https_proxy: socks5:// proxies are not supported"],
    ["socks4a://127.0.0.1:1080", "https_proxy: socks4a:// proxies are not supported"],
    ["https://127.0.0.1:3128", "https_proxy: https:// proxies are not supported"],
    ["http://", "https_proxy: the proxy is not a URL"],
    ["http://a b", "https_proxy: the proxy is not a URL"],
  ])("%s is refused by name", async (text, words) => {
    const refused = () => chosenProxy(undefined, "https://x", { https_proxy: text });
    await expect(refused()).rejects.toThrow(UsageError);
    await expect(refused()).rejects.toThrow(words);
  });
});

describe("no_proxy knows the forms of curl and Go", () => {
  test.each<[string, string, boolean]>([
    ["*", "https://any.example", true],
    ["example.com", "https://example.com", true],
    ["example.com", "https://api.example.com", true],
    [".example.com", "https://api.example.com", true],
    [".example.com", "https://example.com", true],
    ["*.example.com", "https://api.example.com", true],
    ["example.com", "https://notexample.com", false],
    ["EXAMPLE.com.", "https://api.Example.com", true],
    ["example.com", "https://example.com.", true],
    ["a.example, b.example", "https://b.example", true],
    ["a.example b.example", "https://b.example", true],
    ["example.com:8443", "https://example.com:8443", true],
    ["example.com:8443", "https://example.com", false],
    ["example.com:443", "https://example.com", true],
    ["10.0.0.0/8", "http://10.1.2.3", true],
    ["10.0.0.0/8", "http://11.1.2.3", false],
    ["10.1.2.3", "http://10.1.2.3:8080", true],
    ["10.1.2.3:80", "http://10.1.2.3:8080", false],
    ["fd00::/8", "http://[fd12::1]", true],
    ["fd00::/8", "http://[fe80::1]", false],
    ["[::2]", "http://[::2]:8080", true],
    ["::2", "http://[::2]", true],
    ["[::2]:8080", "http://[::2]:8080", true],
    ["2", "http://10.0.0.2", false],
    ["10.0.0.0/99", "http://10.0.0.1", false],
    ["", "http://x", false],
    [" , ", "http://x", false],
  ])("%s for %s: %p", (list, url, exempt) => {
    expect(isExempt(new URL(url).origin, list)).toBe(exempt);
  });
});

test.each([
  ["http://me:secret@host:1", "http://me:***@host:1", ["secret", "bWU6c2VjcmV0"]],
  ["me:se%40cret@host:1", "me:***@host:1", ["se%40cret", "se@cret", "bWU6c2VAY3JldA=="]],
  ["http://me:s%e@host:1", "http://me:***@host:1", ["s%e", "bWU6cyVl"]],
  ["http://host:1", "http://host:1", []],
])("the password of %s is masked", (text, shown, secrets) => {
  expect(maskedProxyUrl(text)).toBe(shown);
  expect(proxySecrets(text).sort()).toEqual(secrets.sort());
});

import { expect, test } from "bun:test";
import { proxyFor, proxySetting } from "./proxy.ts";

const PROXY = "http://proxy.example:3128";

test.each([
  [{}, "http://a.example/", undefined],
  [{ http_proxy: PROXY }, "http://a.example/", PROXY],
  [{ HTTP_PROXY: PROXY }, "http://a.example/", PROXY],
  [{ http_proxy: "proxy.example:3128" }, "http://a.example/", PROXY],
  [{ http_proxy: PROXY }, "https://a.example/", undefined],
  [{ https_proxy: PROXY }, "https://a.example/", PROXY],
  [{ HTTP_PROXY: PROXY, REQUEST_METHOD: "GET" }, "http://a.example/", undefined],
  [{ http_proxy: PROXY, no_proxy: "a.example" }, "http://a.example/", undefined],
  [{ http_proxy: PROXY, no_proxy: "example" }, "http://a.example/", undefined],
  [{ http_proxy: PROXY, no_proxy: ".example" }, "http://a.example/", undefined],
  [{ http_proxy: PROXY, no_proxy: "*.a.example" }, "http://a.example/", PROXY],
  [{ http_proxy: PROXY, no_proxy: "ample" }, "http://a.example/", PROXY],
  [{ http_proxy: PROXY, no_proxy: "b.example, A.EXAMPLE:8080" }, "http://a.example:8080/", undefined],
  [{ http_proxy: PROXY, no_proxy: "a.example:8080" }, "http://a.example/", PROXY],
  [{ http_proxy: PROXY, no_proxy: "*" }, "http://a.example/", undefined],
  [{ http_proxy: PROXY, no_proxy: "::1" }, "http://[::1]:80/", undefined],
  [{ http_proxy: PROXY, no_proxy: "[::1]:8080" }, "http://[::1]:8080/", undefined],
] as const)("with %j, %s goes through %s", (env, address, proxy) => {
  expect(proxyFor(proxySetting(undefined, env), new URL(address))?.origin).toBe(proxy);
});

test("a proxy that is named wins over the environment, no_proxy included", () => {
  const env = { http_proxy: "http://other.example", no_proxy: "*" };
  expect(proxyFor(proxySetting(PROXY, env), new URL("http://a.example/"))?.origin).toBe(PROXY);
});

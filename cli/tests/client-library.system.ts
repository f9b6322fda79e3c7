/** The library in a browser, on a page of another origin than the service. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "./support/client.ts";
import { EXPECTED } from "./support/library-scenario.ts";
import { startService } from "./support/service.ts";

test("in Chromium: the same as in Bun and Node, over CORS", async () => {
  using directory = temporaryDirectory();
  const build = new URL("../build-client.ts", import.meta.url).pathname;
  expect(Bun.spawnSync([process.execPath, build, directory.path]).exitCode).toBe(0);
  const { outputs } = await Bun.build({
    entrypoints: [new URL("support/library-scenario.ts", import.meta.url).pathname],
    format: "esm",
    target: "browser",
  });
  const script = { headers: { "content-type": "text/javascript" } };
  const html = { headers: { "content-type": "text/html" } };
  const reported = Promise.withResolvers<unknown>();
  let page = "";
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    routes: {
      "/": () => new Response(page, html),
      "/customers.js": () => new Response(Bun.file(join(directory.path, "customers.js")), script),
      "/scenario.js": () => new Response(outputs[0], script),
      "/result": async (request) => {
        reported.resolve(await request.json());
        return new Response();
      },
    },
  });
  const service = await startService(["editor"], { CORS_ORIGINS: server.url.origin });
  const access = JSON.stringify({ url: service.url, token: service.tokens["editor"] });
  page = `<!doctype html><script type="module">
    import { CustomersError, openCustomers } from "./customers.js";
    import { scenario } from "./scenario.js";
    const failureOf = (error) => (error instanceof CustomersError ? error.failure : undefined);
    const result = await scenario(openCustomers(${access}), failureOf).catch((error) => String(error));
    await fetch("/result", { method: "POST", body: JSON.stringify(result) });
  </script>`;
  const flags = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
  ];
  const browser = Bun.spawn(
    [
      "/usr/bin/chromium",
      ...flags,
      `--user-data-dir=${join(directory.path, "profile")}`,
      "--remote-debugging-port=0",
      server.url.href,
    ],
    { stdio: ["ignore", "ignore", "ignore"] },
  );
  try {
    const { unchanged: _, ...expected } = EXPECTED;
    expect(await reported.promise).toEqual(expected);
  } finally {
    browser.kill();
    await browser.exited;
    await service.stop();
  }
}, 120_000);

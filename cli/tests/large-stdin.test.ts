/** What standard input holds beyond 1 MiB is never left out of a request or a token. */
import { afterAll, expect, test } from "bun:test";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { TOKEN } from "./support/dialect.ts";
import { startDeployment, stopDeployments } from "./support/other-deployment.ts";

afterAll(stopDeployments);

const MIB = 1024 * 1024;

test.each([
  ["a body", ["api", "POST", "/customers", "--yes", "--input", "-"], "give the file: --input FILE"],
  ["a token", ["list", "--token-stdin"], "--token-file"],
  ["the token of login", ["login"], "--token-file"],
])("%s over 1 MiB on standard input is refused, and nothing is sent", async (_, args, hint) => {
  const { server } = await startDeployment();
  const env = { CUSTOMERS_URL: server.url, ...(args[0] === "api" ? { CUSTOMERS_TOKEN: TOKEN } : {}) };
  using home = temporaryDirectory();
  const stdin = "x".repeat(MIB + 1);
  const { exitCode, stderr } = await runClient(args, { env, home: home.path, stdin });
  expect({ exitCode, requests: server.requests }).toEqual({ exitCode: 2, requests: [] });
  expect(stderr).toContain("standard input is larger than 1 MiB; nothing was sent");
  expect(stderr).toContain(hint);
});

test("a body of 1 MiB on standard input is sent whole", async () => {
  let bytes = 0;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      bytes = (await request.bytes()).length;
      return new Response(null, { status: 400 });
    },
  });
  const env = { CUSTOMERS_URL: server.url.origin, CUSTOMERS_TOKEN: TOKEN };
  await runClient(["api", "POST", "/customers", "--yes", "--input", "-"], { env, stdin: "x".repeat(MIB) });
  await server.stop(true);
  expect(bytes).toBe(MIB);
});

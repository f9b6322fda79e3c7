/** Ctrl-C at every place where the client waits. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawnClient, temporaryDirectory } from "./support/client.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";
import { answerInstead, slow } from "./support/faults.ts";
import type { Fault } from "./support/faulty-proxy.ts";
import { startDeployment as deployment, stopDeployments } from "./support/other-deployment.ts";

let command: string[];
beforeAll(async () => {
  command = [await compiledClient()];
});
afterAll(stopDeployments);

describe("Ctrl-C while the client waits to send again", () => {
  const refusal = (status: number, retryAfter: number) =>
    answerInstead(status, { times: Number.POSITIVE_INFINITY, retryAfter });
  const writes =
    (fault: Fault): Fault =>
    (exchange) =>
      exchange.isWrite ? fault(exchange) : slow(0)(exchange);
  test.each<[string, string[], Fault, string]>([
    ["update, 503", ["update", "ID", "--name", "Eve"], writes(refusal(503, 20)), "is not known"],
    ["update, 429", ["update", "ID", "--name", "Eve"], writes(refusal(429, 20)), "no write was accepted"],
    ["delete, 503", ["delete", "ID", "--yes"], writes(refusal(503, 20)), "is not known"],
    [
      "create, 429",
      ["create", "--name", "Eve", "--email", "eve@example.com"],
      refusal(429, 20),
      "nothing was written",
    ],
    ["update, 202", ["update", "ID", "--name", "Eve"], writes(refusal(202, 20)), "is not known"],
    ["get, 503", ["get", "ID"], refusal(503, 20), "nothing was written"],
    ["list, 429", ["list"], refusal(429, 20), "nothing was written"],
  ])("%s: it says interrupted, and what became of the write", async (_, args, fault, words) => {
    const { proxy, customer, server } = await deployment(fault);
    const child = spawnClient(
      [...args.map((word) => (word === "ID" ? customer.id : word)), "-o", "json", "--verbose"],
      { command, env: { CUSTOMERS_URL: proxy?.url ?? "", CUSTOMERS_TOKEN: TOKEN } },
    );
    let stderr = "";
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
      const before = stderr;
      stderr += chunk;
      // Once it has the refusal, it has begun to wait.
      const refused = /< (?:202|429|503)\n/;
      if (!refused.test(before) && refused.test(stderr)) child.kill("SIGINT");
    }
    expect(await child.exited).toBe(130);
    const failure = JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "");
    const pending = words === "is not known";
    expect(failure).toMatchObject({ exitCode: 130, code: pending ? "unknown-outcome" : "interrupted" });
    if (pending) expect(failure.message).not.toContain("nothing was");
    expect(failure.message).toContain("interrupted");
    expect(failure.message).toContain(words);
    expect(server.writes).toHaveLength(0);
  });
});

describe.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s leaves no personal data behind", (signal) => {
  test("an export: the draft is removed, and the earlier file stays", async () => {
    using directory = temporaryDirectory();
    const file = join(directory.path, "out.csv");
    writeFileSync(file, "earlier\n");
    const { proxy } = await deployment(slow(60_000));
    const child = spawnClient(["export", file], {
      command,
      env: { CUSTOMERS_URL: proxy?.url ?? "", CUSTOMERS_TOKEN: TOKEN },
    });
    await appears(directory.path, (names) => names.length === 2);
    child.kill(signal);
    expect(await child.exited).toBe(130);
    expect(readdirSync(directory.path)).toEqual(["out.csv"]);
    expect(readFileSync(file, "utf8")).toBe("earlier\n");
  });
});

/**
 * Until the directory looks as wanted: each look is one turn of the event loop's timers, and the test's own
 * limit ends them.
 */
async function appears(directory: string, wanted: (names: string[]) => boolean): Promise<void> {
  while (!wanted(readdirSync(directory))) await Bun.sleep(5);
}

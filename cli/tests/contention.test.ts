/** Writers of every kind on one customer: the library in Node and in Bun, and the command line. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { openCustomers } from "customers/client";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { compiledClient } from "./support/executable.ts";
import { type Service, startService } from "./support/service.ts";

const OF_EACH_KIND = 8;
const directory = temporaryDirectory();
let command: string[];
let service: Service;
beforeAll(async () => {
  command = [await compiledClient()];
  service = await startService(["editor"]);
  const library = new URL("../client/customers.ts", import.meta.url).pathname;
  await Bun.build({ entrypoints: [library], outdir: directory.path, format: "esm" });
  await Bun.write(join(directory.path, "package.json"), '{"type":"module"}');
  await Bun.write(
    join(directory.path, "writer.js"),
    `import { openCustomers } from "./customers.js";
     const [url, token, id, name] = process.argv.slice(2);
     const written = await openCustomers({ url, token, timeoutMs: 240_000 }).update(id, { name }, { onConflict: "reapply" });
     console.log(JSON.stringify(written));`,
  );
});
afterAll(async () => {
  await service.stop();
  directory[Symbol.dispose]();
});

type Accepted = { over: string; made: string };

test("24 writers of mixed kinds: all succeed, and the accepted writes are one line of versions", async () => {
  const token = service.tokens["editor"] ?? "";
  const customers = openCustomers({ url: service.url, token, timeoutMs: 240_000 });
  const { id = "", tag = "" } = await customers.create({ name: "First", email: "first@example.com" });

  const inBun = async (name: string): Promise<Accepted> => {
    const written = await customers.update(id, { name }, { onConflict: "reapply" });
    if (written.kind !== "written") throw new Error(written.kind);
    return { over: written.replacedTag, made: written.after ?? "" };
  };
  const inNode = async (name: string): Promise<Accepted> => {
    const writer = join(directory.path, "writer.js");
    const child = Bun.spawn(["node", writer, service.url, token, id, name], { stdout: "pipe" });
    const { kind, replacedTag, after } = JSON.parse(await child.stdout.text());
    expect(kind).toBe("written");
    return { over: replacedTag, made: after };
  };
  const onCommandLine = async (name: string): Promise<Accepted> => {
    const env = { CUSTOMERS_URL: service.url, CUSTOMERS_TOKEN: token };
    const options = ["--on-conflict", "reapply", "--timeout", "240", "--verbose"];
    const { exitCode, stderr } = await runClient(["update", id, "--name", name, ...options], {
      command,
      env,
    });
    expect(exitCode).toBe(0);
    const sent = [...stderr.matchAll(/> if-match: (".*")/g)].at(-1)?.[1] ?? "";
    return { over: sent, made: /tag ".*" -> (".*?");/.exec(stderr)?.[1] ?? "" };
  };
  const kinds = [inBun, inNode, onCommandLine];
  const accepted = await Promise.all(
    kinds.flatMap((write, kind) =>
      Array.from({ length: OF_EACH_KIND }, (_, at) => write(`Writer ${kind}-${at}`)),
    ),
  );

  const nextOf = new Map(accepted.map(({ over, made }) => [over, made]));
  const line = [tag];
  for (let next = nextOf.get(tag); next !== undefined; next = nextOf.get(next)) line.push(next);
  expect(new Set(line).size).toBe(3 * OF_EACH_KIND + 1);
  expect((await customers.get(id)).etag).toBe(line.at(-1));
});

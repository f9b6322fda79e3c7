/** The library as other programs get it: packed, small, and the same in Bun and in Node. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { CustomersError, openCustomers } from "customers/client";
import { temporaryDirectory } from "./support/client.ts";
import { EXPECTED, scenario } from "./support/library-scenario.ts";
import { type Service, startService } from "./support/service.ts";

/** A project that has the package, as `npm install` leaves it. */
const project = temporaryDirectory();
const installed = join(project.path, "node_modules/customers");
let service: Service;
beforeAll(async () => {
  service = await startService(["editor"]);
  const root = new URL("../..", import.meta.url).pathname;
  const pack = [process.execPath, "pm", "pack", "--destination", project.path, "--quiet"];
  const packed = Bun.spawnSync(pack, { cwd: root, stderr: "inherit" });
  expect(packed.exitCode).toBe(0);
  mkdirSync(installed, { recursive: true });
  const [archive = ""] = [...new Bun.Glob("*.tgz").scanSync(project.path)];
  const unpack = ["tar", "--extract", "--strip-components=1", "--directory", installed];
  expect(Bun.spawnSync([...unpack, "--file", join(project.path, archive)]).exitCode).toBe(0);
});
afterAll(async () => {
  await service.stop();
  project[Symbol.dispose]();
});

/** Minified and compressed. */
const BYTES_MAX = 10_752;

test(`is at most ${BYTES_MAX} bytes`, async () => {
  const built = await Bun.file(join(installed, "dist/client/customers.js")).bytes();
  const { length } = Bun.gzipSync(built, { level: 9 });
  expect(length, `${length} bytes, minified and compressed`).toBeLessThanOrEqual(BYTES_MAX);
});

test("in Bun: reads, lists and writes under contention, and says why it failed", async () => {
  const customers = openCustomers({ url: service.url, token: service.tokens["editor"] ?? "" });
  const failureOf = (error: unknown) => (error instanceof CustomersError ? error.failure : undefined);
  expect(await scenario(customers, failureOf)).toEqual(EXPECTED);
});

test("in Node: the same, without any other package", async () => {
  const { outputs } = await Bun.build({
    entrypoints: [new URL("support/library-scenario.ts", import.meta.url).pathname],
    format: "esm",
  });
  await Bun.write(join(project.path, "scenario.mjs"), outputs[0] ?? "");
  const main = join(project.path, "main.mjs");
  await Bun.write(
    main,
    `import { CustomersError, openCustomers } from "customers/client";
     import { scenario } from "./scenario.mjs";
     const [url, token] = process.argv.slice(2);
     const failureOf = (error) => (error instanceof CustomersError ? error.failure : undefined);
     console.log(JSON.stringify(await scenario(openCustomers({ url, token }), failureOf)));`,
  );
  const child = Bun.spawn(["node", main, service.url, service.tokens["editor"] ?? ""], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { unchanged: _, ...expected } = EXPECTED;
  expect(JSON.parse(await child.stdout.text())).toEqual(expected);
});

test.each([
  ["node16", "node16"],
  ["esnext", "bundler"],
])(
  "a program in TypeScript with module %s finds the types, and a failure's kinds are a closed union",
  async (module, resolution) => {
    const program = join(project.path, "program.mts");
    await Bun.write(
      program,
      `import { CustomersError, openCustomers } from "customers/client";
     const customers = openCustomers({ url: "https://customers.example.com" });
     try {
       const { customer, attempts } = await customers.update("1", { name: "Eve" });
       const name: string | undefined = customer?.data.name;
       console.log(name, attempts satisfies number);
     } catch (error) {
       if (!(error instanceof CustomersError)) throw error;
       const { failure } = error;
       if (failure.kind === "conflict") console.log(failure.base.etag, failure.theirs.etag, failure.fields[0]?.mine);
       // @ts-expect-error no failure has this kind
       if (failure.kind === "conflicts") console.log(failure);
     }`,
    );
    const compiler = new URL("../../node_modules/typescript/bin/tsc", import.meta.url).pathname;
    const flags = ["--strict", "--noEmit", "--target", "esnext", "--lib", "esnext,dom", "--types", ""];
    const child = Bun.spawn(
      [
        ...[process.execPath, compiler, "--ignoreConfig", ...flags],
        ...["--module", module, "--moduleResolution", resolution, program],
      ],
      { stdout: "pipe", cwd: project.path },
    );
    expect(await child.stdout.text()).toBe("");
    expect(await child.exited).toBe(0);
  },
);

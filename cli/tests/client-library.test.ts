/** The library as other programs get it: packed, small, and the same in Bun and in Node. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { CustomersError, openCustomers } from "customers/client";
import { NOBODY_THERE, temporaryDirectory } from "./support/client.ts";
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
const BYTES_MAX = 13_312;

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

/** The library's README.md as one module: what it does with a `customer` is the last thing of each block. */
const readme = await Bun.file(new URL("../client/README.md", import.meta.url)).text();
const README_PROGRAM = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, block]) => block).join("\n");

/** What the compiler finds in a program of the project, under the strictest options that others use. */
async function compile(source: string, module: string, resolution: string): Promise<string> {
  const program = join(project.path, "program.mts");
  await Bun.write(program, source.replaceAll('"customers-client"', '"customers/client"'));
  const compiler = new URL("../../node_modules/typescript/bin/tsc", import.meta.url).pathname;
  const strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"];
  const flags = [...strict, "--noEmit", "--target", "esnext", "--lib", "esnext,dom", "--types", ""];
  const child = Bun.spawn(
    [
      ...[process.execPath, compiler, "--ignoreConfig", ...flags],
      ...["--module", module, "--moduleResolution", resolution, program],
    ],
    { stdout: "pipe", cwd: project.path },
  );
  return await child.stdout.text();
}

test("the examples of its README.md compile", async () => {
  const environment = "declare const process: { env: { readonly [name: string]: string | undefined } };";
  expect(await compile(`${README_PROGRAM}\n${environment}`, "node16", "node16")).toBe("");
});

test("an option that is undefined counts as not given, for the compiler and when it runs", async () => {
  const unset = ["token", "headers", "timeoutMs", "casing", "idempotencyKeysHonoured", "fetch", "transport"];
  const call = ["timeoutMs", "signal", "onConflict", "expect", "ifMatch", "attemptsMax"];
  const list = ["timeoutMs", "signal", "fields", "status", "email", "pageSize"];
  const undefinedIn = (names: readonly string[]) => names.map((name) => `${name}: undefined`).join(", ");
  const program = `import { openCustomers } from "customers-client";
    const customers = openCustomers({ url: "", ${undefinedIn(unset)} });
    customers.update("1", {}, { ${undefinedIn(call)} });
    customers.list({ ${undefinedIn(list)} });
    customers.history("1", { pageSize: undefined });
    customers.create({}, { idempotencyKey: undefined });`;
  expect(await compile(program, "node16", "node16")).toBe("");
  const token = service.tokens["editor"] ?? "";
  const customers = openCustomers({ url: service.url, token, ...withUndefined(unset.slice(1)) });
  const { id = "" } = await customers.create({ name: "Ada", email: "ada@example.com" }, withUndefined(call));
  expect((await customers.update(id, { name: "Eve" }, withUndefined(call))).kind).toBe("written");
  expect((await customers.list(withUndefined(list)).next()).done).toBe(false);
  await customers.delete(id);
});

function withUndefined(names: readonly string[]): Record<string, undefined> {
  return Object.fromEntries(names.map((name) => [name, undefined]));
}

test("the message of a failure says what the service or the network said", async () => {
  const customers = openCustomers({ url: service.url, token: service.tokens["editor"] ?? "" });
  const messageOf = (call: Promise<unknown>) => call.then(String, (error: Error) => error.message);
  expect(await messageOf(customers.create({ name: "Ada" }))).toBe(
    "creation: invalid (422): `email` is required.",
  );
  const program = join(project.path, "unreachable.mjs");
  await Bun.write(
    program,
    `import { openCustomers } from "customers/client";
     const customers = openCustomers({ url: "${NOBODY_THERE}", token: "x" });
     for (const call of [() => customers.get("1"), () => customers.create({ name: "Ada" })])
       await call().catch(({ message }) => console.log(message));`,
  );
  const child = Bun.spawn(["node", program], { stdio: ["ignore", "pipe", "inherit"] });
  const refused = `fetch failed: connect ECONNREFUSED ${new URL(NOBODY_THERE).host}`;
  expect(await child.stdout.text()).toBe(
    `customer 1: unreachable: ${refused}\ncreation: unreachable: ${refused}\n`,
  );
});

/** The calls of a program that no compiler has checked. */
type Untyped = Record<
  "get" | "getIfChanged" | "create" | "update",
  (...args: unknown[]) => Promise<unknown>
> &
  Record<"list" | "history", (...args: unknown[]) => AsyncGenerator>;

const circle: Record<string, unknown> = {};
circle["self"] = circle;
const HALF = "\ud800";

test.each<[keyof Untyped, unknown[], string]>([
  ["update", ["1", { name: "A" }, { attemptsMax: 0 }], "attemptsMax must be at least 1, not 0"],
  ["update", ["1", { name: "A" }, { attemptsMax: Number.NaN }], "attemptsMax must be at least 1, not NaN"],
  ["update", ["1", { name: "A" }, { timeoutMs: Number.NaN }], "timeoutMs must be at least 0, not NaN"],
  ["update", ["1", { name: "A" }, { timeoutMs: -1 }], "timeoutMs must be at least 0, not -1"],
  [
    "update",
    ["1", { name: "A" }, { onConflict: "marge" }],
    'onConflict must be merge, reapply or fail, not "marge"',
  ],
  ["create", [{ name: "A", email: undefined }], '"email" is undefined'],
  ["create", [{ a: Number.NaN }], '"a" is NaN, which JSON does not have'],
  ["update", ["1", { a: [{ b: Number.POSITIVE_INFINITY }] }], '"b" is Infinity, which JSON does not have'],
  ["update", ["1", { a: 1n }], '"a": BigInt is no JSON object'],
  ["update", ["1", { a: new Date(0) }], '"a": Date is no JSON object'],
  ["create", [new Date(0)], "the fields: Date is no JSON object"],
  ["create", [new Map([["name", "A"]])], "the fields: Map is no JSON object"],
  ["create", [null], "the fields: Null is no JSON object"],
  ["update", ["1", "ab"], "the fields: String is no JSON object"],
  ["list", [{ status: null }], "status must be well-formed text"],
  ["get", ["1", { fields: [null] }], "fields must be well-formed text"],
  ["update", ["1", { a: circle }], '"self" holds itself, or more than 500 levels'],
  ["get", [""], '"" is not a customer id'],
  ["get", [undefined], '"undefined" is not a customer id'],
  ["get", [HALF], "is not a customer id"],
  ["update", [HALF, { name: "A" }], "is not a customer id"],
  ["history", [HALF], "is not a customer id"],
  ["get", ["1", { fields: [HALF] }], "fields must be well-formed text"],
  ["getIfChanged", ["1", "\u2026"], "tag holds a character that a header can't carry"],
  [
    "create",
    [{ name: "A" }, { idempotencyKey: "a b" }],
    "idempotencyKey must be 1 to 255 visible ASCII characters",
  ],
  ["list", [{ status: HALF }], "status must be well-formed text"],
  ["list", [{ pageSize: 0 }], "pageSize must be a positive integer, not 0"],
  ["list", [{ pageSize: Number.NaN }], "pageSize must be a positive integer, not NaN"],
  ["history", ["1", { pageSize: 1.5 }], "pageSize must be a positive integer, not 1.5"],
])("%s refuses %p before anything is sent: kind usage", async (method, args, mistake) => {
  let sent = 0;
  const send = () => {
    sent += 1;
    return Promise.reject(new Error("sent"));
  };
  const transport = { url: "http://localhost", send };
  const customers = openCustomers({ url: "http://localhost", transport }) as unknown as Untyped;
  const calling = async () => {
    const call = customers[method](...args);
    return await (call instanceof Promise ? call : call.next());
  };
  const error: unknown = await calling().catch((thrown: unknown) => thrown);
  if (!(error instanceof CustomersError)) throw error;
  expect(error.failure.kind).toBe("usage");
  expect(error.message).toStartWith("nothing was sent: ");
  expect(error.message).toContain(mistake);
  expect(sent).toBe(0);
});

test.each([
  "If-Match",
  "if-none-match",
  "Content-Length",
  "Transfer-Encoding",
  "Host",
  "Idempotency-Key",
  "Accept-Encoding",
])("the header %s is refused when it is given, as on the command line: the library sets it", (name) => {
  const open = () => openCustomers({ url: "http://localhost:1", headers: { [name]: "5" } });
  expect(open).toThrow(new TypeError(`headers: ${name} may not be given: the client decides it`));
});

test("a header that the library sends with a request is sent once, as the library sets it", async () => {
  const seen: (string | null)[] = [];
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ headers }) {
      seen.push(headers.get("content-type"), headers.get("x-tenant"), headers.get("authorization"));
      return Response.json({ id: "1" }, { status: 201 });
    },
  });
  const headers = { "Content-Type": "text/plain", "X-Tenant": "acme" };
  await openCustomers({ url: server.url.origin, headers, token: "t" }).create({ name: "A" });
  expect(seen).toEqual(["application/json", "acme", "Bearer t"]);
  expect(() =>
    openCustomers({ url: "http://localhost", token: "t", headers: { Authorization: "x" } }),
  ).toThrow(new TypeError("headers: Authorization is given by token already"));
});

test.each([
  ["nope", "url: not an http:// or https:// URL"],
  ["", "url: not an http:// or https:// URL"],
  ["ftp://localhost", "url: not an http:// or https:// URL"],
  ["http://user:SECRET@localhost", "url: holds credentials"],
  ["http://localhost/?a=SECRET", "url: holds a query"],
  ["http://localhost:", "url: holds no port after the colon"],
  ["http://localhost:/base", "url: holds no port after the colon"],
])("the URL %p is refused when it is given, and not quoted", (url, message) => {
  expect(() => openCustomers({ url })).toThrow(TypeError);
  expect(() => openCustomers({ url })).toThrow(message);
  expect(() => openCustomers({ url })).not.toThrow("SECRET");
});

test.each([
  [{ token: "SECRET\nSECRET" }, "token: holds a character"],
  [{ token: "SECRET…" }, "token: holds a character"],
  [{ headers: { "x-api-key": "SECRET\r\nx: y" } }, "headers: a name or a value holds"],
  [{ headers: { "x api key": "SECRET" } }, "headers: a name or a value holds"],
])("a secret that can't be sent is refused when it is given, and not quoted: %j", (option, message) => {
  const open = () => openCustomers({ url: "http://localhost:1", ...option });
  expect(open).toThrow(TypeError);
  expect(open).toThrow(message);
  expect(open).not.toThrow("SECRET");
});

test("in Node: nothing was sent to a port that fetch refuses", async () => {
  const program = join(project.path, "port.mjs");
  await Bun.write(
    program,
    `import { openCustomers } from "customers/client";
     const customers = openCustomers({ url: "http://127.0.0.1:6667" });
     for (const call of [() => customers.get("1"), () => customers.create({ name: "Ada" })])
       await call().catch(({ failure }) => console.log(failure.kind, failure.reply.sent));`,
  );
  const child = Bun.spawn(["node", program], { stdio: ["ignore", "pipe", "inherit"] });
  expect(await child.stdout.text()).toBe("unreachable false\nunreachable false\n");
});

test("in Node: many calls that wait at once cause no warning, with a signal of the caller or without", async () => {
  const busy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(null, { status: 503, headers: { "retry-after": "0" } }),
  });
  const program = join(project.path, "waiting.mjs");
  await Bun.write(
    program,
    `import { openCustomers } from "customers/client";
     const customers = openCustomers({ url: "${busy.url.origin}", timeoutMs: 500 });
     for (const options of [{}, { signal: new AbortController().signal }])
       await Promise.allSettled(Array.from({ length: 12 }, (_, at) => customers.get(String(at), options)));`,
  );
  const child = Bun.spawn(["node", program], { stdio: ["ignore", "inherit", "pipe"] });
  expect(await child.stderr.text()).toBe("");
  await busy.stop(true);
});

test.each([
  ["node16", "node16"],
  ["esnext", "bundler"],
])(
  "a program in TypeScript with module %s finds the types, and a failure's kinds are a closed union",
  async (module, resolution) => {
    const program = `import { CustomersError, openCustomers } from "customers/client";
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
     }`;
    expect(await compile(program, module, resolution)).toBe("");
  },
);

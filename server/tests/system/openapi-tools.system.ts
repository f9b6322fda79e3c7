/** The OpenAPI document as tools read it that nobody here wrote: linters, generators and runners. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/service/server-process.ts";
import { TestService } from "../support/service/test-service.ts";

/** Installed here alone: the project's own users need none of them. */
const TOOLS = {
  "@redocly/cli": "2.77.0",
  "@stoplight/spectral-cli": "6.16.0",
  "@stoplight/spectral-owasp-ruleset": "2.0.1",
  "openapi-typescript": "7.13.0",
  "openapi-fetch": "0.17.0",
  "openapi-to-postmanv2": "6.3.3",
  newman: "6.2.2",
  typescript: "5.9.3",
  "@types/node": "24.10.1",
};

/** The rules of the OWASP set that say nothing about this service, each with the reason. */
const RULESET = `extends: ["spectral:oas", "@stoplight/spectral-owasp-ruleset"]
rules:
  # Replies tell limits in RateLimit, the draft's fields; the rules look for others.
  owasp:api4:2023-rate-limit: off
  owasp:api4:2023-rate-limit-responses-429: off
  # Names, sentences and header lines for people have a length and no pattern.
  owasp:api4:2023-string-restricted: off
  # Health, problems and this description are public on purpose.
  owasp:api2:2023-read-restricted: off
  owasp:api8:2023-define-error-responses-401: off
  # The service does not know what environment it runs in.
  owasp:api9:2023-inventory-environment: off
  owasp:api9:2023-inventory-access: off
`;

const SOURCES = new URL("./openapi/", import.meta.url).pathname;
const directory = temporaryDirectory();
let service: TestService;

beforeAll(async () => {
  service = await TestService.start({ publicUrl: "https://customers.example" });
  writeFileSync(
    join(directory.path, "package.json"),
    JSON.stringify({ type: "module", dependencies: TOOLS }),
  );
  const installed = await run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]);
  expect(installed.code === 0 ? "" : installed.said).toBe("");
  await fetchDocument(service, "openapi.json");
  for (const format of ["json", "yaml"]) await fetchDocument(service, `openapi.${format}`);
}, 600_000);
afterAll(async () => {
  await service.stop();
  directory.remove();
});

async function fetchDocument(from: TestService, name: string, as = name): Promise<void> {
  const { text } = await from.send("GET", `/${name}`, { caller: null });
  writeFileSync(join(directory.path, as), text);
}

async function run(command: readonly string[], variables: Record<string, string> = {}) {
  const child = Bun.spawn([...command], {
    cwd: directory.path,
    env: { ...process.env, CI: "true", REDOCLY_TELEMETRY: "off", ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, said: out + err };
}

const tool = (name: string, ...args: string[]) => [join(directory.path, "node_modules/.bin", name), ...args];

test.each(["openapi.json", "openapi.yaml"])("redocly lint is content with %s", async (file) => {
  const { code, said } = await run(tool("redocly", "lint", file));
  // It counts its warnings in a sentence of its own.
  expect(code === 0 && !/\d warning/.test(said) ? "" : said).toBe("");
});

test("spectral finds nothing by the rules for OpenAPI and by those of OWASP", async () => {
  writeFileSync(join(directory.path, "ruleset.yaml"), RULESET);
  const { code, said } = await run(
    tool("spectral", "lint", "openapi.json", "--ruleset", "ruleset.yaml", "--fail-severity", "warn"),
  );
  expect(code === 0 ? "" : said).toBe("");
});

test("a client with the types of openapi-typescript compiles in strict mode and gets 204, 412 and 428", async () => {
  const generated = await run(tool("openapi-typescript", "openapi.json", "-o", "openapi.d.ts"));
  expect(generated.code === 0 ? "" : generated.said).toBe("");
  copyFileSync(join(SOURCES, "generated-client.ts"), join(directory.path, "generated-client.ts"));
  const compiled = await run(
    tool(
      "tsc",
      ...[
        "--strict",
        "--exactOptionalPropertyTypes",
        "--noEmit",
        "--allowImportingTsExtensions",
        "--skipLibCheck",
      ],
      ...["--target", "esnext", "--module", "nodenext", "--types", "node", "generated-client.ts"],
    ),
  );
  expect(compiled.code === 0 ? "" : compiled.said).toBe("");
  const { id } = await service.customer();
  const { out } = await run([process.execPath, "generated-client.ts"], {
    BASE_URL: service.url,
    TOKEN: await service.token(),
    ID: id,
  });
  expect(JSON.parse(out)).toEqual([204, 412, "already-stored", 428, "precondition-required"]);
});

test("a Postman collection is made of it, and newman reads with it", async () => {
  const converted = await run(
    tool(
      "openapi2postmanv2",
      "-s",
      "openapi.json",
      "-o",
      "collection.json",
      "-O",
      "folderStrategy=Tags,parametersResolution=Example",
    ),
  );
  expect(converted.code === 0 ? "" : converted.said).toBe("");
  // The requests that need no customer of a test's own; each must be answered as the description says.
  const reads = [
    "A page of customers",
    "Whether the service takes requests",
    "All problem types",
    "What this is, with links",
  ];
  const collection = await Bun.file(join(directory.path, "collection.json")).json();
  const requests = requestsOf(collection.item).filter(({ name }) => reads.includes(name));
  expect(requests.map(({ name }) => name).sort()).toEqual([...reads].sort());
  for (const { request } of requests) {
    for (const parameter of request.url.query ?? []) parameter.disabled = parameter.key !== "limit";
  }
  writeFileSync(join(directory.path, "reads.json"), JSON.stringify({ ...collection, item: requests }));
  const { code, said } = await run(
    tool(
      "newman",
      ...["run", "reads.json", "--bail", "--env-var", `baseUrl=${service.url}`],
      ...["--env-var", `bearerToken=${await service.token()}`],
    ),
  );
  expect(code === 0 ? "" : said).toBe("");
  expect(said.match(/\[200 OK/g)).toHaveLength(reads.length);
});

type Item = {
  readonly name: string;
  readonly item?: readonly Item[];
  readonly request: { readonly url: { readonly query?: { key: string; disabled?: boolean }[] } };
};

function requestsOf(items: readonly Item[]): Item[] {
  return items.flatMap((item) => (item.item === undefined ? [item] : requestsOf(item.item)));
}

test("respect leads a customer from its creation to its deletion as the document describes it", async () => {
  // The document names the address of this very service.
  const local = await TestService.start({ publicUrl: "" });
  const folder = join(directory.path, "respect");
  mkdirSync(folder);
  await fetchDocument(local, "openapi.json", "respect/openapi.json");
  copyFileSync(join(SOURCES, "customers.arazzo.yaml"), join(folder, "customers.arazzo.yaml"));
  const { code, said } = await run(
    tool(
      "redocly",
      ...["respect", "respect/customers.arazzo.yaml", "--input", `TOKEN=${await local.token()}`],
      ...["--server", `customers=${local.url}`],
    ),
  );
  await local.stop();
  expect(code === 0 ? "" : said).toBe("");
});

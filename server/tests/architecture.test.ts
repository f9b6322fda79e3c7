import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { Glob } from "bun";

const ROOT = join(import.meta.dir, "..");

/**
 * Who may import whom: a folder, or a file of the root, and what its files
 * may import besides their own folder. One way, from the entry point to
 * the domain. Tests, benchmarks and their helpers may import everything.
 */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  "main.ts": ["commands", "commands/common"],
  "version.ts": [],
  commands: [
    "version.ts",
    "commands/common",
    "commands/token",
    "service.ts",
    "first-start.ts",
    "config",
    "issuers",
    "storage/database-url",
    "storage",
    "storage/write-counts",
    "storage/audit",
    "storage/customers",
    "storage/copy",
    "storage/sqlite/files",
    "storage/postgres",
    "storage/postgres/schema",
    "storage/postgres/connection",
    "domain/audit",
    "domain/rollout",
    "domain",
    "domain/text",
    "domain/network",
    "domain/policy",
    "domain/customer",
  ],
  "commands/common": [
    "config",
    "storage/database-url",
    "storage",
    "storage/sqlite/files",
    "storage/postgres/connection",
    "domain",
    "domain/text",
  ],
  "commands/token": [
    "commands/common",
    "storage/database-url",
    "storage/tokens",
    "domain",
    "domain/text",
    "domain/policy",
    "domain/customer",
  ],
  "service.ts": [
    "version.ts",
    "listener.ts",
    "app.ts",
    "config",
    "http/routes",
    "http",
    "issuers",
    "http/limits",
    "telemetry/log",
    "telemetry/metrics",
    "telemetry",
    "storage/database-url",
    "storage",
    "storage/write-counts",
    "storage/audit",
    "storage/customers",
    "domain/rollout",
    "domain/text",
  ],
  "first-start.ts": ["storage"],
  "listener.ts": ["config", "domain", "domain/network"],
  "app.ts": ["http/routes", "http", "http/reply", "operations", "domain", "domain/network", "domain/policy"],
  config: ["storage/database-url", "storage", "domain/text", "domain/network", "domain/policy"],
  "http/routes": [
    "version.ts",
    "http",
    "http/openapi",
    "http/reply",
    "http/body",
    "operations",
    "operations/request",
    "telemetry/metrics",
    "storage/audit",
    "storage/customers",
    "domain",
    "domain/policy",
  ],
  http: [
    "issuers",
    "http/reply",
    "http/body",
    "http/limits",
    "telemetry/log",
    "telemetry/metrics",
    "telemetry",
    "storage/tokens",
    "storage/customers",
    "domain",
    "domain/policy",
    "domain/customer",
  ],
  issuers: ["storage/tokens", "domain", "domain/policy"],
  "http/openapi": [
    "http",
    "http/reply",
    "operations",
    "domain/audit",
    "domain",
    "domain/policy",
    "domain/customer",
  ],
  "http/reply": ["operations", "domain", "domain/text"],
  "http/body": ["domain"],
  "http/limits": ["telemetry/metrics", "domain", "domain/network", "domain/policy"],
  operations: [
    "operations/request",
    "storage/audit",
    "storage/customers",
    "domain/audit",
    "domain",
    "domain/text",
    "domain/policy",
    "domain/customer",
  ],
  "operations/request": ["domain", "domain/text", "domain/customer"],
  "telemetry/log": ["telemetry", "domain/text", "domain/policy"],
  "telemetry/metrics": [
    "telemetry",
    "storage",
    "storage/write-counts",
    "storage/tokens",
    "storage/audit",
    "domain/rollout",
    "domain",
    "domain/text",
    "domain/policy",
  ],
  telemetry: ["storage/customers", "domain/rollout", "domain", "domain/policy"],
  "storage/database-url": [
    "storage",
    "storage/copy",
    "storage/sqlite",
    "storage/sqlite/files",
    "storage/postgres",
    "storage/postgres/connection",
  ],
  storage: [
    "storage/write-counts",
    "storage/tokens",
    "storage/audit",
    "storage/customers",
    "domain/audit",
    "domain",
    "domain/text",
    "domain/customer",
  ],
  "storage/write-counts": ["domain/rollout", "domain"],
  "storage/tokens": ["domain", "domain/text", "domain/network", "domain/policy"],
  "storage/audit": ["domain/audit", "domain", "domain/text", "domain/customer"],
  "storage/customers": ["domain/audit", "domain", "domain/customer"],
  "storage/copy": ["domain"],
  "storage/sqlite": [
    "storage",
    "storage/write-counts",
    "storage/tokens",
    "storage/audit",
    "storage/customers",
    "storage/copy",
    "storage/sqlite/commit",
    "storage/sqlite/read",
    "storage/sqlite/statements",
    "storage/sqlite/files",
    "domain/rollout",
    "domain",
    "domain/policy",
    "domain/customer",
  ],
  "storage/sqlite/commit": [
    "storage",
    "storage/customers",
    "storage/sqlite/statements",
    "storage/sqlite/files",
  ],
  "storage/sqlite/read": ["storage/customers", "storage/sqlite/statements", "storage/sqlite/files"],
  "storage/sqlite/statements": [
    "storage",
    "storage/write-counts",
    "storage/tokens",
    "storage/audit",
    "storage/customers",
    "domain/audit",
    "domain/rollout",
    "domain",
    "domain/customer",
  ],
  "storage/sqlite/files": ["storage", "storage/customers", "domain"],
  "storage/postgres": [
    "storage",
    "storage/write-counts",
    "storage/tokens",
    "storage/audit",
    "storage/customers",
    "storage/copy",
    "storage/postgres/writes",
    "storage/postgres/reads",
    "storage/postgres/schema",
    "storage/postgres/rows",
    "storage/postgres/connection",
    "domain/audit",
    "domain/rollout",
    "domain",
    "domain/policy",
    "domain/customer",
  ],
  "storage/postgres/writes": [
    "storage",
    "storage/customers",
    "storage/postgres/rows",
    "storage/postgres/connection",
    "domain/audit",
    "domain",
    "domain/customer",
  ],
  "storage/postgres/reads": ["storage/customers", "storage/postgres/rows", "storage/postgres/connection"],
  "storage/postgres/schema": ["storage/postgres/connection", "domain"],
  "storage/postgres/rows": ["storage/tokens", "storage/audit", "storage/customers", "domain/audit", "domain"],
  "storage/postgres/connection": ["storage", "storage/customers", "domain"],
  "domain/audit": ["domain", "domain/customer"],
  "domain/rollout": ["domain/text", "domain/policy"],
  domain: ["domain/text", "domain/policy", "domain/customer"],
  "domain/text": [],
  "domain/network": [],
  "domain/policy": ["domain/text", "domain/customer"],
  "domain/customer": [],
};

/**
 * Which packages a part, with the folders in it, may import; `node:`
 * and Bun's own globals are free, but not another engine's database.
 */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "bun:ffi": ["storage/sqlite/read"],
  "bun:sqlite": ["storage/sqlite"],
  commander: ["commands"],
  elysia: ["app.ts", "listener.ts"],
  "fastest-levenshtein": ["domain"],
  jose: ["issuers"],
  "@sinclair/typebox": ["domain", "operations", "http/openapi"],
  pino: ["telemetry"],
  "prom-client": ["telemetry"],
  "smol-toml": ["config"],
  "sonic-boom": ["telemetry"],
  "swagger-ui-dist": ["http/openapi"],
};

const ROOT_FILES_MAX = 8;

/** Every source file with what it imports, types included: paths from the root, or names of packages. */
const imports = new Map<string, readonly string[]>();
for (const file of [...new Glob("**/*.ts").scanSync(ROOT)].sort()) {
  if (/(^|\/)(node_modules|tests|bench)\/|\.test\.ts$|\.contract\.ts$/.test(file)) continue;
  const source = await Bun.file(join(ROOT, file)).text();
  const specifiers = [
    ...source.matchAll(
      /^(?:import|export)\b[^;]*?\bfrom "([^"]+)";|^import "([^"]+)";|\bimport\("([^"]+)"\)/gm,
    ),
  ].map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? "");
  imports.set(
    file,
    specifiers.map((specifier) =>
      specifier.startsWith(".") ? normalize(join(dirname(file), specifier)) : specifier,
    ),
  );
}

/** The name of a package, without the path of a file in it. */
function packageOf(specifier: string): string {
  return /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier;
}

/** The folder of a file; a file of the root stands for itself. */
function partOf(file: string): string {
  return file.includes("/") ? dirname(file) : file;
}

test("imports follow the arrows, from the entry point to the domain", () => {
  const faults = [...imports].flatMap(([file, targets]) => {
    const part = partOf(file);
    const allowed = ARROWS[part];
    if (allowed === undefined) return [`${file}: ${part} has no row in ARROWS; add one, or move the file`];
    return targets
      .filter((target) => imports.has(target))
      .filter((target) => partOf(target) !== part && !allowed.includes(partOf(target)))
      .map(
        (target) =>
          `${file} imports ${target}: ${part} may import ${allowed.join(", ") || "no other folder"}. Move what both need to the lower folder, or hand the value in as an argument`,
      );
  });
  expect(faults).toEqual([]);
});

test("a package is imported only where its work is done", () => {
  const faults = [...imports].flatMap(([file, targets]) =>
    targets
      .filter(
        (target) => !/^(node:|bun$)/.test(target) && !target.endsWith(".ts") && !target.endsWith(".json"),
      )
      .filter(
        (target) => !PACKAGES[packageOf(target)]?.some((part) => `${partOf(file)}/`.startsWith(`${part}/`)),
      )
      .map(
        (target) =>
          `${file} imports ${target}: use the file that wraps it, or add this part to its row in PACKAGES`,
      ),
  );
  expect(faults).toEqual([]);
});

test("imports make no circle, types included", () => {
  const faults: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start !== -1)
      faults.push(`${[...path.slice(start), file].join(" → ")}: move what they share to a third file`);
    if (start !== -1 || done.has(file)) return;
    for (const target of imports.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  expect(faults).toEqual([]);
});

test("folders make no circle either: what two need from each other belongs in a third", () => {
  const reached = (part: string, seen = new Set<string>()): Set<string> => {
    for (const next of ARROWS[part] ?? []) if (!seen.has(next)) reached(next, seen.add(next));
    return seen;
  };
  expect(Object.keys(ARROWS).filter((part) => reached(part).has(part))).toEqual([]);
});

test("the writer's thread loads no package: TypeBox alone took more than half of its start", () => {
  const transpiler = new Bun.Transpiler({ loader: "ts" });
  const loaded = new Map<string, string>();
  const load = (file: string, from: string): void => {
    if (loaded.has(file)) return;
    loaded.set(file, from);
    if (!file.endsWith(".ts")) return;
    // Unlike the map above without types, which are not loaded.
    for (const { path } of transpiler.scanImports(readFileSync(join(ROOT, file), "utf8"))) {
      load(path.startsWith(".") ? normalize(join(dirname(file), path)) : path, file);
    }
  };
  load("storage/sqlite/commit/writer-thread-worker.ts", "");
  const packages = [...loaded].filter(([file]) => !/\.ts$|^(bun|node):/.test(file));
  expect(packages.map(([name, from]) => `${from} imports ${name}`)).toEqual([]);
  expect(loaded.has("storage/sqlite/statements/customer-writes.ts")).toBe(true);
});

test("no two source files have the same name", () => {
  const names = Map.groupBy(
    [...imports.keys(), ...new Glob("{bench,tests}/**/*.ts").scanSync(ROOT)].filter(
      (file) => !file.includes("node_modules/"),
    ),
    (file) => file.slice(file.lastIndexOf("/") + 1),
  );
  const faults = [...names]
    .filter(([, files]) => files.length > 1)
    .map(([, files]) => `${files.join(" and ")}: rename one after its own noun`);
  expect(faults).toEqual([]);
});

test(`the root holds at most ${ROOT_FILES_MAX} files`, () => {
  const files = [...new Glob("*").scanSync(ROOT)];
  expect(
    files.length > ROOT_FILES_MAX ? `${files.join(", ")}: move one into the folder of its noun` : "",
  ).toBe("");
});

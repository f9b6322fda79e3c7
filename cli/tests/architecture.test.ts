/** Which folder may import which: one table. Everything else is refused, and says what to do. */
import { expect, test } from "bun:test";
import { basename, dirname, join, normalize } from "node:path";

const ROOT = new URL("..", import.meta.url).pathname;

/** Files of the root stand for themselves. Tests may import anything. */
const ALLOWED: Record<string, readonly string[]> = {
  "main.ts": ["program.ts", "signals.ts", "outcome", "output"],
  "program.ts": [
    "version.ts",
    ...["commands", "invocation.ts", "client", "config", "help", "http", "outcome", "output"],
    ...["signals.ts", "undo"],
  ],
  commands: [
    ...["invocation.ts", "client", "config", "doctor", "edit", "files", "help", "http", "import"],
    ...["outcome", "output", "undo"],
  ],
  import: ["invocation.ts", "client", "config", "files", "outcome", "output"],
  edit: ["invocation.ts", "client", "files", "outcome"],
  "invocation.ts": ["client", "config", "http", "outcome", "output", "signals.ts", "undo"],
  undo: ["client", "config", "files", "outcome", "output"],
  doctor: ["client", "config", "outcome"],
  docs: ["program.ts", "help"],
  help: ["config", "outcome"],
  http: ["version.ts", "client", "config", "outcome"],
  output: ["client", "config", "files", "outcome", "signals.ts"],
  config: ["client", "files", "outcome"],
  files: ["outcome"],
  outcome: ["client"],
  // The library: no other folder, no package, nothing of Node or Bun. In it: loop/ decides a write, wire/
  // speaks HTTP.
  client: [],
  "signals.ts": [],
  "version.ts": [],
  "build-client.ts": [],
};

type File = { path: string; imports: readonly string[] };

const files: readonly File[] = await Promise.all(
  [...new Bun.Glob("**/*.ts").scanSync({ cwd: ROOT })]
    .filter((path) => !path.startsWith("tests/") && !path.startsWith("bench/"))
    .filter((path) => !/\.(?:test|system)\.ts$/.test(path))
    .map(async (path) => {
      const text = await Bun.file(join(ROOT, path)).text();
      const found = text.matchAll(/^(?:import|export)\b[^;]*?from "([^"]+)"|\bimport\("([^"]+)"\)/gm);
      return { path, imports: [...found].map(([, named, lazy]) => named ?? lazy ?? "") };
    }),
);

test("folders import only what the table allows", () => {
  const refused = files.flatMap(({ path, imports }) =>
    imports.flatMap((specifier) => {
      const from = folderOf(path);
      const target = targetOf(path, specifier);
      if (target === undefined || target.startsWith("..")) return [];
      const to = folderOf(target);
      const allowed = from === to || (ALLOWED[from] ?? []).includes(to);
      const advice = `${path} imports ${target}: pass the value in, move the code down, or allow ${from} -> ${to} here`;
      return allowed ? [] : [advice];
    }),
  );
  expect(refused).toEqual([]);
});

test("the table has no circle", () => {
  const open: string[] = [];
  const visit = (folder: string): void => {
    expect(open).not.toContain(folder);
    open.push(folder);
    for (const next of ALLOWED[folder] ?? []) visit(next);
    open.pop();
  };
  for (const folder of Object.keys(ALLOWED)) visit(folder);
});

test("files import each other in no circle", () => {
  const imports = new Map(
    files.map((file) => [
      file.path,
      file.imports.map((specifier) => targetOf(file.path, specifier)).filter((path) => path !== undefined),
    ]),
  );
  const done = new Set<string>();
  const visit = (path: string, open: readonly string[]): void => {
    if (open.includes(path)) throw new Error(`a circle: ${[...open, path].join(" > ")}`);
    if (done.has(path)) return;
    for (const next of imports.get(path) ?? []) visit(next, [...open, path]);
    done.add(path);
  };
  for (const path of imports.keys()) visit(path, []);
});

test("the library imports nothing but itself", () => {
  const foreign = files
    .filter(({ path }) => path.startsWith("client/"))
    .flatMap(({ path, imports }) =>
      imports
        .filter((specifier) => targetOf(path, specifier)?.startsWith("client/") !== true)
        .map((specifier) => `${path}: ${specifier}`),
    );
  expect(foreign).toEqual([]);
});

test("every folder stands in the table, and no two files have the same name", () => {
  const folders = new Set(files.map(({ path }) => folderOf(path)));
  expect([...folders].filter((folder) => ALLOWED[folder] === undefined)).toEqual([]);
  const bench = [...new Bun.Glob("bench/*.ts").scanSync({ cwd: ROOT })];
  const names = [...files.map(({ path }) => path), ...bench].map((path) => basename(path));
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});

function folderOf(path: string): string {
  return path.split("/")[0] ?? path;
}

/** Undefined: a package. */
function targetOf(path: string, specifier: string): string | undefined {
  return specifier.startsWith(".") ? normalize(join(dirname(path), specifier)) : undefined;
}

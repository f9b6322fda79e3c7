/** Imports run one way, from the entry point to what knows nothing of the kit. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";

const ROOT = new URL("..", import.meta.url).pathname;

/** Folder (or single file) to what it may import beside itself. Tests, self/ and suite/ may import everything. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  "report/schema.ts": [],
  "version.ts": [],
  specification: [],
  target: ["report/schema.ts"],
  http: ["target", "report/schema.ts", "version.ts"],
  fixtures: ["http", "target", "report/schema.ts"],
  probe: ["fixtures", "http", "target", "specification", "report/schema.ts"],
  rules: ["probe", "fixtures", "http", "target", "specification"],
  report: ["rules", "probe", "fixtures", "http", "target", "specification", "report/schema.ts", "version.ts"],
  run: ["report", "rules", "probe", "fixtures", "http", "target", "report/schema.ts"],
  commands: [
    "run",
    "report",
    "rules",
    "probe",
    "fixtures",
    "http",
    "target",
    "report/schema.ts",
    "version.ts",
  ],
  "program.ts": ["commands", "report", "target", "version.ts"],
  "main.ts": ["program.ts"],
};
const FREE = /^(?:self|suite|tests)\/|\.test\.ts$|\.system\.ts$/;

const files = [...new Bun.Glob("**/*.ts").scanSync({ cwd: ROOT })];

function importsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+\.ts)"/g)].map(([, path = ""]) =>
    normalize(join(dirname(file), path)),
  );
}

const placeOf = (file: string): string =>
  file in ARROWS ? file : file.includes("/") ? (file.split("/")[0] ?? file) : file;

test("each folder imports only what the table allows; put a thing where both sides may import it, or pass it in", () => {
  const wrong = files
    .filter((file) => !FREE.test(file))
    .flatMap((file) =>
      importsOf(file)
        .filter((path) => placeOf(path) !== placeOf(file))
        .filter((path) => !ARROWS[placeOf(file)]?.includes(placeOf(path)))
        .map((path) => `${file} imports ${path}`),
    );
  expect(wrong).toEqual([]);
});

test("no file imports itself, however long the way", () => {
  const done = new Set<string>();
  const circles: string[] = [];
  const walk = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(" → "));
    if (done.has(file) || way.includes(file)) return;
    for (const next of importsOf(file)) walk(next, [...way, file]);
    done.add(file);
  };
  for (const file of files) walk(file, []);
  expect(circles).toEqual([]);
});

test("no two files have one name", () => {
  const names = files.map((file) => basename(file));
  expect(files.filter((file) => names.filter((name) => name === basename(file)).length > 1)).toEqual([]);
});

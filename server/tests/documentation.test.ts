import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { Glob } from "bun";
import packageJson from "../../package.json";
import { createProgram } from "../commands/program.ts";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import { flagOf, SETTING_NAMES, SETTINGS, variableOf } from "../config/settings.ts";
import { PROBLEMS } from "../domain/problem.ts";
import { Metrics } from "../telemetry/metrics/metrics.ts";

const SERVER = join(import.meta.dir, "..");
const read = (file: string): Promise<string> => Bun.file(join(SERVER, file)).text();
const readme = await read("README.md");
const [settings, http, policy, metricsGuide] = await Promise.all(
  ["settings", "http", "policy", "metrics"].map((name) => read(`docs/${name}.md`)),
);

/** A failure that printed the whole document would hide the row. */
const missing = (document = "", ...rows: string[]) => rows.filter((row) => !document.includes(row));

describe("the reference in server/docs is complete", () => {
  test("each problem code has its row: code, status, meaning", () => {
    const rows = Object.entries(PROBLEMS).map(
      ([code, { status, meaning }]) => `| \`${code}\` | ${status} | ${meaning} |`,
    );
    expect(missing(http, ...rows)).toEqual([]);
  });

  test("the diagram of the checks refuses with the statuses of the table, in its order", () => {
    const [, section = ""] = http?.split("\n## The order of checks\n") ?? [];
    const [diagram = "", table = ""] = section.split("```mermaid\n")[1]?.split("```\n") ?? [];
    const drawn = [...diagram.matchAll(/-- no --> \w+\[([\d, ]+)\]|apply: ([\d, ]+)/g)];
    const rows = table.split("\n## ")[0]?.match(/^\|.*\|$/gm) ?? [];
    const refusals = rows.map(
      (row) =>
        row
          .split(" | ")
          .at(-1)
          ?.match(/\b\d{3}\b/g) ?? [],
    );
    expect(drawn.flatMap(([, refused = "", applied = ""]) => (refused || applied).split(", "))).toEqual(
      refusals.flat(),
    );
  });

  test("each setting has its row: variable, flag, default, meaning", () => {
    for (const name of SETTING_NAMES) {
      const { fallback, meaning } = SETTINGS[name];
      const shown = fallback === "" ? "" : `\`${fallback}\` `;
      expect(
        missing(settings, `| \`${variableOf(name)}\` | \`${flagOf(name)}\` | ${shown}| ${meaning} |`),
      ).toEqual([]);
    }
  });

  test("each metric has its row: name, labels, meaning", async () => {
    const metrics = new Metrics({
      hasCallerLabels: true,
      version: "1.2.3",
      storageStats: () => ({
        writesWaiting: 0,
        databaseBytes: 0,
        logBytes: 0,
        freeBytes: 0,
        connections: [],
      }),
      tokensToRenew: { expiring: () => [], stillUsed: () => [] },
      issuerKeys: () => [],
      auditRetention: () => null,
      certificateExpiry: () => Number.NaN,
      rollout: { counts: async function* () {}, enforcement: () => ({ mode: "strict" }), now: Date.now },
      onWrite: () => {},
    });
    const families = [...(await metrics.text()).matchAll(/^# HELP (\S+) (.*)$/gm)];
    expect(families.length).toBeGreaterThan(0);
    for (const [, name = "", help = ""] of families) {
      const row = metricsGuide?.split("\n").find((line) => line.startsWith(`| \`${name}\` |`));
      expect([name, row?.endsWith(`| ${help} |`)]).toEqual([name, true]);
    }
  });

  test("each alert has its row: name, severity", async () => {
    const rules = await Bun.file(
      new URL("../telemetry/prometheus/customers.rules.yml", import.meta.url),
    ).text();
    const alerts = [...rules.matchAll(/- alert: (\w+)[\s\S]*?severity: (\w+)/g)];
    expect(alerts.length).toBeGreaterThan(0);
    expect(
      missing(metricsGuide, ...alerts.map(([, name, severity]) => `| \`${name}\` | ${severity} |`)),
    ).toEqual([]);
  });

  test("each dependency of the project has its reason", async () => {
    const names = Object.keys({ ...packageJson.dependencies, ...packageJson.devDependencies });
    const table = (await read("../README.md")).split("## Dependencies")[1];
    const named = [...(table ?? "").matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, cell = ""]) =>
      cell.split(", "),
    );
    expect(names.filter((name) => !named.includes(name))).toEqual([]);
  });

  test("the built-in policy stands there as it is", () => {
    expect(missing(policy, `\`\`\`toml\n${BUILT_IN_POLICY}\`\`\``)).toEqual([]);
  });

  test("each command and option is named", () => {
    const program = createProgram();
    const commands = program.commands.flatMap((command) =>
      command.commands.length === 0 ? [command] : [...command.commands],
    );
    expect(commands.length).toBe(20);
    for (const command of commands) {
      const parent = command.parent === program ? "" : `${command.parent?.name()} `;
      expect(missing(settings, `\`${parent}${command.name()}`)).toEqual([]);
      const options = command.options.map(({ long }) => long ?? "");
      expect(missing(settings, ...options)).toEqual([]);
    }
  });
});

test("each figure in a table of docs/sizing.md, and each date there, is one of PERFORMANCE.md", async () => {
  const [sizing, performance] = await Promise.all([read("docs/sizing.md"), read("PERFORMANCE.md")]);
  const figuresOf = (text: string): string[] => text.match(/\d[\d.,]*\d|\d/g) ?? [];
  const cells = (sizing.match(/^\|.*\|$/gm) ?? []).flatMap(figuresOf);
  const dates = sizing.match(/\d{4}-\d\d-\d\d/g) ?? [];
  expect(cells.length).toBeGreaterThan(10);
  expect(dates.length).toBeGreaterThan(0);
  const measured = new Set(figuresOf(performance));
  expect(cells.filter((figure) => !measured.has(figure))).toEqual([]);
  expect(missing(performance, ...dates)).toEqual([]);
});

describe("One GET, one PUT", () => {
  const page = readme.slice(readme.indexOf("## One GET, one PUT"), readme.indexOf("## Guides"));
  const stations = [...page.matchAll(/\]\(([^)]+\.ts)\)/g)].map(([, file = ""]) => file);

  test("names stations that each are imported by one above it, or implement its interface", async () => {
    expect(stations.length).toBeGreaterThan(15);
    const [first = "", ...others] = [...new Set(stations)];
    const above = new Set([first]);
    for (const station of others) {
      const importers = await Promise.all(
        [...above].map(async (file) => (await imports(file, station)) || (await imports(station, file))),
      );
      expect([station, importers.includes(true)]).toEqual([station, true]);
      above.add(station);
    }
  });

  test("names every file of the SQLite engine through which reads or writes pass", () => {
    const folders = ["storage/sqlite/*-store.ts", "storage/sqlite/{commit,read}/*.ts"];
    const passed = folders.flatMap((pattern) => [...new Glob(pattern).scanSync(SERVER)]);
    const files = passed.filter((file) => !file.endsWith(".test.ts"));
    expect(files.length).toBeGreaterThan(6);
    expect(files.filter((file) => !stations.includes(file))).toEqual([]);
  });

  async function imports(file: string, target: string): Promise<boolean> {
    const source = await read(file);
    const specifiers = [...source.matchAll(/from "(\.[^"]+)"/g)].map(([, specifier = ""]) => specifier);
    return specifiers.some((specifier) => normalize(join(dirname(file), specifier)) === target);
  }
});

/** All documents of the project. */
const DOCUMENTS = ["*.md", "server/**/*.md", "cli/**/*.md", "conformance/**/*.md"]
  .flatMap((pattern) => [...new Glob(pattern).scanSync(join(SERVER, ".."))])
  // The benchmark installs its peers in a folder of its own.
  .filter((file) => !file.includes("node_modules/"))
  .map((file) => join("..", file));

test("what is there to be pasted has no comments: an interactive zsh takes them for arguments", async () => {
  expect(DOCUMENTS.length).toBeGreaterThan(30);
  const faults: string[] = [];
  for (const file of DOCUMENTS) {
    for (const [, block = ""] of (await read(file)).matchAll(/^ *```sh\n([\s\S]*?)```/gm)) {
      // A script is saved as a file.
      if (block.startsWith("#!")) continue;
      const commands = block.split("\n").map((line) => line.replace(/'[^']*'|"[^"]*"/g, ""));
      faults.push(...commands.filter((line) => /(?:^|\s)#/.test(line)).map((line) => `${file}: ${line}`));
    }
  }
  expect(faults).toEqual([]);
});

test("links between the documents lead to files that exist, and to headings that are there", async () => {
  const faults: string[] = [];
  for (const file of DOCUMENTS) {
    for (const [, target = "", heading] of (await read(file)).matchAll(/\]\(([^)#:]*)(?:#([^)]*))?\)/g)) {
      const path = target === "" ? join(SERVER, file) : join(SERVER, dirname(file), target);
      if (!existsSync(path)) faults.push(`${file}: ${target} does not exist`);
      else if (heading !== undefined && !headings(await Bun.file(path).text()).includes(heading)) {
        faults.push(`${file}: ${target} has no heading #${heading}`);
      }
    }
  }
  expect(faults).toEqual([]);
});

function headings(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );
}

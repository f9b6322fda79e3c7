import { describe, expect, test } from "bun:test";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import { flagOf, SETTING_NAMES, SETTINGS, variableOf } from "../config/settings.ts";
import { PROBLEMS } from "../domain/problem.ts";
import { Metrics } from "../telemetry/metrics.ts";

const readme = await Bun.file(new URL("../README.md", import.meta.url)).text();

/** Compared as booleans: a failure that printed the whole README would hide the row. */
const missing = (...rows: string[]) => rows.filter((row) => !readme.includes(row));

describe("server/README.md is complete", () => {
  test("each problem code has its row: code, status, meaning", () => {
    const rows = Object.entries(PROBLEMS).map(
      ([code, { status, meaning }]) => `| \`${code}\` | ${status} | ${meaning} |`,
    );
    expect(missing(...rows)).toEqual([]);
  });

  test("each setting has its row: variable, flag, default, meaning", () => {
    for (const name of SETTING_NAMES) {
      const { fallback, meaning } = SETTINGS[name];
      const shown = fallback === "" ? "" : `\`${fallback}\` `;
      expect(missing(`| \`${variableOf(name)}\` | \`${flagOf(name)}\` | ${shown}| ${meaning} |`)).toEqual([]);
    }
  });

  test("each metric has its row", async () => {
    const metrics = new Metrics({
      hasCallerLabels: true,
      version: "1.2.3",
      storageStats: () => ({ writesWaiting: 0, databaseBytes: 0, logBytes: 0 }),
    });
    const names = [...(await metrics.text()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect(missing(`| \`${name}\` |`)).toEqual([]);
  });

  test("each alert has its row: name, severity", async () => {
    const rules = await Bun.file(
      new URL("../telemetry/prometheus/customers.rules.yml", import.meta.url),
    ).text();
    const alerts = [...rules.matchAll(/- alert: (\w+)[\s\S]*?severity: (\w+)/g)];
    expect(alerts.length).toBeGreaterThan(0);
    expect(missing(...alerts.map(([, name, severity]) => `| \`${name}\` | ${severity} |`))).toEqual([]);
  });

  test("the built-in policy stands there as it is", () => {
    expect(missing(`\`\`\`toml\n${BUILT_IN_POLICY}\`\`\``)).toEqual([]);
  });

  test("each command and option is named", async () => {
    for (const command of [
      ["serve"],
      ["token", "create"],
      ["token", "list"],
      ["token", "revoke"],
      ["backup"],
      ["restore"],
      ["check"],
      ["policy", "check"],
    ]) {
      expect(missing(`\`${command.join(" ")}`)).toEqual([]);
      const help = await Bun.$`${process.execPath} ${import.meta.dir}/../main.ts ${command} --help`.text();
      const options = [...help.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, option]) => option ?? "");
      for (const option of options.filter((name) => name !== "--help")) expect(missing(option)).toEqual([]);
    }
  });
});

test("server/PERFORMANCE.md shows the figures of the benchmark's last full run", async () => {
  const performance = await Bun.file(new URL("../PERFORMANCE.md", import.meta.url)).text();
  const results = await Bun.file(new URL("../bench/results/full.md", import.meta.url)).text();
  expect(performance.includes(results.trim())).toBe(true);
});

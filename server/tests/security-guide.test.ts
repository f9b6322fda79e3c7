/** What docs/security.md says is shown by a test is shown by one. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const DOCS = join(import.meta.dir, "../docs");
const guide = readFileSync(join(DOCS, "security.md"), "utf8");
const sections = guide.split("\n## ").slice(1);
/** A test as the guide names it. */
const SHOWN = /\[([\w.-]+)\]\(([^)]+\.ts)\): "([^"]+)"/g;

/** The OWASP API Security Top 10 of 2023. */
const RISKS = [
  "Broken object level authorization",
  "Broken authentication",
  "Broken object property level authorization",
  "Unrestricted resource consumption",
  "Broken function level authorization",
  "Unrestricted access to sensitive business flows",
  "Server side request forgery",
  "Security misconfiguration",
  "Improper inventory management",
  "Unsafe consumption of APIs",
];

describe.each(RISKS.map((risk, index) => [`API${index + 1}: ${risk}`]))("%s", (heading) => {
  const section = sections.find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const shown = [...section.matchAll(SHOWN)];

  test("has a section, and tests that show what it says", () => {
    expect(shown.length).toBeGreaterThan(0);
    expect(section.split("Shown by").length - 1).toBeLessThanOrEqual(shown.length);
  });

  test.each(shown.map(([, name = "", path = "", title = ""]) => [title, name, path] as const))(
    "%s",
    (title, name, path) => {
      const file = join(DOCS, path);
      expect([path, existsSync(file), path.endsWith(`/${name}`)]).toEqual([path, true, true]);
      const source = readFileSync(file, "utf8");
      const isThere = ['"', "`"].some((quote) => source.includes(`${quote}${title}${quote}`));
      expect([title, isThere]).toEqual([title, true]);
    },
  );
});

import { expect, test } from "bun:test";
import { changelogFault } from "./changelog.ts";

const ROWS: readonly (readonly [title: string, changelog: string, fault: string | null])[] = [
  ["a dated section that lists changes is complete", "## 1.2.0 — 2026-01-31\n\n- New.\n", null],
  ["a version without a section is refused", "## 1.1.0 — 2026-01-31\n\n- New.\n", "has no section for 1.2.0"],
  ["a version that only begins alike is another one", "## 1.2.01 — 2026-01-31\n\n- New.\n", "has no section"],
  ["a section without a date is refused", "## 1.2.0 — unreleased\n\n- New.\n", "gives no date for 1.2.0"],
  [
    "an empty section is refused",
    "## 1.2.0 — 2026-01-31\n\n## 1.1.0 — 2026-01-01\n\n- Old.\n",
    "says nothing",
  ],
];

for (const [title, changelog, fault] of ROWS) {
  test(title, () => {
    const found = changelogFault(`# Changelog\n\n${changelog}`, "1.2.0");
    if (fault === null) expect(found).toBeNull();
    else expect(found).toContain(fault);
  });
}

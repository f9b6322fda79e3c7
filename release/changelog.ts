/**
 * Checks that the changelog has a dated section for a version, `## 1.2.3 — 2026-01-31`, and something in it.
 *
 * @returns what is wrong and what to do, or null
 */
export function changelogFault(changelog: string, version: string): string | null {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.split(/\s/, 1)[0] === version);
  if (section === undefined) return `CHANGELOG.md has no section for ${version}. Add "## ${version} — DATE".`;
  const [title = "", ...lines] = section.split("\n");
  if (!/ — \d{4}-\d{2}-\d{2}$/.test(title)) {
    return `CHANGELOG.md gives no date for ${version}. Write "## ${version} — DATE", as 2026-01-31.`;
  }
  if (!lines.some((line) => line.startsWith("- "))) {
    return `CHANGELOG.md says nothing about ${version}. List what changed.`;
  }
  return null;
}

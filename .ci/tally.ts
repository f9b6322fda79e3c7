/** Counts the tests in JUnit files as `bun test` writes them. Run as a program it prints the closing line. */
export type Tally = { passed: number; failed: number; skipped: number; files: Set<string> };

/** @param path a JUnit file; a missing one throws, since a run without a report proves nothing. */
export async function tally(...paths: string[]): Promise<Tally> {
  const total: Tally = { passed: 0, failed: 0, skipped: 0, files: new Set() };
  for (const path of paths) {
    const xml = await Bun.file(path).text();
    for (const [, attributes = "", selfClosed, content = ""] of xml.matchAll(
      /<testcase\b((?:[^>"]|"[^"]*")*?)(?:(\/)>|>([\s\S]*?)<\/testcase>)/g,
    )) {
      const file = /\bfile="([^"]*)"/.exec(attributes)?.[1];
      if (!selfClosed && /<(?:failure|error)\b/.test(content)) total.failed += 1;
      else if (!selfClosed && /<skipped\b/.test(content)) total.skipped += 1;
      else {
        total.passed += 1;
      }
      if (file !== undefined) total.files.add(file.replace(/^\.\//, ""));
    }
  }
  return total;
}

if (import.meta.main) {
  const { passed, failed, skipped } = await tally(...process.argv.slice(2));
  console.log(`${passed} passed, ${failed + skipped} failed`);
  process.exit(failed + skipped === 0 && passed > 0 ? 0 : 1);
}

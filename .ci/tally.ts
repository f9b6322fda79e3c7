/** Reads JUnit files as `bun test` writes them. Run as a program it prints the tests that failed and the closing line. */
export type Failure = { file: string; name: string; message: string };
export type Tally = { passed: number; failures: Failure[]; skipped: number; files: Set<string> };

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", "#10": "\n" };

function textOf(escaped: string): string {
  return escaped.replace(/&([a-z]+|#10);/g, (whole, name: string) => ENTITIES[name] ?? whole);
}

function attribute(attributes: string, name: string): string {
  return textOf(new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? "");
}

/** @param paths JUnit files; a missing one throws, since a run without a report proves nothing. */
export async function tally(...paths: string[]): Promise<Tally> {
  const total: Tally = { passed: 0, failures: [], skipped: 0, files: new Set() };
  for (const path of paths) {
    const xml = await Bun.file(path).text();
    for (const [, attributes = "", selfClosed, content = ""] of xml.matchAll(
      /<testcase\b((?:[^>"]|"[^"]*")*?)(?:(\/)>|>([\s\S]*?)<\/testcase>)/g,
    )) {
      const file = attribute(attributes, "file").replace(/^\.\//, "");
      if (!selfClosed && /<(?:failure|error)\b/.test(content)) {
        const message = />([^<]*)<\/(?:failure|error)>/.exec(content)?.[1] ?? "";
        const name = [attribute(attributes, "classname"), attribute(attributes, "name")].filter(Boolean);
        total.failures.push({ file, name: name.join(" > "), message: textOf(message).trim() });
      } else if (!selfClosed && /<skipped\b/.test(content)) total.skipped += 1;
      else total.passed += 1;
      if (file !== "") total.files.add(file);
    }
  }
  return total;
}

if (import.meta.main) {
  const { passed, failures, skipped } = await tally(...process.argv.slice(2));
  for (const { file, name, message } of failures)
    console.log(`failed: ${file}: ${name}\n${message.split("\n").slice(0, 40).join("\n")}\n`);
  console.log(`${passed} passed, ${failures.length + skipped} failed`);
  process.exit(failures.length + skipped === 0 && passed > 0 ? 0 : 1);
}

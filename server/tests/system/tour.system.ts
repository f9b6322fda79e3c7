/**
 * README.md as a newcomer follows it: the first command, and every block of the tour pasted into a terminal, in
 * bash and in zsh, in a copy of the project with nothing but its files. The one line that another port changes is
 * that which sets CUSTOMERS_URL, as README.md says.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { Output, temporaryDirectory } from "../support/service/server-process.ts";

const ROOT = new URL("../../..", import.meta.url).pathname;
const readme = await Bun.file(join(ROOT, "README.md")).text();

/** The blocks of a section, whose lines are pasted. */
function blocks(section: string): string[] {
  const text = readme.split(`\n## ${section}\n`)[1]?.split("\n## ")[0] ?? "";
  return [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
}

const [START = ""] = blocks("Two commands");
const TOUR = blocks("The tour");

/** What the reader sees after each block that answers something: a part of it, and the exit code of its last line. */
const SEEN = [
  { begins: "bun() {", shows: [] },
  { begins: "export CUSTOMERS_URL=", shows: [] },
  { begins: "id=", shows: ["HTTP/1.1 200 OK", "ETag: ", '"name":"Ada Lovelace"'] },
  { begins: "curl -i", shows: ["HTTP/1.1 428 ", "precondition-required"] },
  { begins: "etag=", shows: ["HTTP/1.1 204 ", "ETag: "] },
  { begins: "curl -i", shows: ["HTTP/1.1 412 ", "precondition-failed", '"diagnosis":"stale"'] },
  { begins: "bun run customers update", shows: ["ada@new.example", "Ada King", "Grace Hopper"] },
  { begins: "echo", shows: ["cst_"] },
  { begins: "bun run conformance", shows: ["conforms: ", "Reports in conformance-report: "] },
  { begins: "bun server/main.ts token", shows: ["cst_", "data/backup-"] },
] as const;

test("each block of the tour has its expectation", () => {
  expect(TOUR.map((block, n) => block.startsWith(SEEN[n]?.begins ?? "no expectation"))).toEqual(
    SEEN.map(() => true),
  );
});

/** The files of the project, as a clone has them. */
function copyProject(directory: string): void {
  const listed = Bun.spawnSync(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: ROOT,
  });
  for (const file of listed.stdout.toString().split("\0").filter(Boolean)) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    cpSync(join(ROOT, file), join(directory, file));
  }
}

/** A person's shell on a terminal, without the files of a home. */
class Shell {
  screen = "";
  readonly #child: Bun.Subprocess;
  readonly #terminal: Bun.Terminal;
  #wake: () => void = () => undefined;
  #pasted = 0;

  constructor(command: readonly string[], cwd: string, path: string) {
    const decoder = new TextDecoder();
    this.#terminal = new Bun.Terminal({
      cols: 400,
      rows: 50,
      data: (_, data) => {
        this.screen += decoder.decode(data, { stream: true });
        this.#wake();
      },
    });
    this.#child = Bun.spawn([...command], {
      cwd,
      env: {
        PATH: path,
        HOME: cwd,
        TERM: "xterm",
        LANG: "C.UTF-8",
        // What npx has fetched already for the first command.
        npm_config_cache: process.env["npm_config_cache"] ?? join(homedir(), ".npm"),
      },
      terminal: this.#terminal,
    });
  }

  /** Pastes a block at once. @returns what the screen showed after it, and the exit code of its last line */
  async paste(block: string): Promise<{ code: number; shown: string }> {
    const from = this.screen.length;
    this.#pasted += 1;
    // The shell puts the mark together, so that what it echoes of this line is not the mark.
    const mark = new RegExp(`end ${this.#pasted} of block: (\\d+)`);
    this.#terminal.write(
      `${block}printf 'end %s of block: %s\\n' ${this.#pasted} "$?"\n`.replaceAll("\n", "\r"),
    );
    for (;;) {
      const shown = Bun.stripANSI(this.screen.slice(from));
      const code = mark.exec(shown)?.[1];
      if (code !== undefined) return { code: Number(code), shown };
      const changed = new Promise<void>((wake) => {
        this.#wake = wake;
      });
      if (this.#child.exitCode !== null) throw new Error(`the shell ended: ${shown}`);
      await changed;
    }
  }

  async end(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
    this.#terminal.close();
  }
}

/** Without the Bun that runs this test: the reader has Node.js and npm alone. */
const PATH = (process.env["PATH"] ?? "")
  .split(":")
  .filter((directory) => !Bun.file(join(directory, "bun")).size)
  .join(":");

describe.each([
  { name: "bash", command: ["bash", "--norc", "-i"] },
  { name: "zsh", command: ["zsh", "-f", "-i"] },
])("the tour pasted into $name", ({ command }) => {
  const directory = temporaryDirectory();
  let service: Bun.Subprocess<"ignore", "pipe", "pipe">;
  let shell: Shell;
  let url = "";

  beforeAll(async () => {
    copyProject(directory.path);
    service = Bun.spawn(["sh", "-c", `exec ${START}`], {
      cwd: directory.path,
      env: { ...process.env, PATH, PORT: "0" },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const line = await new Output(service.stdout).line((text) => text.startsWith("Listening on "));
    url = line?.slice("Listening on ".length) ?? "";
    shell = new Shell(command, directory.path, PATH);
  });
  afterAll(async () => {
    await shell?.end();
    process.kill(-service.pid, "SIGTERM");
    await service.exited;
    directory.remove();
  });

  test("every block does what the text says", async () => {
    for (const [n, block] of TOUR.entries()) {
      const { code, shown } = await shell.paste(block.replace("http://127.0.0.1:8080", url));
      const missing = (SEEN[n]?.shows ?? []).filter(
        (text) => !shown.toLowerCase().includes(text.toLowerCase()),
      );
      expect({ block, code, missing, shown: missing.length === 0 && code === 0 ? "" : shown }).toEqual({
        block,
        code: 0,
        missing: [],
        shown: "",
      });
    }
  });
});

/** Runs the `sh` blocks of a page in order, as a reader would paste them, against a server of their own. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RUNTIME, temporaryDirectory } from "./client.ts";
import { type CustomerServer, startCustomerServer } from "./customer-server.ts";
import { TOKEN } from "./dialect.ts";
import { compiledClient } from "./executable.ts";

export type PageRun = {
  exitCode: number;
  stdout: string;
  stderr: string;
  server: CustomerServer;
  blocks: number;
};

/** The service that the documents name, and the file of its token. */
const SERVICE = "http://127.0.0.1:8080";
const TOKEN_FILES = ["data/admin.token", "token-file"];

/**
 * @param page below cli/. A page other than the README begins where its quick start ends: logged in.
 * @param isolated each block in a shell of its own, so that none can use a variable of the one before.
 */
export async function runExamples(page: string, isolated = false): Promise<PageRun> {
  const text = await Bun.file(new URL(`../../${page}`, import.meta.url)).text();
  const blocks = [...text.matchAll(/^( *)```sh\n([\s\S]*?)^\1```$/gm)]
    .map(([, , block = ""]) => block)
    // A test of the release pastes these.
    .filter((block) => !block.startsWith("npm install "));
  const login = page === "README.md" ? [] : [`customers login --url ${SERVICE} < data/admin.token`];
  const lines = isolated ? blocks.map((block) => `(\n${block})`) : blocks;
  return { ...(await runLines([...login, ...lines])), blocks: blocks.length };
}

/** Lines of bash, which stops at the first that fails. */
async function runLines(lines: readonly string[]): Promise<Omit<PageRun, "blocks">> {
  const server = startCustomerServer();
  using directory = temporaryDirectory();
  mkdirSync(join(directory.path, "data"));
  for (const name of TOKEN_FILES) writeFileSync(join(directory.path, name), `${TOKEN}\n`, { mode: 0o600 });
  const customers = `customers() { '${await compiledClient()}' "$@"; }`;
  const script = ["set -euo pipefail", "set -v", customers, ...lines]
    .join("\n")
    .replaceAll(SERVICE, server.url);
  writeFileSync(join(directory.path, "script"), script);
  try {
    const child = Bun.spawn(["bash", "script"], {
      cwd: directory.path,
      env: { ...RUNTIME, PATH: process.env["PATH"] ?? "", HOME: directory.path, URL: server.url },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, exitCode] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ]);
    return { exitCode, stdout, stderr, server };
  } finally {
    await server.stop();
  }
}

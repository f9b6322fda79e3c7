/** Runs the `sh` blocks of a page in order, as a reader would paste them, against a server of their own. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runClient, temporaryDirectory } from "./client.ts";
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

/** @param page below cli/. A page other than the README begins where its quick start ends: logged in. */
export async function runExamples(page: string): Promise<PageRun> {
  const text = await Bun.file(new URL(`../../${page}`, import.meta.url)).text();
  const blocks = [...text.matchAll(/^( *)```sh\n([\s\S]*?)^\1```$/gm)].map(([, , block = ""]) => block);
  const server = startCustomerServer();
  using directory = temporaryDirectory();
  const command = await compiledClient();
  writeFileSync(join(directory.path, "token-file"), `${TOKEN}\n`, { mode: 0o600 });
  try {
    if (page !== "README.md") {
      const login = ["login", "--url", server.url];
      await runClient(login, { command: [command], home: directory.path, stdin: TOKEN });
    }
    const script = ["set -euo pipefail", "set -v", `customers() { '${command}' "$@"; }`, ...blocks];
    const child = Bun.spawn(["bash", "-c", script.join("\n")], {
      cwd: directory.path,
      env: { PATH: process.env["PATH"] ?? "", HOME: directory.path, URL: server.url },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, exitCode] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ]);
    return { exitCode, stdout, stderr, server, blocks: blocks.length };
  } finally {
    await server.stop();
  }
}

/** For the tests of the command line: the kit, as a child process or in that of the test, with a state folder of its own. */
import { spyOn } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { standardOutput } from "../commands/print.ts";
import { runProgram } from "../program.ts";

const MAIN = new URL("../main.ts", import.meta.url).pathname;
const { TEST_KIT } = process.env;
/** The kit's command. A whole test run compiles it once: it then starts in a third of the processor time. */
export const KIT = TEST_KIT === undefined ? [process.execPath, MAIN] : [TEST_KIT];

export type Ended = { readonly exitCode: number; readonly stdout: string; readonly stderr: string };

/** A folder in which the kit runs, with the variables that its flags name. */
export class Workplace {
  readonly folder = mkdtempSync(join(tmpdir(), "kit-cli-"));
  readonly env: Record<string, string | undefined>;

  constructor(variables: Record<string, string>) {
    // A proxy of the machine that runs the tests is not on the way to a service of theirs.
    const { http_proxy, https_proxy, HTTP_PROXY, HTTPS_PROXY, ...own } = process.env;
    this.env = { ...own, ...variables, CUSTOMERS_CONFORMANCE_STATE: join(this.folder, "state") };
  }

  path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  start(...words: string[]): Bun.Subprocess<"ignore", "pipe", "pipe"> {
    return Bun.spawn([...KIT, ...words], {
      cwd: this.folder,
      env: this.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  async kit(...words: string[]): Promise<Ended> {
    return await ended(this.start(...words));
  }

  /** The same in this process, one at a time: for what a process of its own would not show any better. */
  async kitHere(...words: string[]): Promise<Ended> {
    const { argv } = process;
    const before = { env: { ...process.env }, folder: process.cwd() };
    const written = { stdout: "", stderr: "" };
    const spies = [
      spyOn(standardOutput, "write").mockImplementation((text) => {
        written.stdout += text;
      }),
      spyOn(standardOutput, "columns").mockReturnValue(null),
      spyOn(console, "error").mockImplementation((text) => {
        written.stderr += `${text}\n`;
      }),
    ];
    process.argv = [process.execPath, MAIN, ...words];
    setEnvironment(this.env);
    process.chdir(this.folder);
    try {
      return { exitCode: await runProgram(), ...written };
    } finally {
      for (const spy of spies) spy.mockRestore();
      process.argv = argv;
      setEnvironment(before.env);
      process.chdir(before.folder);
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function ended(child: Bun.Subprocess<"ignore", "pipe", "pipe">): Promise<Ended> {
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode, stdout, stderr };
}

function setEnvironment(env: Readonly<Record<string, string | undefined>>): void {
  for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name];
  Object.assign(process.env, env);
}

/** For the tests of the command line: the kit as a child process, with a state folder of its own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { TEST_KIT } = process.env;
/** The kit's command. A whole test run compiles it once: it then starts in a third of the processor time. */
export const KIT =
  TEST_KIT === undefined ? [process.execPath, new URL("../main.ts", import.meta.url).pathname] : [TEST_KIT];

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

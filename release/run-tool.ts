/**
 * Runs a program to its end.
 *
 * @returns its standard output
 * @throws Error with its standard error where it does not exit 0
 */
export async function runTool(command: readonly string[], cwd?: string): Promise<string> {
  const child = Bun.spawn([...command], {
    ...(cwd === undefined ? {} : { cwd }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} failed:\n${stderr}`);
  return stdout;
}

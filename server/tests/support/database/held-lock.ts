import { Output } from "../service/server-process.ts";

/** A process that holds the write lock of a database until it is told to let go. */
export async function holdLock(database: string): Promise<{ release: () => Promise<void> }> {
  const program = new URL("lock-holder.ts", import.meta.url).pathname;
  const child = Bun.spawn([process.execPath, program, database], { stdin: "pipe", stdout: "pipe" });
  await new Output(child.stdout).line((line) => line === "held");
  return {
    release: async () => {
      child.stdin.end();
      await child.exited;
    },
  };
}
